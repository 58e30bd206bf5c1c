"""Fits of columns with censored cells, compared with maxima computed with 60 digits (tests/data/limits.json)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from reference_files import read_reference

from powerkern._typing import FloatArray
from powerkern.kernels.censored.fit import (
    LOC_ERROR,
    N_CENSORED_FIELDS,
    SCALE_ERROR,
    fit_censored_columns,
    interval_censored_columns,
    profile_censored_columns,
)
from powerkern.kernels.censored.scratch import new_censored_work
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import CURVATURE, LMBDA, LOC, N_OBS, N_RESULTS, NLL, SCALE, STATUS
from powerkern.kernels.status_codes import SCANNED
from powerkern.kernels.transforms.family import FAMILIES, YEO_JOHNSON

CASES: list[dict[str, Any]] = read_reference("limits.json")["cases"]


def fit_case(case: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Fit a case of limits.json; return its row of results and its row of statistics of the censored cells."""
    low, high = (np.array([np.nan if end is None else end for end in case[side]]) for side in ("low", "high"))
    x = np.where(np.isnan(low), high, low)
    other = np.where(np.isnan(low), -np.inf, np.where(np.isnan(high), np.inf, np.where(low < high, high, np.nan)))
    weight = np.array(case["weight"])
    given = np.empty(0) if (weight == 1.0).all() else weight
    row, censored = np.empty((1, N_RESULTS)), np.empty((1, N_CENSORED_FIELDS))
    work, own = new_work(x.size), new_censored_work(x.size, max(1, int(np.count_nonzero(other == other))))
    family = FAMILIES[case["family"]]
    fit_censored_columns(x[np.newaxis], other[np.newaxis], given, family, np.array([np.nan]), work, own, row, censored)
    return row[0], censored[0]


def test_the_reference_has_60_columns_of_all_kinds() -> None:
    assert len(CASES) == 60
    assert len({(case["family"], case["kind"]) for case in CASES}) == 12


@pytest.mark.parametrize("number", range(60))
def test_maxima_equal_the_60_digit_reference(number: int) -> None:
    case = CASES[number]
    row, censored = fit_case(case)
    assert row[STATUS] == SCANNED
    assert abs(row[LMBDA] - case["lmbda"]) <= 1e-9 * case["se"]
    assert abs(row[LOC] - case["loc"]) <= 1e-8 * case["loc_se"]
    assert abs(row[SCALE] - case["scale"]) <= 1e-8 * case["scale_se"]
    npt.assert_allclose(1.0 / np.sqrt(row[CURVATURE] * row[N_OBS]), case["se"], rtol=1e-7)
    npt.assert_allclose(censored[LOC_ERROR] * row[SCALE], case["loc_se"], rtol=1e-6)
    npt.assert_allclose(censored[SCALE_ERROR] * row[SCALE], case["scale_se"], rtol=1e-6)
    values = sum(w for low, high, w in zip(case["low"], case["high"], case["weight"], strict=True) if low == high)
    npt.assert_allclose(
        row[NLL] * row[N_OBS] + 0.5 * values * (1.0 + np.log(2.0 * np.pi)), case["nll"], rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("kind", ["positive", "negative", "both signs"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_likelihood_has_fallen_by_the_drop_at_the_ends_of_an_interval(kind: str, is_weighted: bool) -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(0.3, 1.0, 14) if kind == "both signs" else np.exp(rng.normal(size=14))
    x = -x if kind == "negative" else x
    other = np.where(x <= np.quantile(x, 0.3), -np.inf, np.where(np.arange(14) == 13, x + 0.25, np.nan))
    weight = rng.uniform(0.5, 2.0, 14) if is_weighted else np.empty(0)
    cells, work, own = (x[np.newaxis], other[np.newaxis], weight, YEO_JOHNSON), new_work(14), new_censored_work(14, 14)
    row, censored, ends = np.empty((1, N_RESULTS)), np.empty((1, N_CENSORED_FIELDS)), np.empty((1, 2))
    fit_censored_columns(*cells, np.array([np.nan]), work, own, row, censored)
    for drop in (1e-3, 0.1, 1.0):
        interval_censored_columns(*cells, np.array([[row[0, LMBDA], drop]]), work, own, ends)
        profile = np.empty((1, 3))
        profile_censored_columns(*cells, np.array([ends[0, 0], row[0, LMBDA], ends[0, 1]]), work, own, profile)
        assert ends[0, 0] < row[0, LMBDA] < ends[0, 1]
        npt.assert_allclose(profile[0] - profile[0, 1], [drop, 0.0, drop], rtol=1e-8, atol=1e-12)


def test_mirrored_columns_have_mirrored_fits_profiles_and_intervals() -> None:
    """Compare -x at 2 - lambda with x at lambda: psi changes sign, and cells below a limit become cells above it."""
    for seed in range(3):
        x = np.exp(np.random.default_rng(seed).normal(size=12))
        below = x <= np.quantile(x, 0.25)
        found = []
        for sign in (1.0, -1.0):
            other = np.where(below, -sign * np.inf, np.nan)
            cells = (sign * x[np.newaxis], other[np.newaxis], np.empty(0), YEO_JOHNSON)
            work, own = new_work(12), new_censored_work(12, 12)
            row, censored, ends = np.empty((1, N_RESULTS)), np.empty((1, N_CENSORED_FIELDS)), np.empty((1, 2))
            fit_censored_columns(*cells, np.array([np.nan]), work, own, row, censored)
            interval_censored_columns(*cells, np.array([[row[0, LMBDA], 0.2]]), work, own, ends)
            lmbdas, profile = np.array([-1.0, 0.4, 3.0]), np.empty((1, 3))
            profile_censored_columns(*cells, lmbdas if sign > 0.0 else 2.0 - lmbdas, work, own, profile)
            figures = [sign * (row[0, LMBDA] - 1.0), sign * row[0, LOC], row[0, SCALE], *profile[0]]
            found.append([*figures, *np.sort(sign * (ends[0] - 1.0)), *censored[0, [LOC_ERROR, SCALE_ERROR]]])
        npt.assert_allclose(found[1], found[0], rtol=1e-10)
