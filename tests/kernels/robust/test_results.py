"""Every field of a robust fit, compared with NumPy and SciPy; weights with repeated values; cut-offs and far tails."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import oracles
import pytest
from scipy import stats

from powerkern import Status
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._status import Route
from powerkern.kernels.location.loc_scale import LocScale
from powerkern.kernels.location.weights import frequency_weights, new_frequency_work
from powerkern.kernels.results import DEFERRED, FIELDS, LMBDA, N_EVAL, N_RESULTS, STATUS
from powerkern.kernels.robust import (
    adaptive_rewml,
    carroll,
    cellwise,
    column_results,
    qq,
    qq_column,
    reweighting,
    trimmed,
)
from powerkern.kernels.robust import fit as fits
from powerkern.kernels.robust.column import Column, Prescaling, Prestandardized, SearchResult
from powerkern.kernels.robust.options import with_rule
from powerkern.kernels.robust.prestandardization import prestandardize_column
from powerkern.kernels.robust.qq_column import make_scores
from powerkern.kernels.robust.reweighting import kept_by_index
from powerkern.kernels.robust.scratch import new_robust_work
from powerkern.kernels.robust.search import GridScan
from powerkern.kernels.transforms.family import BOX_COX, YEO_JOHNSON
from powerkern.kernels.transforms.rectified import (
    BOTH,
    NOT_RECTIFIED,
    QUARTILES,
    ROOM,
    SortedColumn,
    transform_sorted,
)

CODES = {"box-cox": BOX_COX, "yeo-johnson": YEO_JOHNSON}
CUTOFF = oracles.CUTOFF
SETTINGS = [
    ("robust", {}),
    ("rewml", {}),
    ("rewml", {"convention": "cellwise"}),
    ("rewml-nr", {"n_reweight": 1}),
    ("carroll", {}),
    ("mtl", {"h": 0.8}),
    ("rewml", {"n_reweight": 0}),
    ("robust", {"prestandardize": "none", "n_reweight": "settled", "first_weights": "plain"}),
    ("rewml", {"search": "brent", "change_points": (0.2, 0.7), "c": 0.7}),
]
settings = pytest.mark.parametrize("estimator, options", SETTINGS, ids=lambda v: v if isinstance(v, str) else "")
families = pytest.mark.parametrize("family", CODES)


def fit(x, family, estimator, options, weight=None):
    """Fit one column, which may be unsorted and have NaN; return its results by the names of FIELDS.

    Parameters
    ----------
    x : (n,) ndarray
        The column.
    family, estimator : str
        Names of transform and estimator.
    options : dict
        Options of the estimator.
    weight : (n,) ndarray, optional
        Weights.
    """
    order = np.argsort(x)
    columns = np.array([x[order]])
    weights = None if weight is None else np.array([weight[order]], dtype=float)
    chosen, out = ESTIMATORS[estimator](**options), np.full((1, N_RESULTS), np.nan)
    work = new_robust_work(x.size, weight is not None)
    chosen.entries.fit(columns, weights, CODES[family], chosen.kernel_options, work, out)
    return dict(zip(FIELDS, out[0].tolist(), strict=True))


def sample(family, n=26, seed=0):
    x = np.random.default_rng(seed).lognormal(0.4, 0.6, n)
    x[: n // 8] = 40.0, *x[1 : n // 8] * 0.01
    return x if family == "box-cox" else x - 1.5


def transform(x, family, lmbda):
    return stats.boxcox(x, lmbda) if family == "box-cox" else stats.yeojohnson(x, lmbda)


def negative_log_likelihood(x, w, family, lmbda):
    y = transform(x, family, lmbda)
    mean = np.average(y, weights=w)
    slope = np.log(x) if family == "box-cox" else np.sign(x) * np.log1p(abs(x))
    variance = np.average((y - mean) ** 2, weights=w)
    return 0.5 * math.log(variance) - (lmbda - 1.0) * np.average(slope, weights=w)


@families
@settings
@pytest.mark.parametrize("weighted", [False, True])
def test_fields_describe_the_values_kept(weighted, estimator, options, family):
    x = sample(family)
    w = np.random.default_rng(1).integers(1, 4, x.size).astype(float) if weighted and estimator != "mtl" else None
    found = fit(x, family, estimator, options, w)
    w = np.ones(x.size) if w is None else w
    assert (found["n_obs"], found["x_min"], found["x_max"]) == (w.sum(), x.min(), x.max())
    kept = (found["kept_low"] <= x) & (x <= found["kept_high"])
    assert found["n_kept"] == pytest.approx(w[kept].sum(), rel=1e-13)
    u = (x - found["center"]) / found["divisor"]
    y, lmbda = transform(u, family, found["lmbda"]), found["lmbda"]
    ref = transform(np.array([found["ref"]]), family, lmbda)[0]
    shown = stats.boxcox(x / found["ref"], lmbda) if family == "box-cox" else y - ref
    shown = found["slope"] * shown + found["intercept"]
    assert found["log_factor"] == 0.0
    np.testing.assert_allclose(shown, (y - found["loc"]) / found["scale"], rtol=1e-8, atol=1e-8)
    mean = np.average(y[kept], weights=w[kept])
    sd, n_kept = math.sqrt(np.average((y[kept] - mean) ** 2, weights=w[kept])), w[kept].sum()
    if estimator == "carroll":
        z = (y - found["loc"]) / found["scale"]
        psi = np.clip(z, -1.5, 1.5)
        assert abs(w @ psi) < 1e-9
        assert w @ (psi * z) == pytest.approx(w.sum() * math.erf(1.5 / math.sqrt(2.0)), rel=1e-9)
    else:
        within = stats.truncnorm
        factors = {
            "robust": [1.0 / within(-c, c).std() for c in CUTOFF + 0.5 * np.arange(5)],
            "mtl": [1.0 / within(*stats.norm.interval(n_kept / w.sum())).std()],
        }.get(estimator, [1.0 / within(-CUTOFF, CUTOFF).std()])
        if "convention" in options:
            factors = [math.sqrt(n_kept / (n_kept - 1.0))]
        assert found["loc"] == pytest.approx(mean, abs=1e-12)
        assert np.min(np.abs(np.array(factors) * sd / found["scale"] - 1.0)) < 1e-9
    likelihood = [negative_log_likelihood(u[kept], w[kept], family, lmbda + k) for k in (-1e-3, 0.0, 1e-3)]
    assert found["nll"] == pytest.approx(likelihood[1] + math.log(found["divisor"]), abs=1e-12)
    curvature = (likelihood[0] - 2.0 * likelihood[1] + likelihood[2]) / 1e-6
    assert found["curvature"] == pytest.approx(curvature, rel=1e-5)
    assert found["status"] in (Status.SCANNED, Status.MULTIMODAL)
    assert found["route"] == (Route.ONE_PASS if estimator == "carroll" else Route.REFIT)


@families
@settings
def test_weights_repeat_values_in_every_field(estimator, options, family):
    x = sample(family, seed=3)
    w = np.random.default_rng(4).integers(1, 4, x.size)
    weighted = fit(x, family, estimator, options, w)
    repeated = fit(np.repeat(x, w), family, estimator, options)
    for name in ("n_obs", "x_min", "x_max", "status", "route", "log_factor"):
        assert weighted[name] == repeated[name]
    for name in ("center", "divisor", "n_kept"):
        assert weighted[name] == pytest.approx(repeated[name], rel=1e-13)
    for name in ("lmbda", "lmbda0", "loc", "scale", "nll", "curvature", "objective", "kept_low", "kept_high"):
        assert weighted[name] == pytest.approx(repeated[name], rel=2e-5, abs=2e-5)


# --- cut-offs at a given lambda -------------------------------------------------------------------------


def invert(y, family, lmbda):
    """Return the value whose transform is y; the nearer end of the domain if there is none."""
    if family == "box-cox":
        base = max(lmbda * y + 1.0, 0.0) if lmbda else math.exp(y)
        with np.errstate(divide="ignore"):
            return float(np.float64(base) ** (1.0 / lmbda)) if lmbda else base
    if y < 0.0:
        return -invert(-y, family, 2.0 - lmbda)
    return invert(y, "box-cox", lmbda) - 1.0


def adapted(distance):
    """Return the adaptive cut-off for the distances of a column's values from its center, in scales.

    It is the one of four cut-offs beyond which the number of values exceeds the number expected in a normal sample most
    clearly, by the log-likelihood ratio of a Poisson count. If no ratio exceeds 2.3, it is CUTOFF + 2.
    """
    chosen, most = CUTOFF + 2.0, 2.3
    for trial in CUTOFF + np.array([0.0, 0.5, 1.0, 1.5]):
        outside, expected = np.count_nonzero(distance > trial), distance.size * 2.0 * stats.norm.sf(trial)
        excess = outside * math.log(outside / expected) - (outside - expected) if outside > expected else 0.0
        if excess > most:
            chosen, most = trial, excess
    return chosen


def has_far_tail(y, kept):
    """Return whether a tail of sorted values `y` is far and kept: at least 5 values, and 10 % of all, beyond 3 scales.

    A tail is kept if the outermost value of its side is kept by the mask `kept`.
    """
    loc, scale = oracles.huber_one_step(y, 1.5, 1.556931 / 2.0)
    tails = (y < loc - 3.0 * scale) & kept[0], (y > loc + 3.0 * scale) & kept[-1]
    return max(np.count_nonzero(tail) for tail in tails) >= max(5, 0.1 * y.size)


@families
@pytest.mark.parametrize("estimator, adaptive", [("robust", True), ("robust", False), ("rewml", False)])
@pytest.mark.parametrize("rule", ["none", "paper"])
@pytest.mark.parametrize("lmbda", [-0.4, 0.0, 0.7, 1.6])
def test_cutoff_at_a_lambda(lmbda, rule, estimator, adaptive, family):
    rng = np.random.default_rng(round(10 * lmbda) + 7)
    for n, n_far, far in ((24, 0, 0.0), (24, 2, 2.0), (30, 6, 6.0), (30, 5, -7.0), (28, 3, 4.0)):
        z = np.sort(np.append(rng.normal(size=n - n_far), far + 0.1 * rng.normal(size=n_far)))
        x, w = np.exp(0.5 * z) if family == "box-cox" else z + 0.3, rng.integers(1, 3, n)
        chosen, y, out = ESTIMATORS[estimator](), np.empty(n), np.empty(fits.N_CUTOFF_FIELDS)
        code = NOT_RECTIFIED if rule == "none" else QUARTILES
        work, given = new_robust_work(n, True), (CODES[family], chosen.kernel_options, lmbda, code, int(adaptive))
        chosen.entries.apply_cutoff(x.copy(), w.astype(float), *given, work, y, out)
        u, center, divisor, power = oracles.prestandardized(family, np.repeat(x, w), "mad")
        at = lmbda * power
        expected = oracles.rectified_by_rule(family, u, at, rule).astype(float)
        np.testing.assert_allclose(np.repeat(y, w), expected, rtol=1e-12, atol=1e-12)
        loc, scale = oracles.huber_one_step(expected, 1.5, 1.556931 / 2.0)
        cutoff = adapted(abs(expected - loc) / scale) if adaptive else CUTOFF
        kept = abs(expected - loc) <= cutoff * scale
        np.testing.assert_allclose(out[[fits.TRANSFORM_LOC, fits.TRANSFORM_SCALE]], (loc, scale), rtol=1e-9, atol=1e-12)
        assert out[fits.CUTOFF_IN_SCALES] == pytest.approx(cutoff, rel=1e-14)
        assert out[fits.WEIGHT_BELOW] == pytest.approx(np.count_nonzero(expected < loc - cutoff * scale), abs=1e-12)
        assert out[fits.WEIGHT_ABOVE] == pytest.approx(np.count_nonzero(expected > loc + cutoff * scale), abs=1e-12)
        prescaling = (0.0, 1.0) if family == "box-cox" else (center, divisor)
        np.testing.assert_allclose(out[[fits.PRESCALING_CENTER, fits.PRESCALING_DIVISOR]], prescaling, rtol=1e-12)
        for end, side in ((out[fits.CUTOFF_LOW], -1.0), (out[fits.CUTOFF_HIGH], 1.0)):
            target = loc + side * cutoff * scale
            v = ((end / divisor) ** (1.0 / power)) if family == "box-cox" else (end - center) / divisor
            if rule == "none":
                assert v == pytest.approx(invert(target, family, at), rel=1e-8, abs=1e-8)
            elif math.isfinite(v) and abs(v) > 0.0:
                back = oracles.rectified(family, np.array([v]), at, *oracles.quartiles(u))[0]
                assert float(back) == pytest.approx(target, rel=1e-8, abs=1e-8)
        if estimator == "robust":
            both = oracles.rectified_by_rule(family, u, at, "both").astype(float)
            assert bool(out[fits.KEEPS_FAR_TAIL]) == has_far_tail(both, kept)
        else:
            assert not out[fits.KEEPS_FAR_TAIL]


@pytest.mark.parametrize("n_far, is_far", [(4, False), (5, True), (6, True)])
@pytest.mark.parametrize("side", [-1.0, 1.0])
@pytest.mark.parametrize("n", [40, 50, 60])
def test_far_tails_have_five_values_and_a_tenth_of_all(n, side, n_far, is_far):
    y = np.sort(side * np.append(stats.norm.ppf((np.arange(n - n_far) + 0.5) / (n - n_far)), np.full(n_far, 30.0)))
    values, logs = (np.append(v, np.ones(ROOM)) for v in (y, np.sign(y) * np.log1p(abs(y))))
    column = SortedColumn(values, logs, n, n // 2, 2.0, 9, n - 10)
    standardized = Prestandardized(column, None, None, np.empty(n + ROOM))
    whole = kept_by_index(0, n)
    far = has_far_tail(y, np.ones(n, dtype=bool))
    assert far == (is_far and n_far >= 0.1 * n)
    assert adaptive_rewml._keeps_far_tail(standardized, 1.0, whole) == far
    assert not adaptive_rewml._keeps_far_tail(standardized, 1.0, kept_by_index(1, n - 1))
    for nothing in (0, 3, n):
        assert not adaptive_rewml._keeps_far_tail(standardized, 1.0, kept_by_index(nothing, nothing))
    one_end = (0, n - 1) if side > 0.0 else (1, n)
    assert not adaptive_rewml._keeps_far_tail(standardized, 1.0, kept_by_index(*one_end))


def test_excess_is_a_log_likelihood_ratio_of_poisson_counts():
    for cutoff, outside, n in ((2.0, 9.0, 80.0), (2.5, 1.5, 30.0), (3.0, 4.0, 1000.0)):
        expected = 2.0 * n * stats.norm.sf(cutoff)
        rate = max(outside, expected)
        ratio = (outside * math.log(rate) - rate) - (outside * math.log(expected) - expected)
        assert adaptive_rewml.excess_beyond(cutoff, outside, n) == pytest.approx(ratio, rel=1e-12, abs=1e-14)


# --- the objective at given lambdas ---------------------------------------------------------------------


@families
@pytest.mark.parametrize("estimator", ["robust", "rewml", "rewml-nr", "carroll", "mtl"])
def test_objective_of_each_column_at_each_lambda(estimator, family):
    rng, lmbdas = np.random.default_rng(8), np.array([-1.0, 0.0, 0.6, 1.0, 2.5])
    z = np.sort(rng.normal(size=(4, 20)))
    x = np.exp(0.4 * z) if family == "box-cox" else z
    x[1, 17:], x[2] = np.nan, 1.5
    w = rng.integers(1, 3, x.shape)
    routes = np.array([Route.REFIT, Route.REFIT, Route.REFIT, Route.REFIT_BOTH_SIDES], dtype=float)
    chosen = ESTIMATORS[estimator](**({"h": 0.7} if estimator == "mtl" else {}))
    for weights in (None, w):
        out, work = np.empty((4, 5)), new_robust_work(20, weights is not None)
        given = None if weights is None else weights.astype(float)
        chosen.entries.at(lmbdas, x.copy(), given, CODES[family], chosen.kernel_options, routes, work, out)
        assert np.isnan(out[2]).all()
        for j in (0, 1, 3):
            seen = ~np.isnan(x[j])
            repeated = np.repeat(x[j, seen], 1 if weights is None else weights[j, seen])
            u, _, _, power = oracles.prestandardized(family, repeated, "mad")
            rule = {"rewml-nr": "none"}.get(estimator, "both" if j == 3 and estimator == "robust" else "paper")
            for lmbda, value in zip(lmbdas * power, out[j], strict=True):
                if estimator == "carroll":
                    expected = oracles.carroll_objective(family, u, lmbda)
                elif estimator == "mtl":
                    size = max(math.ceil(0.7 * u.size - 1e-9), u.size // 2 + 1)
                    expected = oracles.trimmed_objective(family, u, lmbda, size)[0]
                else:
                    scores = stats.norm.ppf((np.arange(u.size) + 2.0 / 3.0) / (u.size + 1.0 / 3.0))
                    expected = oracles.qq_objective(family, u, lmbda, rule, scores)
                assert value == pytest.approx(expected, abs=2e-6)


# --- parts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bound, last, side, expected",
    [
        (2.5, 1, 1.0, 2.5),  # between the last value kept and the next
        (2.0, 1, 1.0, 2.0),
        (3.0, 1, 1.0, 2.0),  # the next value is not excluded
        (1.5, 1, 1.0, 2.0),  # the last value kept is beyond the cut-off
        (math.nan, 1, 1.0, 2.0),
        (9.0, 2, 1.0, 9.0),  # there is no next value
        (0.0, 1, -1.0, 2.0),
        (1.0, 1, -1.0, 2.0),
        (1.5, 1, -1.0, 1.5),
        (-4.0, 0, -1.0, -4.0),
    ],
)
def test_range_of_values_kept_extends_to_a_cutoff_that_separates(bound, last, side, expected):
    assert column_results._limit(np.array([1.0, 2.0, 3.0]), last, bound, side) == expected


@pytest.mark.parametrize("status, expected", [(Status.SCANNED, Status.TAIL_KEPT), (Status.MULTIMODAL, Status.TAIL_KEPT)]
    + [(status, status) for status in (Status.NOT_CERTIFIED, Status.FEW_VALUES)])  # fmt: skip
def test_a_kept_tail_does_not_hide_a_graver_status(status, expected):
    row = np.zeros(N_RESULTS)
    for tail, final in ((False, status), (True, expected)):
        row[FIELDS.index("status")] = status
        column_results.write_tail(tail, row)
        assert row[FIELDS.index("status")] == final


@families
@pytest.mark.parametrize("n, status", [(2, Status.FEW_VALUES), (3, Status.FEW_VALUES), (4, Status.SCANNED)])
def test_three_values_are_too_few_to_recognise_outliers(n, status, family):
    x = np.array([1.0, 2.2, 3.1, 7.0])[:n]
    assert fit(x, family, "carroll", {})["status"] == status
    assert fit(x, family, "carroll", {}, np.full(n, 0.3))["status"] == status


@pytest.mark.parametrize("distance", [0.0, math.inf, math.nan, 1.0, 1.5])
def test_values_at_the_cutoff_are_kept(distance):
    y = np.array([-2.0, -1.5, -1.0, 0.0, 1.0, 1.5, 4.0])
    kept = reweighting.within_cutoff(y, LocScale(0.0, distance / 2.0, 0, 0), 2.0, 0.3, QUARTILES)
    inside = abs(y) <= distance if 0.0 < distance < math.inf else np.zeros(7, dtype=bool)
    assert kept.stop - kept.start == inside.sum()
    assert inside[kept.start : kept.stop].all()
    assert (kept.lmbda, kept.rule, kept.cutoff, kept.loc) == (0.3, QUARTILES, 2.0, 0.0)
    assert (kept.excluded_low, kept.excluded_high) == (0.0, 0.0)


@pytest.mark.parametrize("fraction", [0.3, 0.5, 0.8, 0.95, 1.0])
def test_trimmed_windows_hold_a_fraction_and_more_than_half(fraction):
    for n in range(1, 30):
        assert trimmed.window_size(float(n), fraction) == min(max(math.ceil(fraction * n), n // 2 + 1), n)


@pytest.mark.parametrize(
    "lmbda, expected",
    [(-3.51, (-9.0, 6.0, True)), (-3.49, (-4.0, 6.0, False)), (5.49, (-4.0, 6.0, False)), (5.51, (-4.0, 11.0, True))],
)
def test_an_interval_is_doubled_if_lambda_is_near_an_end(lmbda, expected):
    assert cellwise._widen(-4.0, 6.0, lmbda) == expected


@families
def test_columns_without_spread_report_the_weight_of_all_values(family):
    w = np.array([2.0, 1.5, 3.0, 1.0])
    constant = fit(np.array([2.0, 2.0, np.nan, 2.0]), family, "robust", {}, w)
    assert (constant["status"], constant["n_obs"], constant["lmbda"]) == (Status.CONSTANT, 4.5, 1.0)
    tied = fit(np.array([2.0, 2.0, 7.0, 2.0]), family, "carroll", {}, w)
    assert (tied["status"], tied["n_obs"], tied["x_max"]) == (Status.NO_SPREAD, 7.5, 7.0)


@pytest.mark.parametrize(
    "n_left, is_weighted, calls", [(0, False, ["logs"]), (1, False, ["logs", "plain"]), (1, True, ["weighted"])]
)
def test_columns_that_the_small_entry_defers_are_completed(n_left, is_weighted, calls):
    made, out = [], np.zeros((3, N_RESULTS))

    def stand_in(name, result):
        def entry(columns, weights, family, options, work, rows):
            made.append(name)
            if name == calls[0]:
                assert (rows[:, STATUS] == DEFERRED).all()
            assert (weights is columns) != is_weighted
            return result

        return entry

    entries = ESTIMATORS["robust"]().entries._replace(
        by_logs=stand_in("logs", n_left), complete=(stand_in("plain", 0), stand_in("weighted", 0))
    )
    entries.fit(np.ones((3, 4)), np.ones((3, 4)) if is_weighted else None, BOX_COX, None, None, out)
    assert made == calls


def test_the_small_entry_returns_the_number_of_columns_that_it_defers():
    """Raw sums of logs lose digits for a column about 1e3 with differences of 1e-6, which is not prestandardised."""
    columns = np.sort(np.array([sample("box-cox"), 1e3 + 1e-6 * sample("box-cox"), sample("box-cox", seed=2)]), axis=1)
    chosen, out = ESTIMATORS["robust"](prestandardize="none"), np.zeros((3, N_RESULTS))
    out[:, STATUS] = DEFERRED
    work = new_robust_work(26)
    n_left = chosen.entries.by_logs(columns, columns, BOX_COX, chosen.kernel_options, work, out)
    assert n_left == np.count_nonzero(out[:, STATUS] == DEFERRED)
    assert chosen.entries.complete[0](columns, columns, BOX_COX, chosen.kernel_options, work, out) == 0
    assert (out[:, STATUS] > 0.0).all()


# --- the choice of a start ------------------------------------------------------------------------------


def plain_nearness(y, cutoff, c):
    """Return the sum of 1 - rho(distance) over sorted transformed values `y`, which are standardised first.

    The distances are those from the quantiles of a normal distribution truncated at +-`cutoff`. rho is Tukey's
    bisquare, which reaches 1 at distance `c`.
    """
    within, n = stats.truncnorm(-cutoff, cutoff), y.size
    z = within.ppf((np.arange(n) + 2.0 / 3.0) / (n + 1.0 / 3.0))
    t = ((y - y.mean()) * within.std() / y.std() - z) / c
    return np.sum(np.clip(1.0 - t * t, 0.0, None) ** 3)


@pytest.mark.parametrize("cutoff", [1.5, CUTOFF])
@pytest.mark.parametrize("weighted", [False, True])
def test_nearness_of_the_values_kept_to_quantiles(weighted, cutoff):
    rng = np.random.default_rng(2)
    for n, start, stop in ((12, 0, 12), (15, 2, 11), (9, 8, 9), (20, 3, 20)):
        y = np.sort(rng.standard_t(3, n))
        w = rng.integers(1, 5, n).astype(float)
        counts = frequency_weights(w, new_frequency_work(n)) if weighted else None
        found = qq.near_quantiles(y, counts, start, stop, cutoff, 0.5)
        repeated = np.repeat(y[start:stop], w[start:stop].astype(int)) if weighted else y[start:stop]
        expected = plain_nearness(repeated, cutoff, 0.5) if repeated[0] < repeated[-1] else 0.0
        assert found / (counts.factor if weighted else 1.0) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@families
@pytest.mark.parametrize("lmbda0", [-0.3, 0.4, 1.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_fraction_of_the_values_near_their_quantiles(weighted, lmbda0, family):
    x = np.sort(sample(family, 24, 5))
    w = np.random.default_rng(6).integers(1, 3, 24)
    options, work = ESTIMATORS["robust"]().kernel_options, new_robust_work(24, weighted)
    options = with_rule(options, QUARTILES, False)
    weight = w.astype(float) if weighted else None
    with np.errstate(all="ignore"):
        column = prestandardize_column(make_scores, x, weight, CODES[family], options, work)
        scaled = Column(
            column.standardized.column.x[:24], CODES[family], Prescaling(0.0, 1.0, 1.0, Status.OK), column.standardized
        )
        found, n_eval = adaptive_rewml._fraction_at_quantiles(
            reweighting.fit_in_two_passes, scaled, lmbda0, options, work
        )
    repeated = np.repeat(x, w) if weighted else x
    u = oracles.prestandardized(family, repeated, "mad")[0].astype(float)
    result = oracles.reweighted(family, u, lmbda0, "paper", 3, adaptive=False)
    kept = result.kept[-1]
    y = oracles.power_transforms(family, u, result.lmbdas[-1]).astype(float)[kept]
    expected = (plain_nearness(y, CUTOFF, 0.5) + 0.5 * np.count_nonzero(~kept)) / u.size
    assert found == pytest.approx(expected, rel=1e-6)
    assert n_eval > 0.0


@families
def test_grids_of_carrolls_objective_are_divided_in_halves(family):
    x = np.sort(sample(family, 20, 7))
    options, work = ESTIMATORS["carroll"]().kernel_options, new_robust_work(20)
    with np.errstate(all="ignore"):
        column = prestandardize_column(carroll._mean_log, x, None, CODES[family], options, work)
        n = carroll._divided_points(column.standardized, -4.0, 6.0, options, work)
    u = oracles.prestandardized(family, x, "mad")[0].astype(float)
    points, values, floors = work.grid[:3, :n]
    assert set(-4.0 + 0.5 * np.arange(21)) <= set(points)
    steps = np.diff(points)
    np.testing.assert_array_equal(np.log2(steps / 0.5) % 1.0, 0.0)  # halves of halves
    assert (steps > 0.0).all()
    assert steps.min() <= carroll._NARROW < 2.0 * steps.min() + 0.03
    for point, value in zip(points[:: max(n // 12, 1)], values[:: max(n // 12, 1)], strict=True):
        assert value == pytest.approx(oracles.carroll_objective(family, u, point), abs=1e-9)
    np.testing.assert_allclose(floors, values - 0.01, atol=1e-14)
    best = points[np.argmin(values)]
    fine = [oracles.carroll_objective(family, u, best + step) for step in np.linspace(-0.5, 0.5, 41)]
    assert values.min() - min(fine) < 1e-3


@families
def test_intervals_of_carrolls_objective_are_divided_by_the_bound_of_the_module_docstring(family):
    """Compare with NumPy: each value counts with the smaller of its distances at both ends of the interval."""
    x = np.sort(sample(family, 20, 7))
    options, work = ESTIMATORS["carroll"]().kernel_options, new_robust_work(20)
    with np.errstate(all="ignore"):
        column = prestandardize_column(carroll._mean_log, x, None, CODES[family], options, work).standardized
        n = carroll._divided_points(column, -4.0, 6.0, options, work)
    points, values, _, locs, scales = work.grid[:, :n]
    transforms = []
    for point in points:
        transform_sorted(column.column, point, NOT_RECTIFIED, column.y)
        transforms.append(column.y[:20].copy())
    limit = 20 * math.erf(carroll.HUBER_K / math.sqrt(2.0))
    found = set()
    for k in range(0, n - 1, 3):
        for lowest in values[k] + np.array([-0.3, -0.05, 0.02, 0.3]):
            first, second = ((transforms[j] - locs[j]) * math.exp(values[j] - lowest) / scales[j] for j in (k, k + 1))
            nearest = np.where(first * second > 0.0, np.minimum(abs(first), abs(second)), 0.0)
            expected = (nearest * np.minimum(nearest, carroll.HUBER_K)).sum() <= limit
            assert carroll._may_be_lower(column, k, lowest, math.nan, work) == expected
            found.add(bool(expected))
    assert found == {False, True}


@pytest.mark.parametrize("c", [0.3, 0.5, 2.0])
def test_nodes_are_as_fine_as_the_constant_of_the_bisquare_requires(c):
    w = np.array([30.0, 22.0, 25.0, 17.5])
    options, work = ESTIMATORS["robust"](c=c).kernel_options, new_robust_work(4, True)
    column = prestandardize_column(make_scores, np.array([0.3, 0.9, 1.2, 4.0]), w, BOX_COX, options, work)
    nodes = column.standardized.target
    for found, expected in zip(
        nodes, qq.normal_nodes(frequency_weights(w, new_frequency_work(4)), qq.PAPER, c / 16.0), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("best", [0, 3, 7])
def test_cells_shrink_to_the_neighbors_of_their_lowest_point(best, monkeypatch):
    seen, cell, work = [], np.zeros(8), new_robust_work(4)
    cell[:2] = 1.0, 4.0

    def evaluate(standardized, n, options, work):
        seen.append(work.grid[0, :n].copy())
        return best

    monkeypatch.setattr(qq_column, "evaluate", evaluate)
    assert qq_column.shrink_cell(None, cell, None, work) == 8
    np.testing.assert_allclose(seen, [np.linspace(1.0, 4.0, 8)], rtol=1e-14)
    assert cell[:2].tolist() == [seen[0][max(best - 1, 0)], seen[0][min(best + 1, 7)]]


# --- the order of the steps, with stand-ins for the searches and fits ----------------------------------------


@pytest.mark.parametrize("lmbdas, n_fits", [([0.4], 1), ([-1.9, 0.4], 2), ([2.9, 5.4, 0.0], 3), ([1e9], 20)])
def test_rs_fit_is_repeated_while_the_interval_is_widened(lmbdas, n_fits, monkeypatch):
    """Compare the intervals searched with R's rule, which moves an end if lambda is near it.

    The power of the prescaling is 2, so lambda in prescaled units is twice lambda.
    """
    searched, low, high, row = [], -4.0, 6.0, np.zeros(N_RESULTS)
    options = ESTIMATORS["rewml"](convention="cellwise").kernel_options

    def find_start(search, standardized, low, high, *_):
        searched.append((low, high))
        return SearchResult(0.5, 7, 0, True, 0.3)

    def reweight(keep, fit, column, lmbda, max_steps, *_):
        assert (lmbda, max_steps) == (0.5, 3)
        row[[LMBDA, N_EVAL, STATUS]] = lmbdas[min(len(searched), len(lmbdas)) - 1], 4.0, Status.OK
        return kept_by_index(0, 5)

    monkeypatch.setattr(cellwise, "find_start", find_start)
    monkeypatch.setattr(cellwise, "reweight", reweight)
    for name in ("write_column", "write_kept"):
        monkeypatch.setattr(cellwise, name, lambda *_: None)
    column = SimpleNamespace(
        x=np.arange(5.0), prescaling=SimpleNamespace(power=2.0),
        standardized=SimpleNamespace(counts=None, column=SimpleNamespace(negative_shift=0.0)),
    )  # fmt: skip
    cellwise._fit(None, column, options, None, row)
    expected = []
    for k in range(n_fits):
        expected.append((low, high))
        at, margin = 2.0 * lmbdas[min(k, len(lmbdas) - 1)], 0.05 * (high - low)
        low, high = (2.0 * low - 1.0 if at - low < margin else low), (2.0 * high - 1.0 if high - at < margin else high)
    assert searched == expected
    assert row[N_EVAL] == 11.0 * n_fits
    assert row[STATUS] == (Status.NOT_CERTIFIED if n_fits == 20 else Status.OK)


@pytest.mark.parametrize(
    "is_lower, lmbda, fractions, is_better, n_eval",
    [
        (False, 0.2, (0.5, 0.9), False, 8),
        (True, 0.9, (0.5, 0.9), False, 8 + 30),  # the rival's lambda is not lower
        (True, 0.2, (0.5, 0.51), False, 8 + 30 + 3 + 3),
        (True, 0.2, (0.5, 0.53), True, 8 + 30 + 3 + 3),
    ],
)
def test_the_second_start_must_be_lower_and_better(is_lower, lmbda, fractions, is_better, n_eval, monkeypatch):
    rules, left = [], list(fractions)

    def fraction(fit, column, lmbda0, options, work):
        rules.append((lmbda0, options.rule, options.adaptive))
        assert (column.prescaling.power, column.family) == (1.0, BOX_COX)
        return left.pop(0), 3.0

    monkeypatch.setattr(adaptive_rewml, "is_lower_below", lambda *_: is_lower)
    monkeypatch.setattr(adaptive_rewml, "find_start", lambda *_: SearchResult(lmbda, 30, 0, True, 0.3))
    monkeypatch.setattr(adaptive_rewml, "_fraction_at_quantiles", fraction)
    options, work = ESTIMATORS["robust"]().kernel_options, new_robust_work(4)
    work.trial[STATUS] = Status.OK
    standardized = SimpleNamespace(column=SimpleNamespace(n=4, x=np.arange(12.0)))
    found = adaptive_rewml._is_better(None, standardized, 0.8, BOX_COX, options, work)
    assert found == (is_better, float(n_eval))
    assert rules == ([(0.8, QUARTILES, False), (0.2, BOTH, False)] if n_eval > 40 else [])


@pytest.mark.parametrize("n_beyond", [0, 16])
def test_grids_of_the_trimmed_likelihood_are_refined_unless_they_extend_beyond_the_range(n_beyond, monkeypatch):
    monkeypatch.setattr(trimmed, "even_points", lambda *_: 21)
    monkeypatch.setattr(trimmed, "minima_and_beyond", lambda *_: GridScan(3, 21 + n_beyond, n_beyond == 0, 1))
    monkeypatch.setattr(trimmed, "closer_minima", lambda *a: GridScan(a[3] + 2, a[2] + 17, True, 0))
    scan = trimmed._scan(None, -4.0, 6.0, None, None)
    assert scan == ((3, 37, False, 0) if n_beyond else (5, 38, True, 0))
