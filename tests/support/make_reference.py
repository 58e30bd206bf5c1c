"""Write tests/data/mle.json and mle_hard.json: optima of small columns, computed with mpmath and correct to 20 digits.

Run ``python tests/support/make_reference.py`` in any folder. It takes three minutes, and needs mpmath and NumPy but not
powerkern.
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

FOLDER = Path(__file__).parents[1] / "data"
LARGEST = float(np.finfo(np.float64).max)
ABOUT = (
    "Maximum-likelihood lambda of synthetic columns, 20 digits. lmbda: root of the score, certified by its change of "
    "sign. nll: n times 1/2 ln Var(psi) - (lambda - 1) mean(J), n the total weight. sensitivity: change of lambda, "
    "over max(1, |lambda|), when every value moves by half an ulp (worst of 5 patterns of signs, to first order). "
    "bounded: optimum with |psi| <= ymax. Written by tests/support/make_reference.py."
)
ABOUT_HARD = ABOUT + (
    " repeat: how often each value of x occurs. kind: degenerate and unrepresentable columns have no optimum, a flat "
    "one nearly none."
)
#: A column and its weights or None.
Column = tuple[str, str, list[float], list[float] | None]


def columns() -> Iterator[Column]:
    """Yield (name, family, values, weights) of ordinary columns and of columns on which other implementations fail."""
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


def hard_columns() -> Iterator[tuple[str, str, list[float], list[int] | None]]:
    """Yield (name, family, values, counts or None) of difficult columns.

    On these columns, other implementations overflow, stop early or guess. A value is repeated as often as its count.
    """
    rng = np.random.default_rng(2025)
    normal = rng.normal(size=24)
    exponential = rng.exponential(size=24)
    years = rng.integers(1950, 2010, size=8).astype(float)
    eps = 2.0**-52
    boxcox, yeojohnson = ("box-cox",), ("yeo-johnson",)
    both = boxcox + yeojohnson

    def column(name: str, families: tuple[str, ...], x: Any, repeat: list[int] | None = None) -> Iterator[Any]:
        for family in families:
            yield f"{name}, {family}", family, [float(v) for v in x], repeat

    for k in (1, 3, 4, 5):  # three equal values and one a little off: lambda grows with 10**k
        step = 10.0**-k
        yield from column(f"0.1 and 1e-{k} more", boxcox, [0.1, 0.1, 0.1, 0.1 * (1.0 + step)])
        yield from column(f"10 and 1e-{k} less", both, [10.0, 10.0, 10.0, 10.0 * (1.0 - step)])
        yield from column(f"-10 and 1e-{k} less", yeojohnson, [-10.0, -10.0, -10.0, -10.0 * (1.0 - step)])
    yield from column("tight at 1", both, 1.0 + 1e-10 * normal)
    yield from column("tight at 1e4", both, 1e4 + 1e-3 * normal)
    yield from column("ulps above 1", both, 1.0 + eps * rng.geometric(0.2, size=16))
    yield from column("ulps below 1", both, 1.0 - eps * rng.geometric(0.2, size=16))
    yield from column("near 1", both, 1.0 - 1e-6 * exponential)
    yield from column("float32 at 100", both, np.float32(100.0 + 0.01 * normal))
    yield from column("float32 lognormal", both, np.float32(np.exp(normal)))
    yield from column("years", both, years)
    yield from column("negative years", yeojohnson, -years)
    for exponent in (200, 32, -12, -32, -150):
        yield from column(f"years times 1e{exponent}", both, years * float(f"1e{exponent}"))
    yield from column("negative years times 1e-32", yeojohnson, -1e-32 * years)
    yield from column("0 and 1", yeojohnson, [0, 1], [500, 500])
    yield from column("0 and one 1", yeojohnson, [0, 1], [9999, 1])
    yield from column("1 and one 1.01", both, [1, 1.01], [300, 1])
    yield from column("-1 and 1", yeojohnson, [-1, 1], [5, 15])
    yield from column("-1 and as many 1", yeojohnson, [-1, 1], [50, 50])
    yield from column("-1 and 0", yeojohnson, [-1, 0], [3, 7])
    yield from column("few 2 among 1", both, [1, 2], [9, 1])
    yield from column("few 1 among 2", both, [1, 2], [1, 9])
    yield from column("many duplicates", both, [1, 2, 3], [1000, 10, 1])
    yield from column("claims", yeojohnson, [0, 1, 2, 3, 4], [4800, 150, 37, 11, 2])
    yield from column("rounded", both, np.round(np.exp(normal) + 0.1, 1))
    yield from column("Poisson", yeojohnson, rng.poisson(1.2, size=40))
    yield from column("beta", both, rng.beta(2.0, 5.0, size=24))
    yield from column("about 1e-5", both, 1e-5 * np.exp(0.5 * normal))
    yield from column("Weibull", both, rng.weibull(1.5, size=24))
    yield from column("600 decades", both, 10.0 ** np.arange(-300.0, 301.0, 30.0))
    yield from column("lognormal of sd 200", both, np.exp(200.0 * normal))
    yield from column(
        "300 decades and their negatives", yeojohnson, [-1e300, -1e100, *10.0 ** np.arange(-300, 301, 60)]
    )
    yield from column("to the largest number", both, [1.0, 2.0, 3.0, LARGEST])
    yield from column("subnormal ladder", both, 5e-324 * np.array([1, 2, 3, 5]))
    yield from column("subnormal to 1", both, [5e-324, 1e-200, 1e-100, 1e-10, 1.0])
    yield from column("1 and 2", both, [1, 2])
    yield from column("0 and 5", yeojohnson, [0, 5])
    yield from column("-3 and -7", yeojohnson, [-3, -7])
    yield from column("1, 2, 3", both, [1, 2, 3])
    yield from column("5, 5, 6", both, [5, 5, 6])
    yield from column("outlier among zeros", yeojohnson, [0, 0, 0, 0, 1e10])
    yield from column("ones and 1e10", both, [1, 1, 1e10])
    yield from column("three tiny values", yeojohnson, [-1e-12, 1e-12, 3e-12])
    yield from column("one tiny positive", yeojohnson, [*(-1e-9 * np.arange(1, 16)), 1e-9])
    for scale in (1e-150, 1e-6, 1e-3):
        yield from column(f"skewed about 0, times {scale:g}", yeojohnson, scale * (exponential - 0.7))
    yield from column("normal times 1e8", yeojohnson, 1e8 * normal)
    yield from column("normal times 1e154", yeojohnson, 1e154 * normal)
    yield from column("Cauchy times 1e6", yeojohnson, 1e6 * rng.standard_cauchy(size=24))
    yield from column("t of 1.5 degrees", yeojohnson, rng.standard_t(1.5, size=24))
    yield from column("-1e300, 1, 1e300", yeojohnson, [-1e300, 1, 1e300])
    yield from column("skewed and huge", yeojohnson, [-1e200, -5, 3, 1e10])
    for k in (20, 30, 40):
        yield from column(f"lambda about 2**-{k}", boxcox, [1, 2, 4, 8, 16 * (1.0 + 2.0**-k)])
        yield from column(f"lambda about 2**-{k}", yeojohnson, [0, 1, 3, 7, 16 * (1.0 + 2.0**-k) - 1])
    yield from column("lambda 0 of 7", boxcox, 0.75 * 2.0 ** np.arange(7))
    yield from column("one value", both, [5])
    yield from column("constant", both, [0.9], [40])
    yield from column("constant 1e300", both, [1e300], [10])
    yield from column("constant below 0", yeojohnson, [-2], [7])


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
    """Return the root of an increasing function `f` to `digits` digits.

    An interval is doubled until it contains the root, and then bisected.
    """
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
    """Return the largest change of lambda for five random half-ulp changes of the data, relative to max(1, |lambda|).

    The change is computed to first order.

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
    """Return the lambda nearest to the optimum with |psi| <= ymax for all values; None if there is none.

    psi increases with lambda, so the smallest and the largest value determine the two bounds.

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
    """Return the entry of a column in mle.json.

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
            "nll": mpmath.nstr(mpmath.chop(total * oracles.likelihood(family, lmbda, x, weight)[0], 1e-40), 20),
            "sensitivity": float(f"{sensitivity(family, lmbda, x, weight):.2g}"),
            "x": x,
        }
        if weight is not None:
            case["weight"] = weight
        for ymax in (1e3, LARGEST / 1e4, LARGEST):
            best = bounded(family, lmbda, x, ymax)
            if best is not None and best != lmbda:
                case.setdefault("bounded", []).append({"ymax": ymax, "lmbda": mpmath.nstr(best, 20)})
        return case


