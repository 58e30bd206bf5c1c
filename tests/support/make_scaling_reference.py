"""Write tests/data/scaling.json: outlier probabilities by thirteen rules, and quality measures of twelve of them.

Run ``python tests/support/make_scaling_reference.py`` in any folder. It takes half a minute, and needs mpmath and NumPy
but not powerkern. Parameters and probabilities are computed with 40 digits, bins of equal area in rational arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make_location_reference as location
import mpmath
import numpy as np
import oracles

TARGET = Path(__file__).parents[1] / "data" / "scaling.json"
ABOUT = (
    "rules: parameters mu, sigma (min, max of linear) and p = max(0, erf((s - mu)/(sigma sqrt 2))), 1[s > mu] where "
    "sigma = 0; linear: (s - min)/(max - min), 0 where all are equal. sd: with 1/n; nmad: about the median; niqr: "
    "linear quantiles; trimmed: mean without the floor(n/10) largest; huber, tukey: location with k = 1.345 or c = "
    "4.685 and scale by Huber's proposal 2 with k = 1.5, or median and 0 where nmad = 0. gamma: max(0, (P(s) - "
    "P(mean))/(1 - P(mean))), P of the gamma distribution of the same mean and variance (n - 1), null where there "
    "is none. measures, of p as it stands here: brier, sharpness (entropy in bits), refinement and calibration over "
    "5 to 20 bins of equal area; _out and _in: of outliers and inliers alone. improvement: harmonic mean over the "
    "stratified measures but brier, each over its mean of all rules. edges: of n bins, of mean+nmad. Written by "
    "tests/support/make_scaling_reference.py."
)
CENTERS, SCALES = ("mean", "median", "trimmed"), ("sd", "nmad", "niqr")
RULES = ("linear", *(f"{center}+{scale}" for center in CENTERS for scale in SCALES), "huber", "tukey")
N_EDGES = (5, 10, 20)


def samples() -> Iterator[tuple[str, list[float], list[int]]]:
    """Yield (name, scores, labels) of samples: skewed, far outliers, many outliers, negative, tied, constant."""
    rng = np.random.default_rng(11)
    yield "ten", [1.0, 1.2, 0.9, 1.1, 1.3, 0.8, 1.0, 1.4, 3.0, 5.0], [0] * 8 + [1] * 2
    yield "five", [9.7, 1.2, 1.4, 1.1, 1.3], [1, 0, 0, 0, 0]
    skewed = np.concatenate([rng.lognormal(size=27), rng.lognormal(3.0, 0.3, size=3)]).round(4)
    yield "skewed", skewed.tolist(), [0] * 27 + [1] * 3
    many = np.concatenate([1.0 + 0.1 * rng.exponential(size=17), rng.uniform(1.2, 4.0, size=7)]).round(4)
    yield "a third are outliers", many.tolist(), [0] * 17 + [1] * 7
    negative = rng.normal(-0.1, 0.05, size=24).round(4)
    yield "negative", negative.tolist(), (negative > np.sort(negative)[-5]).astype(int).tolist()
    yield "ties, no MAD", [0.0] * 14 + [1.0, 2.0, 3.0, 5.0], [0] * 16 + [1] * 2
    yield "ties, no MAD but a range", [0.0] * 11 + [1.0] * 5 + [9.0, 12.0], [0] * 16 + [1] * 2
    yield "constant", [2.5] * 6, [0] * 5 + [1]


def parameters(s: list[mpmath.mpf]) -> dict[str, tuple[mpmath.mpf, mpmath.mpf]]:
    """Return for each rule its two parameters, such as center and scale, for the scores `s`."""
    n = len(s)
    mean, median = mpmath.fsum(s) / n, location.median(s)
    normal_quartile = location.normal_quantile(mpmath.mpf(3) / 4)
    nmad = location.median([abs(v - median) for v in s]) / normal_quartile
    iqr = location.quantile(s, mpmath.mpf(3) / 4) - location.quantile(s, mpmath.mpf(1) / 4)
    kept = sorted(s)[: n - n // 10]
    centers = dict(zip(CENTERS, (mean, median, mpmath.fsum(kept) / len(kept)), strict=True))
    sd = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in s) / n)
    scales = dict(zip(SCALES, (sd, nmad, iqr / (2 * normal_quartile)), strict=True))
    found = {"linear": (min(s), max(s))}
    found |= {f"{center}+{scale}": (centers[center], scales[scale]) for center in CENTERS for scale in SCALES}
    for rule, weight in (("huber", location.huber_weight("1.345")), ("tukey", location.bisquare_weight("4.685"))):
        pair = [median, nmad]
        if nmad > 0:
            pair = location.fixed_point(s, median, nmad, weight, location.huber_factor("1.5", n - 1))
        found[rule] = (pair[0], pair[1])
    return found


def probability(rule: str, s: mpmath.mpf, mu: mpmath.mpf, sigma: mpmath.mpf) -> mpmath.mpf:
    if rule == "linear":
        return (s - mu) / (sigma - mu) if sigma > mu else mpmath.mpf(0)
    if sigma == 0:
        return mpmath.mpf(s > mu)
    return max(mpmath.mpf(0), mpmath.erf((s - mu) / (sigma * mpmath.sqrt(2))))


def gamma_probabilities(s: list[mpmath.mpf]) -> list[float] | None:
    n = len(s)
    mean = mpmath.fsum(s) / n
    variance = mpmath.fsum((v - mean) ** 2 for v in s) / (n - 1)
    if mean <= 0 or variance == 0:
        return None

    def cdf(value: mpmath.mpf) -> mpmath.mpf:
        return mpmath.gammainc(mean**2 / variance, 0, max(value, 0) * mean / variance, regularized=True)

    return [rounded(max(mpmath.mpf(0), (cdf(v) - cdf(mean)) / (1 - cdf(mean)))) for v in s]


def rounded(value: mpmath.mpf) -> float:
    """Round to 12 decimals."""
    return round(float(value), 12)


def measures(labels: list[int], p: list[float]) -> dict[str, float]:
    y = np.array(labels, dtype=float)
    binned = oracles.binned_errors(y, np.array(p), range(5, 21))
    found = {}
    for suffix, stratum, members in (("", "all", (0, 1)), ("_out", "outliers", (1,)), ("_in", "inliers", (0,))):
        pairs = [(label, v) for label, v in zip(labels, p, strict=True) if label in members]
        brier = mpmath.fsum((mpmath.mpf(v) - label) ** 2 for label, v in pairs) / len(pairs)
        entropy = mpmath.fsum(oracles.entropy(v) for _, v in pairs if 0.0 < v < 1.0) / len(pairs)
        found |= {f"brier{suffix}": rounded(brier), f"sharp{suffix}": rounded(entropy)}
        found |= {f"refine{suffix}": rounded(binned[stratum][0]), f"calib{suffix}": rounded(binned[stratum][1])}
    return found


def improvement(all_measures: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return the harmonic improvement score of each rule; lower is better."""
    keys = [f"{measure}_{stratum}" for measure in ("sharp", "refine", "calib") for stratum in ("out", "in")]
    means = {key: sum(found[key] for found in all_measures.values()) / len(all_measures) for key in keys}
    scores = {}
    for rule, found in all_measures.items():
        if any(found[key] == 0.0 < means[key] for key in keys):
            scores[rule] = 0.0
        else:
            scores[rule] = len(keys) / sum(means[key] / found[key] if means[key] > 0.0 else 1.0 for key in keys)
    return scores


