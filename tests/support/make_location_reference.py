"""Write tests/data/location.json: estimates of location and scale of small samples, computed with 40 digits.

Run ``python tests/support/make_location_reference.py`` in any folder. It takes half a minute, and needs mpmath and
NumPy but not powerkern. Joint estimates are fixed points: the iteration starts from the median and the normalized MAD
and ends when 35 digits no longer change. The estimates are then inserted into their equations as a check.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

TARGET = Path(__file__).parents[1] / "data" / "location.json"
ABOUT = (
    "psi_k(u) = max(-k, min(k, u)); beta(k) = E psi_k(Z)**2. nmad: median|x - median|/Phi^-1(3/4). niqr: interquartile "
    "range (linear quantiles) over that of N(0, 1). huber_location_k: sum psi_k((x - mu)/nmad) = 0. bisquare_location: "
    "the same with u(1 - u**2)**2, u = (x - mu)/(4.685 nmad). huber_scale_k: sum psi_k((x - median)/s)**2 = n beta(k), "
    "n - 1 with ddof1. proposal2: both equations, n - 1; _1.345_1.5: k of location and scale; bisquare_proposal2: "
    "bisquare location. biweight_location: one step, c = 6; biweight_scale: c = 9, of the raw MAD. Written by "
    "tests/support/make_location_reference.py."
)
DIGITS = 40


def samples() -> Iterator[tuple[str, list[float]]]:
    """Yield samples by name: tiny, skewed, contaminated, multimodal, constant, and of a tiny scale."""
    rng = np.random.default_rng(7)
    normal = rng.normal(size=40)
    yield "three", [1.0, 2.0, 10.0]
    yield "four", [0.0, 1.0, 2.0, 3.0]
    yield "five, one far", [1.2, 9.7, 1.4, 1.1, 1.3]
    yield "1 to 10", list(range(1, 11))
    yield "1 to 9 and 1000", [*range(1, 10), 1000]
    yield "normal", (50.0 + 7.0 * rng.normal(size=41)).round(4).tolist()
    yield "lognormal", np.exp(normal).round(4).tolist()
    yield "exponential, a tenth far", [*rng.exponential(size=36).round(4).tolist(), 20.0, 22.5, 30.0, 41.0]
    modes = [1 + 0.3 * normal[:14], 3 + 0.2 * normal[14:30], 9 + normal[30:]]
    yield "three modes", np.concatenate(modes).round(4).tolist()
    yield "30 % far", np.concatenate([normal[:28], 30 + 2 * normal[28:]]).round(4).tolist()
    yield "45 % far", np.concatenate([normal[:22], 12 + normal[22:]]).round(4).tolist()
    yield "tiny scale", [float(f"{v:.5e}") for v in 1e-9 * normal]
    yield "constant", [3.0] * 6


def median(x: list[mpmath.mpf]) -> mpmath.mpf:
    return quantile(x, mpmath.mpf(1) / 2)


def quantile(x: list[mpmath.mpf], p: mpmath.mpf) -> mpmath.mpf:
    """Return the `p`-quantile of a sample by linear interpolation between order statistics (type 7)."""
    ordered = sorted(x)
    position = p * (len(x) - 1)
    i = min(int(position), len(x) - 2)
    return ordered[i] + (position - i) * (ordered[i + 1] - ordered[i])


def normal_quantile(p: mpmath.mpf) -> mpmath.mpf:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


def beta(k: mpmath.mpf) -> mpmath.mpf:
    return 2 * mpmath.ncdf(k) - 1 + 2 * k**2 * mpmath.ncdf(-k) - 2 * k * mpmath.npdf(k)


def clip(u: mpmath.mpf, k: mpmath.mpf) -> mpmath.mpf:
    return max(-k, min(k, u))


def huber_weight(k: str) -> Any:
    return lambda u: 1 if abs(u) <= mpmath.mpf(k) else mpmath.mpf(k) / abs(u)


def bisquare_weight(c: str) -> Any:
    return lambda u: (1 - (u / mpmath.mpf(c)) ** 2) ** 2 if abs(u) < mpmath.mpf(c) else mpmath.mpf(0)


def fixed_point(x: list[mpmath.mpf], mu: mpmath.mpf, s: mpmath.mpf, weight: Any, scale: Any) -> list[mpmath.mpf]:
    """Solve for location and scale by iteration from `mu` and `s`.

    Parameters
    ----------
    x : list of mpf
        The sample.
    mu, s : mpf
        Location and scale at the start.
    weight : callable
        Weight of a residual (v - mu)/s in the mean that is the next location.
    scale : callable or None
        Factor by which s is multiplied, as a function of all residuals; None keeps s.
    """
    for _ in range(100_000):
        w = [weight((v - mu) / s) for v in x]
        step = mpmath.fdot(w, [v - mu for v in x]) / mpmath.fsum(w)
        factor = mpmath.mpf(1) if scale is None else scale([(v - mu) / s for v in x])
        mu, s = mu + step, s * factor
        if abs(step) <= s * mpmath.mpf(10) ** -35 and abs(factor - 1) <= mpmath.mpf(10) ** -35:
            break
    residuals = [(v - mu) / s for v in x]
    assert abs(mpmath.fsum(weight(u) * u for u in residuals)) < mpmath.mpf(10) ** -25
    assert scale is None or abs(scale(residuals) - 1) < mpmath.mpf(10) ** -25
    return [mu, s]


def huber_factor(k: str, n: int) -> Any:
    """Return a function of the residuals u that gives the factor of the scale: sqrt(sum min(|u|, k)^2/(n beta)).

    Here beta is the expectation of min(|Z|, k)^2 for a standard normal Z. The factor is 1 if the scale solves Huber's
    equation.
    """
    limit = mpmath.mpf(k)
    return lambda u: mpmath.sqrt(mpmath.fsum(clip(v, limit) ** 2 for v in u) / (n * beta(limit)))


def huber_scale(x: list[mpmath.mpf], center: mpmath.mpf, k: str, n: int) -> mpmath.mpf:
    """Solve Huber's equation for the scale s by bisection; the left side of the equation decreases with s.

    Parameters
    ----------
    x : list of mpf
        The sample.
    center : mpf
        Location.
    k : str
        Huber's constant, as a decimal.
    n : int
        Divisor of the sum of squares.
    """
    low, high = mpmath.mpf(0), 10 * max(abs(v - center) for v in x)
    factor = huber_factor(k, n)
    while high - low > high * mpmath.mpf(10) ** -30:
        s = (low + high) / 2
        low, high = (s, high) if factor([(v - center) / s for v in x]) > 1 else (low, s)
    return (low + high) / 2


def biweight(x: list[mpmath.mpf]) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the biweight location after one step with constant c = 6, and the biweight scale with c = 9."""
    center = median(x)
    mad = median([abs(v - center) for v in x])
    weights = [bisquare_weight("6")((v - center) / mad) for v in x]
    location = center + mpmath.fdot(weights, [v - center for v in x]) / mpmath.fsum(weights)
    inside = [((v - center) ** 2, ((v - center) / (9 * mad)) ** 2) for v in x if abs(v - center) < 9 * mad]
    above = mpmath.fsum(d * (1 - u) ** 4 for d, u in inside)
    below = mpmath.fsum((1 - u) * (1 - 5 * u) for _, u in inside)
    return location, mpmath.sqrt(len(x) * above) / abs(below)


