"""Maximum likelihood fits of a range of a sorted column, computed from logs, compared with SciPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from powerkern._status import Status
from powerkern.kernels.location.weights import frequency_weights, new_frequency_work
from powerkern.kernels.results import DEFERRED, LMBDA, N_EVAL, N_OBS, N_RESULTS, STATUS, X_MAX, X_MIN
from powerkern.kernels.robust import reweighting
from powerkern.kernels.robust.column import Column, Prescaling, Prestandardized
from powerkern.kernels.robust.options import UNTIL_SETTLED
from powerkern.kernels.robust.scratch import ROOM, new_robust_work
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.transforms.rectified import NOT_RECTIFIED, QUARTILES, SortedColumn

NORMAL = np.sort(np.random.default_rng(4).normal(size=60))


def fit_kept(x, family, start, stop, weight=None, given=np.nan):
    """Fit the values ``x[start:stop]`` of a sorted column `x`; return the row of results.

    Parameters
    ----------
    x : (n,) ndarray
        The sorted column.
    family : int
        Code of the transform.
    start, stop : int
        Range of the values to fit.
    weight : (n,) ndarray, optional
        Weights.
    given : float
        Lambda; NaN to estimate it.
    """
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


# --- the alternation ----------------------------------------------------------------------------------------


def alternate(ranges, n_reweight, max_steps, statuses=(), first_rule=QUARTILES):
    """Run `reweight` with replaced selections and fits; return the values kept, the row of results, and all calls.

    Fit k finds the lambda (k + 1)/10, in units of the data, in 3 evaluations. The power of the prescaling is 2.

    Parameters
    ----------
    ranges : sequence of (start, stop) or (start, stop, excluded_low, excluded_high)
        Values kept by each selection; the last range is repeated.
    n_reweight, max_steps : int
        Number of fits requested, and largest number of steps.
    statuses : sequence of Status
        Statuses of the first fits; later fits are OK.
    first_rule : int
        Code of the rectification rule of the first selection.

    Returns
    -------
    kept
        The values kept in the end.
    row : (N_RESULTS,) ndarray
        The row of results.
    selections, fits : list of tuple
        Arguments of the calls.
    """
    selections, fits, row = [], [], np.full(N_RESULTS, np.nan)
    options = SimpleNamespace(n_reweight=n_reweight, first_rule=first_rule, adaptive=True)
    column = SimpleNamespace(prescaling=SimpleNamespace(power=2.0), standardized="standardized")

    def keep(standardized, lmbda, rule, adaptive, given_options, work):
        assert (standardized, given_options) == ("standardized", options)
        selections.append((lmbda, rule, adaptive))
        start, stop, *excluded = ranges[min(len(selections), len(ranges)) - 1]
        low, high = excluded or (0.0, 0.0)
        return reweighting.kept_by_index(start, stop)._replace(excluded_low=low, excluded_high=high)

    def fit(given_column, kept, lmbda, given, work, out):
        assert given_column is column
        fits.append((kept.start, kept.stop, lmbda, given))
        out[LMBDA] = 0.1 * len(fits) if np.isnan(given) else given
        out[STATUS] = statuses[len(fits) - 1] if len(statuses) >= len(fits) else Status.OK
        out[N_EVAL] = 3.0

    kept = reweighting.reweight(keep, fit, column, 0.8, max_steps, options, None, row)
    return kept, row, selections, fits


def test_steps_end_when_the_values_kept_no_longer_change():
    ranges = [(0, 10), (1, 9), (1, 9, 0.5, 0.0), (1, 9, 0.5, 0.25), (1, 9, 0.5, 0.25), (3, 4)]
    kept, row, selections, fits = alternate(ranges, UNTIL_SETTLED, 50)
    assert (kept.start, kept.stop, kept.excluded_low, kept.excluded_high) == ranges[4]
    assert [each[:2] for each in fits] == [(0, 10), (1, 9), (1, 9), (1, 9)]
    np.testing.assert_allclose([each[2] for each in fits], [0.8, 0.2, 0.4, 0.6])
    assert np.isnan([each[3] for each in fits]).all()
    np.testing.assert_allclose([each[0] for each in selections], [0.8, 0.2, 0.4, 0.6, 0.8])
    assert [each[1:] for each in selections] == [(QUARTILES, False)] + 4 * [(NOT_RECTIFIED, True)]
    assert (row[LMBDA], row[STATUS], row[N_EVAL]) == (0.4, Status.OK, 12.0)


@pytest.mark.parametrize("change", [(2, 12), (0, 11), (1, 10)])
def test_both_ends_of_the_range_must_settle(change):
    _, _, _, fits = alternate([(1, 12), change, change], UNTIL_SETTLED, 50)
    assert len(fits) == 2


def test_steps_that_never_settle_are_reported():
    ranges = [(k % 2, 9) for k in range(60)]
    _, row, _, fits = alternate(ranges, UNTIL_SETTLED, 7)
    assert (len(fits), row[STATUS], row[N_EVAL]) == (7, Status.NOT_SETTLED, 21.0)
    _, row, _, fits = alternate(ranges, 7, 7)
    assert (len(fits), row[STATUS]) == (7, Status.OK)


def test_a_last_step_evaluates_the_lambda_found():
    kept, row, _, fits = alternate([(0, 9), (1, 9), (2, 9)], 2, 3, (Status.OK, Status.OK, Status.FIXED))
    assert [each[:2] for each in fits] == [(0, 9), (1, 9), (2, 9)]
    assert np.isnan([each[3] for each in fits[:2]]).all()
    assert fits[2][3] == 0.2
    assert (row[LMBDA], row[STATUS], row[N_EVAL], kept.start) == (0.2, Status.OK, 9.0, 2)


@pytest.mark.parametrize("first_rule", [QUARTILES, NOT_RECTIFIED])
def test_without_steps_the_plain_transform_selects_values_at_the_start(first_rule):
    _, row, selections, fits = alternate([(1, 8)], 0, 1, first_rule=first_rule)
    assert selections == [(0.8, NOT_RECTIFIED, False)]
    assert fits == [(1, 8, 0.8, 0.4)]
    assert row[LMBDA] == 0.4
    assert alternate([(1, 8)], 1, 1, first_rule=first_rule)[2] == [(0.8, first_rule, False)]


@pytest.mark.parametrize("stop, n_fits", [(5, 1), (6, 1), (7, 2)])
def test_fewer_than_two_values_are_not_fitted(stop, n_fits):
    kept, row, _, fits = alternate([(0, 9), (5, stop), (0, 9)], 2, 2)
    assert len(fits) == n_fits
    assert (kept.start, kept.stop) == (5, stop)
    assert row[LMBDA] == pytest.approx(0.1 * n_fits)


@pytest.mark.parametrize("status", [DEFERRED, Status.UNREPRESENTABLE, Status.CONSTANT])
def test_a_fit_that_fails_ends_the_steps(status):
    _, row, _, fits = alternate([(0, 9), (1, 9), (2, 9)], 3, 3, (Status.OK, status))
    assert (len(fits), row[STATUS], row[N_EVAL]) == (2, status, 6.0)


@pytest.mark.parametrize("n_reweight, expected", [(UNTIL_SETTLED, 50), (0, 0), (3, 3)])
def test_number_of_fits(n_reweight, expected):
    assert reweighting.max_fits(SimpleNamespace(n_reweight=n_reweight)) == expected


@pytest.mark.parametrize("size", [2047, 2048, 2061])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_sixteenth_value_is_taken(weighted, size):
    logs, weight = np.arange(float(size)), np.arange(float(size)) + 0.5
    out, weight_out = np.empty(size), np.empty(size)
    few, own = reweighting._thin(weight if weighted else None, logs, out, weight_out)
    np.testing.assert_array_equal(few, logs[8 : 16 * (size // 16) : 16])
    if weighted:
        np.testing.assert_array_equal(own, weight[8 : 16 * (size // 16) : 16])
    else:
        assert own is None


def test_parts_of_the_end_weights_are_excluded_and_restored():
    counts = frequency_weights(np.array([2.0, 1.0, 3.0, 4.0]), new_frequency_work(4))
    before = counts.w.copy()
    kept = reweighting.kept_by_index(1, 4)._replace(excluded_low=0.01, excluded_high=0.03)
    ends = reweighting._exclude_ends(counts, kept)
    np.testing.assert_allclose(counts.w, before - [0.0, 0.01, 0.0, 0.03], rtol=1e-15)
    reweighting._restore(counts, kept, ends)
    np.testing.assert_array_equal(counts.w, before)
    assert reweighting._exclude_ends(None, kept) == (0.0, 0.0)
    reweighting._restore(None, kept, (0.0, 0.0))