def edges(p: list[float], n_bins: int) -> list[float]:
    values, counts = np.unique(p, return_counts=True)
    return oracles.equal_area_bins(values.tolist(), counts.tolist(), n_bins)[1]


def record(name: str, scores: list[float], labels: list[int]) -> dict[str, Any]:
    with mpmath.workdps(location.DIGITS):
        s = [mpmath.mpf(v) for v in scores]
        found = parameters(s)
        p = {rule: [rounded(probability(rule, v, *found[rule])) for v in s] for rule in RULES}
        by_rule = {rule: measures(labels, p[rule]) for rule in RULES}
        score = improvement(by_rule)
        rules = {
            rule: {
                "parameters": [float(v) for v in found[rule]],
                "p": p[rule],
                "measures": by_rule[rule],
                "improvement": rounded(score[rule]),
            }
            for rule in RULES
        }
        return {
            "name": name,
            "scores": scores,
            "labels": labels,
            "rules": rules,
            "gamma": gamma_probabilities(s),
            "edges": {str(n_bins): edges(p["mean+nmad"], n_bins) for n_bins in N_EDGES},
        }


def main() -> None:
    lines = ",\n".join(json.dumps(record(*sample)) for sample in samples())
    TARGET.write_text(f'{{"about": {json.dumps(ABOUT)}, "samples": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