def record(name: str, x: list[float]) -> dict[str, Any]:
    with mpmath.workdps(DIGITS):
        values, n = [mpmath.mpf(v) for v in x], len(x)
        center = median(values)
        nmad = median([abs(v - center) for v in values]) / normal_quantile(mpmath.mpf(3) / 4)
        iqr = quantile(values, mpmath.mpf(3) / 4) - quantile(values, mpmath.mpf(1) / 4)
        found: dict[str, Any] = {
            "median": center,
            "nmad": nmad,
            "niqr": iqr / (2 * normal_quantile(mpmath.mpf(3) / 4)),
        }
        if nmad > 0:
            for k in ("1.345", "1.5"):
                found[f"huber_location_{k}"] = fixed_point(values, center, nmad, huber_weight(k), None)[0]
                found[f"huber_scale_{k}"] = huber_scale(values, center, k, n)
                found[f"proposal2_{k}"] = fixed_point(values, center, nmad, huber_weight(k), huber_factor(k, n - 1))
            found["huber_scale_2.5_ddof1"] = huber_scale(values, center, "2.5", n - 1)
            found["bisquare_location"] = fixed_point(values, center, nmad, bisquare_weight("4.685"), None)[0]
            for key, weight in (
                ("proposal2_1.345_1.5", huber_weight("1.345")),
                ("bisquare_proposal2", bisquare_weight("4.685")),
            ):
                found[key] = fixed_point(values, center, nmad, weight, huber_factor("1.5", n - 1))
            found["biweight_location"], found["biweight_scale"] = biweight(values)
        exact = {key: np.array(value, dtype=float).tolist() for key, value in found.items()}
        return {"name": name, "x": x, "exact": exact}


def main() -> None:
    lines = ",\n".join(json.dumps(record(name, x)) for name, x in samples())
    TARGET.write_text(f'{{"about": {json.dumps(ABOUT)}, "samples": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