def relative_curvature(family: str, lmbda: str, x: list[float], repeat: list[int] | None) -> float:
    """Return the second derivative of the negative log-likelihood with respect to lambda/max(1, |lambda|).

    Parameters
    ----------
    family : str
        The transform.
    lmbda : str
        Lambda, as a decimal.
    x : list of float
        The column.
    repeat : list of int or None
        Number of times that each value is repeated.
    """
    with mpmath.workdps(60):
        at = mpmath.mpf(lmbda)
        weight = [1.0] * len(x) if repeat is None else [float(count) for count in repeat]
        return float(sum(weight) * oracles.likelihood(family, at, x, weight)[2] * max(1, abs(at)) ** 2)


def hard_record(name: str, family: str, x: list[float], repeat: list[int] | None) -> dict[str, Any]:
    if len(x) == 1:
        case: dict[str, Any] = {"name": name, "family": family, "kind": "degenerate", "x": x}
    else:
        case = record(name, family, x, None if repeat is None else [float(count) for count in repeat])
        case.pop("weight", None)
        if abs(mpmath.mpf(case["lmbda"])) > LARGEST:
            case["kind"] = "unrepresentable"
        elif relative_curvature(family, case["lmbda"], x, repeat) < 1e-12:
            case["kind"] = "flat"
    return case if repeat is None else case | {"repeat": repeat}


def write(file: str, about: str, cases: list[dict[str, Any]]) -> None:
    lines = ",\n".join(json.dumps(case) for case in cases)
    (FOLDER / file).write_text(f'{{"about": {json.dumps(about)}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")


def main() -> None:
    write("mle.json", ABOUT, [record(*column) for column in columns()])
    write("mle_hard.json", ABOUT_HARD, [hard_record(*column) for column in hard_columns()])


if __name__ == "__main__":
    main()
