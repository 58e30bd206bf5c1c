"""Maximum likelihood fits of a range of a sorted column, computed from logs, compared with SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from powerkern._status import Status
from powerkern.kernels.location.weights import frequency_weights
from powerkern.kernels.results import DEFERRED, LMBDA, N_EVAL, N_OBS, N_RESULTS, STATUS, X_MAX, X_MIN
from powerkern.kernels.robust import reweighting
from powerkern.kernels.robust.column import Column, Prescaling, Prestandardized
from powerkern.kernels.robust.scratch import ROOM, new_robust_work
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.transforms.rectified import SortedColumn

NORMAL = np.sort(np.random.default_rng(4).normal(size=60))


def fit_kept(x, family, start, stop, weight=None, given=np.nan):
    """Fit the values ``x[start:stop]`` of a sorted column `x`; return the row of results."""
    mirrored, work, row = family == YEO_JOHNSON, new_robust_work(x.size, weight is not None), np.full(N_RESULTS, 7.0)
    logs = np.copysign(np.log1p(abs(x)), x) if mirrored else np.log(x)
    values, logs = np.append(x, np.ones(ROOM)), np.append(logs, np.ones(ROOM))
    ordered = SortedColumn(values, logs, x.size, int((logs[: x.size] < 0.0).sum()), 2.0 * mirrored, 15, 44)
    counts = None if weight is None else frequency_weights(weight, work.counts)
    standardized = Prestandardized(ordered, counts, None, work.y)
    column = Column(x, family, Prescaling(0.0, 1.0, 1.0, Status.OK), standardized)
    with np.errstate(all="ignore"):
        kept = reweighting.kept_by_index(start, stop)
        reweighting.fit_by_logs(column, kept, 1.0, given, work, row)
    return row


@pytest.mark.parametrize("start, stop", [(0, 60), (4, 60), (0, 55), (7, 52)])
@pytest.mark.parametrize(
    "family, x",
    [
        (BOX_COX, np.exp(NORMAL)),
        (BOX_COX, np.exp(2.5 + NORMAL)),  # all logs are positive
        (YEO_JOHNSON, NORMAL),
        (YEO_JOHNSON, NORMAL + 0.7),
    ],
)
def test_logs_of_the_values_kept_give_their_most_likely_lambda(family, x, start, stop):
    row, part = fit_kept(x, family, start, stop), x[start:stop]
    assert row[STATUS] == Status.OK
    assert (row[N_OBS], row[X_MIN], row[X_MAX]) == (stop - start, part[0], part[-1])
    assert 1 <= row[N_EVAL] <= 8
    expected = stats.boxcox(part)[1] if family == BOX_COX else stats.yeojohnson(part)[1]
    assert row[LMBDA] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("family, x", [(BOX_COX, np.exp(NORMAL)), (YEO_JOHNSON, NORMAL)])
def test_weights_repeat_the_values_kept(family, x):
    weight = np.random.default_rng(5).integers(1, 3, 60)
    row = fit_kept(x, family, 5, 55, weight.astype(float))
    expected = fit_kept(np.repeat(x, weight), family, weight[:5].sum(), weight[:55].sum())
    assert row[STATUS] == Status.OK
    assert row[LMBDA] == pytest.approx(expected[LMBDA], abs=1e-11)


@pytest.mark.parametrize("start, stop", [(0, 10), (50, 60)])
def test_values_of_one_sign_from_a_column_of_both_are_deferred(start, stop):
    """In a column of both signs, logs have no reference value, which a range of one sign needs."""
    assert fit_kept(NORMAL, YEO_JOHNSON, start, stop)[STATUS] == DEFERRED


@pytest.mark.parametrize("family, x", [(BOX_COX, np.exp(NORMAL)), (YEO_JOHNSON, NORMAL)])
def test_a_given_lambda_is_evaluated_on_the_values_kept(family, x):
    row = fit_kept(x, family, 5, 55, given=0.25)
    assert (row[LMBDA], row[STATUS], row[N_EVAL]) == (0.25, Status.FIXED, 1)
