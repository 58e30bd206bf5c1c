"""Write tests/data/mle.json: optima of small synthetic columns to 20 digits, by many-digit arithmetic alone.

Run ``python tests/support/make_reference.py`` from anywhere: about a minute; imports nothing from powerkern.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import oracles

TARGET = Path(__file__).parents[1] / "data" / "mle.json"
ABOUT = (
    "Maximum-likelihood lambda of synthetic columns, 20 digits. lmbda: root of the score, certified by its change of "
    "sign. nll: n times 1/2 ln Var(psi) - (lambda - 1) mean(J), n the total weight. sensitivity: change of lambda, "
    "over max(1, |lambda|), when every value moves by half an ulp (worst of 5 patterns of signs, to first order). "
    "bounded: optimum with |psi| <= ymax. Written by tests/support/make_reference.py."
)
#: A column and its weights or None.
Column = tuple[str, str, list[float], list[float] | None]


def columns() -> Iterator[Column]:
    """Yield ordinary columns, and columns that break other implementations."""
    rng = np.random.default_rng(20)
    normal = rng.normal(size=30)
    few = normal[:12]
    both = ("box-cox", "yeo-johnson")

    def column(name: str, families: tuple[str, ...], x: Any, weight: Any = None) -> Iterator[Column]:
        for family in families:
            values = [float(v) for v in x]
            yield f"{name}, {family}", family, values, None if weight is None else [float(w) for w in weight]

    yield from column("lognormal", both, np.exp(normal))
    yield from column("gamma", both, rng.gamma(2.0, size=30))
    yield from column("normal", both[1:], normal)
    yield from column("negative", both[1:], -np.exp(normal))
    yield from column("shifted exponential", both[1:], rng.exponential(size=30) - 1.0)
    yield from column("counts", both[1:], rng.poisson(1.5, size=30))
    yield from column("rare binary", both[1:], [0.0] * 29 + [1.0])
    yield from column("signs", both[1:], [-1.0] * 3 + [1.0] * 17)
    yield from column("years", both, np.round(1980.0 + 12.0 * normal))
    yield from column("tight at 1e4", both, 1e4 + 1e-3 * few)
    yield from column("tight at 1", both, 1.0 + 1e-10 * few)
    yield from column("tight below 0", both[1:], -1e6 - 1e-4 * few)
    yield from column("two ulps", both, [1.0, 1.0, 1.0, 1.0 + 2.0**-51])
    yield from column("one smaller", both, [10.0, 10.0, 10.0, 9.9])
    yield from column("one larger", both, [0.1, 0.1, 0.1, 0.101])
    yield from column("a pair", both, [3.0, 5.0])
    yield from column("a negative pair", both[1:], [-3.0, -5.0])
    yield from column("two values", both, [3.0, 5.0, 5.0])
    yield from column("outlier", both, [*np.exp(few), 1e10])
    yield from column("outlier below", both[1:], [*few, -1e10])
    yield from column("huge", both, 1e300 * np.exp(few))
    yield from column("tiny", both[:1], 1e-300 * np.exp(few))
    yield from column("small", both[1:], 1e-12 * np.exp(few))
    yield from column("all magnitudes", both[:1], [1e-300, 1e-200, 1e-70, 1.0, 1e80, 1e240, 1e300])
    yield from column(
        "all magnitudes of both signs", both[1:], [-1e250, -1e100, -1.0, -1e-200, 0.0, 1e-300, 1e90, 1e200]
    )
    yield from column("subnormal", both[:1], 5e-324 * np.array([1, 2, 3, 8, 40]))
    yield from column("subnormal of both signs", both[1:], [-5e-324, 5e-324, 0.5, -0.25, 1e-310])
    yield from column("tiny of both signs", both[1:], 1e-9 * few)
    yield from column("large of both signs", both[1:], 1e8 * few)
    yield from column("lambda 0", both[:1], 2.0 ** np.arange(-4.0, 5.0))
    yield from column("lambda nearly 0", both[:1], [*2.0 ** np.arange(-4.0, 4.0), 16.000001])
    yield from column("lambda 1", both[1:], [-3.0, -1.0, 0.0, 1.0, 3.0])
    yield from column("lambda 2", both[1:], 1.0 - 2.0 ** np.arange(0.0, 9.0))
    yield from column("weighted lognormal", both, np.exp(few), rng.exponential(size=12))
    yield from column("weighted normal", both[1:], normal, rng.integers(0, 4, size=30))
    yield from column("far weights", both[1:], few, 10.0 ** rng.uniform(-9.0, 9.0, size=12))


def score(family: str, lmbda: mpmath.mpf, x: list[float], weight: list[float] | None) -> mpmath.mpf:
    """Return g'(lambda).

    Parameters
    ----------
    family : str
        The transform.
    lmbda : mpf
        Lambda.
    x : list of float
        The column.
    weight : list of float or None
        Weights of its values.
    """
    return oracles.likelihood(family, lmbda, x, weight)[1]


def root(f: Callable[[mpmath.mpf], mpmath.mpf], digits: int) -> mpmath.mpf:
    """Return the root of an increasing function, by doubling and bisection."""
    low, high = mpmath.mpf(-1), mpmath.mpf(1)
    while f(low) > 0:
        low *= 2
    while f(high) < 0:
        high *= 2
    while high - low > mpmath.mpf(10) ** -digits * max(1, abs(low)):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return (low + high) / 2


def optimum(family: str, x: list[float], weight: list[float] | None) -> mpmath.mpf:
    start = root(lambda lmbda: score(family, lmbda, x, weight), digits=6)
    return oracles.most_likely_lambda(family, x, start, weight)


def sensitivity(family: str, lmbda: mpmath.mpf, x: list[float], weight: list[float] | None) -> float:
    """Return the first-order change of lambda, over max(1, |lambda|), for half-ulp changes of the data.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : mpf
        Lambda.
    x : list of float
        The column.
    weight : list of float or None
        Weights of its values.
    """
    rng = np.random.default_rng(0)
    curvature = oracles.likelihood(family, lmbda, x, weight)[2]
    worst = 0.0
    for _ in range(5):
        signs = rng.choice([-1, 1], size=len(x))
        moved = [mpmath.mpf(v) + int(s) * mpmath.mpf(math.ulp(v)) / 2 for s, v in zip(signs, x, strict=True)]
        change = abs(score(family, lmbda, moved, weight) / curvature)
        worst = max(worst, float(change / max(1, abs(lmbda))))
    return worst


def bounded(family: str, lmbda: mpmath.mpf, x: list[float], ymax: float) -> mpmath.mpf | None:
    """Return the optimum clipped to where |psi| <= ymax; None if there is no such lambda. psi increases with lambda.

    Parameters
    ----------
    family : str
        The transform.
    lmbda : mpf
        The optimum.
    x : list of float
        The column.
    ymax : float
        Largest |psi|.
    """

    def psi(lam: mpmath.mpf, value: float) -> mpmath.mpf:
        return oracles.power_derivatives(family, lam, value)[0]

    low, high = -mpmath.inf, mpmath.inf
    if psi(1, min(x)) < 0:
        low = root(lambda lam: psi(lam, min(x)) + ymax, digits=25)
    if psi(1, max(x)) > 0:
        high = root(lambda lam: psi(lam, max(x)) - ymax, digits=25)
    return None if low > high else min(max(lmbda, low), high)


def record(name: str, family: str, x: list[float], weight: list[float] | None) -> dict[str, Any]:
    """Return the entry of a column in the reference.

    Parameters
    ----------
    name : str
        Name of the case.
    family : str
        The transform.
    x : list of float
        The column.
    weight : list of float or None
        Weights of its values.
    """
    with mpmath.workdps(60):
        lmbda = optimum(family, x, weight)
        total = mpmath.fsum([1] * len(x) if weight is None else [mpmath.mpf(w) for w in weight])
        case: dict[str, Any] = {
            "name": name,
            "family": family,
            "lmbda": mpmath.nstr(mpmath.chop(lmbda, 1e-40), 20),
            "nll": mpmath.nstr(total * oracles.likelihood(family, lmbda, x, weight)[0], 20),
            "sensitivity": float(f"{sensitivity(family, lmbda, x, weight):.2g}"),
            "x": x,
        }
        if weight is not None:
            case["weight"] = weight
        for ymax in (1e3, float(np.finfo(np.float64).max)):
            best = bounded(family, lmbda, x, ymax)
            if best is not None and best != lmbda:
                case.setdefault("bounded", []).append({"ymax": ymax, "lmbda": mpmath.nstr(best, 20)})
        return case


def main() -> None:
    cases = [record(*column) for column in columns()]
    lines = ",\n".join(json.dumps(case) for case in cases)
    TARGET.write_text(f'{{"about": {json.dumps(ABOUT)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
