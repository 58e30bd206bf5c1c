"""Measure every figure that regressions and joint fits are meant to reach, in one run.

python -m asv_benches.report_models [--only WORD]
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bench_regression
from .report import Figure, main


def figures() -> Iterator[Figure]:
    """Yield all figures of this report, measured on data of full size."""
    size = (10_000, 1000, 5)
    name = "10000 x 1000 responses given 5 covariates, order C, two threads, over the fit of the columns alone"
    yield Figure(name, "<= 3 x", bench_regression.Regression, "track_over_fit", size)
    name = "the same with 5 % missing in each response"
    yield Figure(name, "<= 3 x", bench_regression.MissingValues, "track_over_fit", size)
    name = "a loop of scipy.optimize.minimize_scalar, from 20 of the responses, over the regression"
    yield Figure(name, ">= 300 x", bench_regression.Regression, "track_over_scipy", size)


if __name__ == "__main__":
    main(figures)
