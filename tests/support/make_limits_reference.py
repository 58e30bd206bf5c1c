"""Write tests/data/limits.json, the maxima of likelihoods with censored cells, computed with 60 digits.

Run ``python -m tests.support.make_limits_reference`` from the root of the repository. It takes a minute, and imports
nothing from powerkern. Each case is a small column: values and intervals (null for an infinite end) with weights. For
the maximum of its likelihood, the case has lambda, mean, standard deviation, minus the log-likelihood, and the standard
error of lambda. The maximum is found by Newton's method with 60 digits, started where Nelder and Mead's method in
float64 ends. Derivatives are central differences with a step of 1e-16, so that their error is about 1e-32.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
from scipy import optimize

FILE = Path(__file__).parents[1] / "data" / "limits.json"
KINDS = ("one limit", "several limits", "limit for each cell", "above", "both tails", "bins")
DIGITS, STEP = 60, "1e-16"


def psi(lmbda: Any, x: Any, family: str) -> Any:
    """Return the Box-Cox or Yeo-Johnson transform of a number."""

    def branch(m: Any, a: Any) -> Any:
        return a if m == 0 else mp.expm1(m * a) / m

    if family == "box-cox":
        return branch(lmbda, mp.log(x))
    return branch(lmbda, mp.log1p(x)) if x >= 0 else -branch(2 - lmbda, mp.log1p(-x))


def log_probability(a: Any, b: Any) -> Any:
    """Return the log of the normal probability of (a, b), computed as a difference of two small tail probabilities."""
    if a + b > 0:
        a, b = -b, -a
    low = 0 if a == -mp.inf else mp.erfc(-a / mp.sqrt(2))
    return mp.log((mp.erfc(-b / mp.sqrt(2)) - low) / 2)


def minus_log_likelihood(parameters: Any, case: dict[str, Any]) -> Any:
    """Return minus the log-likelihood of a case at `parameters` (lambda, mean, ln sd)."""
    lmbda, mean, log_sd = (mp.mpf(p) for p in parameters)
    sd, family, total = mp.exp(log_sd), case["family"], mp.mpf(0)
    for low, high, weight in zip(case["low"], case["high"], case["weight"], strict=True):
        if low == high:
            x = mp.mpf(low)
            jacobian = mp.log(x) if family == "box-cox" else mp.sign(x) * mp.log1p(abs(x))
            z = (psi(lmbda, x, family) - mean) / sd
            term = -z * z / 2 - log_sd - mp.log(2 * mp.pi) / 2 + (lmbda - 1) * jacobian
        else:
            a = -mp.inf if low is None else (psi(lmbda, mp.mpf(low), family) - mean) / sd
            b = mp.inf if high is None else (psi(lmbda, mp.mpf(high), family) - mean) / sd
            term = log_probability(a, b)
        total -= mp.mpf(weight) * term
    return total


def derivatives(at: Any, case: dict[str, Any]) -> tuple[Any, Any]:
    """Return gradient and Hessian of `minus_log_likelihood` for a case at parameters `at`, by central differences."""
    h = mp.mpf(STEP)

    def f(*steps: tuple[int, int]) -> Any:
        moved = list(at)
        for i, k in steps:
            moved[i] += k * h
        return minus_log_likelihood(moved, case)

    here = f()
    ahead, behind = [f((i, 1)) for i in range(3)], [f((i, -1)) for i in range(3)]
    gradient = mp.matrix([(ahead[i] - behind[i]) / (2 * h) for i in range(3)])
    hessian = mp.matrix(3, 3)
    for i in range(3):
        hessian[i, i] = (ahead[i] - 2 * here + behind[i]) / h**2
    for i, j in itertools.combinations(range(3), 2):
        corners = sum(k * m * f((i, k), (j, m)) for k in (1, -1) for m in (1, -1))
        hessian[i, j] = hessian[j, i] = corners / (4 * h**2)
    return gradient, hessian


def maximize(case: dict[str, Any]) -> dict[str, float] | None:
    """Return the parameters at the maximum, the value there, and the standard error of lambda.

    The result is None if Newton's method does not converge.
    """
    with mp.workdps(20):
        inside = [low if high is None else high for low, high in zip(case["low"], case["high"], strict=True)]
        y = [float(psi(1, x, case["family"])) for x in inside]
        start = optimize.minimize(
            lambda p: float(minus_log_likelihood(p, case)) if abs(p).max() < 50 else np.inf,
            [1.0, np.mean(y), np.log(np.std(y))],
            method="Nelder-Mead",
            options={"maxiter": 400, "xatol": 1e-3, "fatol": 1e-5},
        ).x
    at = [mp.mpf(p) for p in start]
    for _ in range(12):
        gradient, hessian = derivatives(at, case)
        step = mp.lu_solve(hessian, -gradient)
        at = [p + s for p, s in zip(at, step, strict=True)]
        if mp.norm(step) < mp.mpf("1e-25"):
            break
    else:
        return None
    covariance = hessian**-1
    if not all(covariance[i, i] > 0 for i in range(3)) or abs(at[0]) > 6:
        return None
    sd = mp.exp(at[2])
    found = (at[0], at[1], sd, minus_log_likelihood(at, case), mp.sqrt(covariance[0, 0]))
    errors = (mp.sqrt(covariance[1, 1]), sd * mp.sqrt(covariance[2, 2]))
    names = ("lmbda", "loc", "scale", "nll", "se", "loc_se", "scale_se")
    return {name: float(value) for name, value in zip(names, (*found, *errors), strict=True)}


def make_case(rng: np.random.Generator, family: str, kind: str, is_weighted: bool) -> dict[str, Any]:
    """Draw 10 to 16 cells, censored according to `kind`, with random or unit weights; return them as a case."""
    n = int(rng.integers(10, 17))
    x = rng.lognormal(sigma=0.7, size=n) if family == "box-cox" else rng.normal(0.3, 2.0, n)
    x = np.round(x, 3)
    low, high = x.copy(), x.copy()
    bottom, top = np.round(np.quantile(x, [0.3, 0.8]), 3)
    limit = {
        "one limit": np.full(n, bottom),
        "several limits": rng.choice(np.round(np.quantile(x, [0.2, 0.3, 0.4]), 3), n),
        "limit for each cell": np.round(np.quantile(x, rng.uniform(0.1, 0.5, n)), 3),
        "both tails": np.full(n, bottom),
    }.get(kind)
    if limit is not None:
        low[x < limit], high[x < limit] = -np.inf, limit[x < limit]
    if kind in ("above", "both tails"):
        low[x > top], high[x > top] = top, np.inf
    if kind == "bins":
        low, high = np.floor(2.0 * x) / 2.0, np.floor(2.0 * x) / 2.0 + 0.5
        if family == "box-cox":
            low[low == 0.0] = -np.inf
    weight = np.round(rng.uniform(0.5, 3.0, n), 2) if is_weighted else np.ones(n)
    ends = ([None if np.isinf(end) else float(end) for end in side] for side in (low, high))
    return {"family": family, "kind": kind, **dict(zip(("low", "high"), ends, strict=True)), "weight": weight.tolist()}


def main() -> None:
    """Write the file."""
    mp.mp.dps = DIGITS
    rng, cases = np.random.default_rng(19), []
    for family, kind, is_weighted in itertools.product(("box-cox", "yeo-johnson"), KINDS, (False, True)):
        n_found = 0
        while n_found < (3 if not is_weighted else 2):
            case = make_case(rng, family, kind, is_weighted)
            found = maximize(case)
            if found is not None:
                cases.append(case | found)
                n_found += 1
    FILE.write_text(
        json.dumps({"cases": cases}, indent=None, separators=(",", ":")).replace('{"family"', '\n{"family"')
    )


if __name__ == "__main__":
    main()
