"""Fits of columns with censored cells, against maxima computed with 60 digits (tests/data/limits.json)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.testing as npt
import pytest
from reference_files import read_reference

from powerkern._typing import FloatArray
from powerkern.kernels.censored.fit import LOC_ERROR, N_CENSORED_FIELDS, SCALE_ERROR, fit_censored_columns
from powerkern.kernels.censored.scratch import new_censored_work
from powerkern.kernels.likelihood.scratch import new_work
from powerkern.kernels.results import CURVATURE, LMBDA, LOC, N_OBS, N_RESULTS, NLL, SCALE, STATUS
from powerkern.kernels.status_codes import SCANNED
from powerkern.kernels.transforms.family import FAMILIES

CASES: list[dict[str, Any]] = read_reference("limits.json")["cases"]


def fit_case(case: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Fit a case of the reference; return its row of results and its row of statistics of censored cells."""
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
def test_maxima_are_those_of_the_reference(number: int) -> None:
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
