"""Outlier probabilities, compared with reference values and SciPy, and mathematical identities."""

from __future__ import annotations

import math
import pickle

import make_scaling_reference
import mpmath
import numpy as np
import pandas as pd
import pytest
from fits import quietly
from reference_files import make_again, read_reference
from scipy import optimize, special, stats

import powerkern as pk
from powerkern.outliers import brier_score, fit_scaling, outlier_probability, zscore
from powerkern.outliers.rules import warn_about_columns

RULES = {
    "linear": {"method": "linear"},
    "huber": {"method": "huber"},
    "tukey": {"method": "tukey"},
    **{
        f"{center}+{scale}": {"center": center, "scale": scale}
        for center in ("mean", "median", "trimmed")
        for scale in ("sd", "nmad", "niqr")
    },
}
ALL_RULES = [
    *RULES.values(),
    {"method": "gamma"},
    {"method": "yeo-johnson"},
    {"method": "robust-gamma", "center": "trimmed", "scale": "trimmed-sd", "trim": 0.05},
    {"center": 0.5, "scale": "trimmed-sd"},
]
rng = np.random.default_rng(20240601)
SCORES = rng.lognormal(size=(300, 5))


@pytest.fixture(scope="module")
def reference():
    return read_reference("scaling.json")["samples"]


# --- reference values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_parameters_and_probabilities_agree_with_the_reference(reference, rule):
    for sample in reference:
        expected = sample["rules"][rule]
        scaling = quietly(fit_scaling, sample["scores"], **RULES[rule])
        found = [scaling.mu[0], scaling.sigma[0] + (scaling.mu[0] if rule == "linear" else 0.0)]
        assert found == pytest.approx(expected["parameters"], rel=1e-9, abs=1e-12), sample["name"]
        assert scaling.probability(sample["scores"]) == pytest.approx(expected["p"], abs=1e-9), sample["name"]


def test_the_gamma_rule_agrees_with_the_reference(reference):
    for sample in reference:
        found = quietly(outlier_probability, sample["scores"], method="gamma")
        if sample["gamma"] is not None:
            assert found == pytest.approx(sample["gamma"], abs=1e-9), sample["name"]
        else:
            assert np.isnan(found).all() or (np.std(sample["scores"]) == 0.0 and (found == 0.0).all())


@pytest.mark.slow
def test_the_script_still_writes_its_file(reference):
    drawn = list(make_scaling_reference.samples())
    for (name, scores, labels), sample in zip(drawn, reference, strict=True):
        assert (name, labels) == (sample["name"], sample["labels"])
        np.testing.assert_allclose(scores, sample["scores"], rtol=1e-9)
    assert make_again(make_scaling_reference.record(*drawn[1])) == reference[1]


def test_rules_agree_with_their_formulas():
    s = SCORES[:, 0]
    mu, sigma = s.mean(), stats.median_abs_deviation(s, scale="normal")
    expected = np.maximum(0.0, special.erf((s - mu) / (sigma * math.sqrt(2.0))))
    assert outlier_probability(s) == pytest.approx(expected, rel=1e-13)
    assert outlier_probability(s, method="linear") == pytest.approx((s - s.min()) / np.ptp(s), rel=1e-13)
    shape, theta = s.mean() ** 2 / s.var(ddof=1), s.var(ddof=1) / s.mean()
    cdf = stats.gamma(shape, scale=theta).cdf
    expected = np.maximum(0.0, (cdf(s) - cdf(mu)) / (1.0 - cdf(mu)))
    assert outlier_probability(s, method="gamma") == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("trim", [0.0, 0.07, 0.5])
def test_trimmed_rules_have_a_fraction(trim):
    s = SCORES[:, 0]
    kept = np.sort(s)[: s.size - int(trim * s.size + 1e-9)]
    scaling = fit_scaling(s, "trimmed", "trimmed-sd", trim=trim)
    assert scaling.mu[0] == pytest.approx(kept.mean(), rel=1e-13)
    assert scaling.sigma[0] == pytest.approx(kept.std(), rel=1e-13)
    assert fit_scaling(s, "median", "trimmed-sd", trim=trim).mu[0] == np.median(s)


def test_trimming_counts_the_scores_that_are_there():
    holes = SCORES.copy()
    holes[::3, 1] = math.nan
    kept = np.sort(np.delete(SCORES[:, 1], np.arange(0, 300, 3)))[:180]
    assert fit_scaling(holes, "trimmed", "trimmed-sd").sigma[1] == pytest.approx(kept.std(), rel=1e-13)


def test_a_given_center_is_used():
    s = SCORES[:, 0]
    scaling = fit_scaling(s, 1.0, "sd")
    assert (scaling.mu[0], scaling.sigma[0]) == (1.0, pytest.approx(math.sqrt(np.mean((s - 1.0) ** 2)), rel=1e-13))
    kept = np.sort(s)[:270]
    assert fit_scaling(s, 1, "trimmed-sd").sigma[0] == pytest.approx(math.sqrt(np.mean((kept - 1.0) ** 2)), rel=1e-13)
    assert fit_scaling(s, 1.0).sigma == fit_scaling(s).sigma
    assert fit_scaling(SCORES, np.arange(5.0)).mu.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert outlier_probability(s, 1.0)[s <= 1.0].max() == 0.0
    scaling = fit_scaling(s, 1.0, method="yeo-johnson")
    assert scaling.mu[0] == pytest.approx(scaling.power.transform(np.array([1.0]))[0])
    assert scaling.probability([0.999, 1.0])[1] == 0.0 < scaling.probability([1.01])[0]


def test_the_robust_gamma_rule_agrees_with_scipy():
    s = SCORES[:, 0]
    mu, sigma = np.median(s), stats.iqr(s) / 1.3489795003921634
    cdf = stats.gamma((mu / sigma) ** 2, scale=sigma**2 / mu).cdf
    expected = np.maximum(0.0, (cdf(s) - cdf(mu)) / (1.0 - cdf(mu)))
    found = outlier_probability(s, "median", "niqr", "robust-gamma")
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)
    with pytest.warns(UserWarning, match="positive mean"):
        assert np.isnan(outlier_probability(-s, method="robust-gamma")).all()


@pytest.mark.parametrize("options", [{}, {"estimator": "mle"}, {"estimator": "ppcc", "center": "median"}])
def test_transformed_scores_have_gaussian_probabilities(options):
    s = SCORES[:, 0]
    center = {"center": options["center"]} if "center" in options else {}
    fit = pk.fit(s, estimator=options.get("estimator", "robust"))
    z = fit.transform(s)
    expected = outlier_probability(z, **center)
    assert outlier_probability(s, method="yeo-johnson", **options) == pytest.approx(expected, rel=1e-12)
    scaling = fit_scaling(s, method="yeo-johnson", **options)
    new = np.array([0.1, 2.0, 50.0])
    expected = fit_scaling(z, **center).probability(fit.transform(new))
    assert scaling.probability(new) == pytest.approx(expected, rel=1e-12)


def test_robust_power_transform_tells_outliers_from_skewness():
    scores = np.append(np.random.default_rng(1).lognormal(size=190), np.full(10, 200.0))
    assert outlier_probability(scores, method="yeo-johnson")[190:].min() > 0.999
    assert outlier_probability(scores, method="yeo-johnson", estimator="mle")[190:].max() < 0.99
    alarms = [(outlier_probability(scores[:190], method=m) > 0.9).mean() for m in ("yeo-johnson", "gaussian")]
    assert alarms[0] < 0.05 < alarms[1]


@pytest.mark.parametrize("center", ["median", "mean"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("far, dtype", [(1e300, "float64"), (3e38, "float32")])
def test_transformed_scores_that_overflow_have_probability_0_or_1(center, sign, far, dtype):
    scores = (sign * np.append(np.random.default_rng(1).normal(5.0, 1.0, size=97), [far] * 3)).astype(dtype)
    p = outlier_probability(scores, method="yeo-johnson", center=center)
    assert (p[97:] == (sign > 0.0)).all()
    assert np.ptp(p[:97]) > 0.9 or center == "mean"


# --- laws ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ALL_RULES)
def test_every_rule_is_monotone_and_between_0_and_1(rule):
    p = outlier_probability(SCORES, **rule)
    assert p.shape == SCORES.shape
    assert ((p >= 0.0) & (p <= 1.0)).all()
    for scores, probabilities in zip(SCORES.T, p.T, strict=True):
        assert (np.diff(probabilities[np.argsort(scores)]) >= -1e-13).all()  # monotone
        assert outlier_probability(scores, **rule) == pytest.approx(probabilities, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("rule", RULES.values())
def test_units_do_not_matter(rule):
    expected = outlier_probability(SCORES, **rule)
    assert outlier_probability(1e6 * SCORES - 3e6, **rule) == pytest.approx(expected, rel=1e-8, abs=1e-10)
    for factor in (1e-290, 1e290):
        assert outlier_probability(factor * SCORES, **rule) == pytest.approx(expected, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_missing_scores_are_left_out_and_stay_missing(rule):
    holes = SCORES.copy()
    holes[7, 2] = math.nan
    found = outlier_probability(holes, **rule)
    assert np.argwhere(np.isnan(found)).tolist() == [[7, 2]]
    alone = outlier_probability(np.delete(SCORES[:, 2], 7), **rule)
    assert np.delete(found[:, 2], 7) == pytest.approx(alone, rel=1e-11, abs=1e-15)


@pytest.mark.parametrize("rule", ALL_RULES)
def test_threads_and_layout_do_not_change_a_bit(rule):
    wide = rng.lognormal(size=(200, 200))
    expected = outlier_probability(wide, n_threads=1, **rule)
    assert np.array_equal(outlier_probability(wide, n_threads=3, **rule), expected)
    assert np.array_equal(outlier_probability(np.asfortranarray(wide), **rule), expected)
    assert np.array_equal(outlier_probability(wide[:, ::-1], **rule), expected[:, ::-1])


def test_scores_are_not_changed():
    before = SCORES.copy()
    outlier_probability(SCORES)
    outlier_probability(np.asfortranarray(SCORES), method="linear")
    assert np.array_equal(SCORES, before)


# --- new scores ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ALL_RULES)
def test_new_scores_are_mapped_by_the_fitted_rule(rule):
    scaling = fit_scaling(SCORES, **rule)
    assert np.array_equal(scaling.probability(SCORES[:3]), scaling.probability(SCORES)[:3])
    assert (scaling.probability(np.full((1, 5), 1e9)) > 0.9).all()
    assert (scaling.probability(np.full((1, 5), -1e9)) == 0.0).all()
    copied = pickle.loads(pickle.dumps(scaling))
    assert np.array_equal(copied.probability(SCORES), scaling.probability(SCORES))


@pytest.mark.parametrize("rule", ALL_RULES)
def test_infinite_new_scores_are_certain(rule):
    scaling = fit_scaling(SCORES[:, 0], **rule)
    assert scaling.probability([math.inf, -math.inf, math.nan]) == pytest.approx([1.0, 0.0, math.nan], nan_ok=True)


@pytest.mark.parametrize("rule", [*RULES.values(), {"method": "gamma"}])
def test_infinite_new_scores_are_certain_without_scale_too(rule):
    scaling = quietly(fit_scaling, [2.0, 2.0, 2.0], **rule)
    found = scaling.probability([math.inf, -math.inf, math.nan, 2.0])
    assert found == pytest.approx([1.0, 0.0, math.nan, 0.0], nan_ok=True)


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_infinite_scores_are_certain_and_left_out(rule, dtype):
    table = SCORES.astype(dtype)
    table[9, 3], table[10, 3], table[11, 0] = math.inf, -math.inf, math.inf
    holes = np.where(np.isinf(table), np.nan, table).astype(dtype)
    before = table.copy()
    found, expected = outlier_probability(table, **rule), outlier_probability(holes, **rule)
    assert np.array_equal(table, before)
    assert (found[9, 3], found[10, 3], found[11, 0]) == (1.0, 0.0, 1.0)
    expected[9, 3], expected[10, 3], expected[11, 0] = 1.0, 0.0, 1.0
    assert np.array_equal(found, expected)
    frame = pd.DataFrame(table, columns=list("abcde"))
    assert np.array_equal(outlier_probability(frame, **rule).to_numpy(), found)
    assert np.array_equal(outlier_probability(frame["d"], **rule), found[:, 3])


@pytest.mark.parametrize("rule", [*RULES.values(), {"method": "gamma"}])
def test_scores_that_are_all_infinite_have_probability_0_or_1(rule):
    with pytest.warns(UserWarning, match="no values|no scores"):
        found = outlier_probability([math.inf, -math.inf, math.inf], **rule)
    assert found.tolist() == [1.0, 0.0, 1.0]


def test_cdf_is_the_distribution_of_each_rule():
    s = SCORES[:, 0]
    scaling = fit_scaling(s)
    assert scaling.cdf(s) == pytest.approx(stats.norm(scaling.mu[0], scaling.sigma[0]).cdf(s), rel=1e-12)
    assert scaling.probability(s) == pytest.approx(np.maximum(0.0, 2.0 * scaling.cdf(s) - 1.0), abs=1e-14)
    scaling = fit_scaling(s, method="linear")
    assert np.array_equal(scaling.cdf(s), scaling.probability(s))
    scaling = fit_scaling(s, method="gamma")
    mean, sd = scaling.mu[0], scaling.sigma[0]
    assert scaling.cdf(s) == pytest.approx(stats.gamma((mean / sd) ** 2, scale=sd**2 / mean).cdf(s), rel=1e-9)
    assert scaling.cdf([-1.0]).tolist() == [0.0]
    scaling = fit_scaling(s, method="yeo-johnson")
    z = (scaling.power.transform(s) - scaling.mu[0]) / scaling.sigma[0]
    assert scaling.cdf(s) == pytest.approx(stats.norm.cdf(z), rel=1e-12)


@pytest.mark.parametrize("rule", [*RULES.values(), {"method": "gamma"}])
def test_distribution_without_a_scale_is_a_step(rule):
    scaling = quietly(fit_scaling, [2.0, 2.0, 2.0], **rule)
    found = scaling.cdf([1.0, 2.0, 3.0, math.nan, math.inf, -math.inf])
    step = float(rule.get("method") != "linear")
    expected = [0.0, step, step, math.nan, 1.0, 0.0]
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("rule", [*ALL_RULES, {"method": "yeo-johnson", "estimator": "mle"}])
@pytest.mark.parametrize("probability", [0.0, 0.01, 0.5, 0.99])
def test_score_at_inverts_probabilities(rule, probability):
    scaling = fit_scaling(SCORES, **rule)
    scores = scaling.score_at(probability)
    assert (scaling.probability(scores[None, :]) <= probability).all()
    reached = scores < np.finfo(np.float64).max  # some transforms are bounded
    assert reached.any()
    beyond = np.nextafter(scores, math.inf, where=reached, out=scores.copy())
    assert np.array_equal(scaling.probability(beyond[None, :])[0] > probability, reached)


def test_score_at_takes_probabilities_0_and_1():
    assert fit_scaling(SCORES[:, 0]).score_at(1.0).tolist() == [np.finfo(np.float64).max]
    assert quietly(fit_scaling, [2.0, 2.0, 2.0]).score_at(0.5).tolist() == [2.0]
    assert np.isnan(quietly(fit_scaling, [math.nan, math.nan]).score_at(0.5)).all()
    assert fit_scaling([1.0, 2.0, 3.0], 2.5, "sd").score_at(0.0).tolist() == [2.5]
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"probability must be a number in \[0, 1\]"):
            fit_scaling(SCORES).score_at(wrong)


def test_map_knows_its_detectors():
    scaling = fit_scaling(pd.DataFrame(SCORES[:, :2], columns=["knn", "lof"]))
    with pytest.raises(ValueError, match="3 columns"):
        scaling.probability(SCORES[:, :3])
    swapped = scaling.probability(pd.DataFrame(SCORES[:, [1, 0]], columns=["lof", "knn"]))
    expected = scaling.probability(SCORES[:, :2])
    assert np.array_equal(swapped["knn"], expected[:, 0])
    assert "center='mean', scale='nmad', detectors=2" in repr(scaling)
    assert repr(fit_scaling(SCORES[:, 0], method="huber")) == "ScoreScaling(method='huber', detectors=1)"


# --- types and layouts ---------------------------------------------------------------------------------


def test_types_of_scores_are_read_and_kept():
    expected = outlier_probability(SCORES)
    assert outlier_probability(SCORES.astype(np.float32)).dtype == np.float32
    assert outlier_probability(SCORES.tolist()) == pytest.approx(expected, rel=1e-14)
    assert outlier_probability(SCORES.astype(">f8")) == pytest.approx(expected, rel=1e-14)
    counts = rng.integers(0, 50, 100)
    assert outlier_probability(counts) == pytest.approx(outlier_probability(counts.astype(float)), rel=1e-14)
    frame = outlier_probability(pd.DataFrame(SCORES, columns=list("abcde")))
    assert frame.columns.tolist() == list("abcde")
    assert np.array_equal(frame.to_numpy(), expected)


# --- trouble -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [*RULES.values(), {"method": "gamma"}])
def test_constant_scores_have_probability_0(rule):
    table = np.column_stack([SCORES[:, 0], np.full(300, 0.1)])
    with pytest.warns(UserWarning, match="column 1: the scores have scale 0"):
        p = outlier_probability(table, **rule)
    assert (p[:, 1] == 0.0).all()
    assert np.array_equal(p[:, 0], outlier_probability(SCORES[:, 0], **rule))


def test_constant_scores_have_no_power_transform():
    with pytest.warns(UserWarning, match="fewer than two distinct values|scale 0"):
        assert outlier_probability([2.5] * 6, method="yeo-johnson").tolist() == [0.0] * 6


@pytest.mark.parametrize("rule", RULES.values())
def test_one_score_has_probability_0(rule):
    with pytest.warns(UserWarning, match="scale 0"):
        assert outlier_probability([3.0], **rule).tolist() == [0.0]


def test_mostly_equal_scores_jump():
    scores = [0.0] * 7 + [1.0, 2.0, 3.0]
    for rule in ({}, {"method": "huber"}, {"method": "tukey"}):
        with pytest.warns(UserWarning, match="1 above the location"):
            p = outlier_probability(scores, **rule)
        center = 0.6 if not rule else 0.0
        assert p.tolist() == [float(s > center) for s in scores]


@pytest.mark.parametrize("rule", [*RULES.values(), {"method": "gamma"}])
def test_columns_without_scores_have_no_probabilities(rule):
    table = np.column_stack([SCORES[:, 0], np.full(300, math.nan)])
    with pytest.warns(UserWarning, match="column 1: no"):
        p = outlier_probability(table, **rule)
    assert np.isnan(p[:, 1]).all()
    assert not np.isnan(p[:, 0]).any()


def test_gamma_rule_needs_a_positive_mean():
    with pytest.warns(UserWarning, match="column 1: the gamma rule needs a positive mean"):
        p = outlier_probability(np.column_stack([SCORES[:, 0], -SCORES[:, 0]]), method="gamma")
    assert np.isnan(p[:, 1]).all()
    with pytest.warns(UserWarning, match="the gamma rule needs two scores"):
        assert np.isnan(outlier_probability([3.0], method="gamma")).all()


@pytest.mark.parametrize("rule", RULES.values())
def test_each_column_has_one_warning(rule):
    with pytest.warns(UserWarning, match="no values|no scores") as caught:
        outlier_probability([math.nan] * 3, **rule)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "gausian"}, "did you mean 'gaussian'"),
        ({"center": "trimmed-mean"}, "did you mean 'trimmed'"),
        ({"center": math.nan}, "center must be one of"),
        ({"center": [1.0, 2.0]}, "center must be one of"),
        ({"trim": 1.0}, r"trim must be a number in \[0, 1\)"),
        ({"scale": "mad"}, "did you mean 'nmad'"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"estimator": "rewlm"}, "did you mean 'rewml'"),
    ],
)
def test_unknown_words_are_refused_with_a_suggestion(options, message):
    with pytest.raises(ValueError, match=message):
        outlier_probability(SCORES, **options)


def test_scores_are_numbers():
    with pytest.raises(TypeError, match="scores"):
        outlier_probability(["a", "b"])
    with pytest.raises(ValueError, match="scores has no rows"):
        outlier_probability([])


# --- z-scores ------------------------------------------------------------------------------------------


def test_zscores_agree_with_multiprecision():
    with mpmath.workdps(40):
        s = [mpmath.mpf(v) for v in SCORES[:, 0].tolist()]
        mean = mpmath.fsum(s) / len(s)
        sd = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in s) / (len(s) - 1))
        expected = [float((v - mean) / sd) for v in s]
    np.testing.assert_allclose(zscore(SCORES[:, 0], ddof=1), expected, rtol=1e-12, atol=1e-14)


def test_zscores_agree_with_scipy():
    np.testing.assert_allclose(zscore(SCORES), stats.zscore(SCORES), rtol=1e-12)
    np.testing.assert_allclose(zscore(SCORES, ddof=1), stats.zscore(SCORES, ddof=1), rtol=1e-12)
    robust = (SCORES - np.median(SCORES, axis=0)) / stats.median_abs_deviation(SCORES, scale="normal")
    np.testing.assert_allclose(zscore(SCORES, "median-mad"), robust, rtol=1e-12)
    frame = zscore(pd.DataFrame({"a": SCORES[:, 0]}), "huber", k=2.0)
    assert frame.columns.tolist() == ["a"]


def test_zscores_omit_missing_values():
    holes = SCORES.copy()
    holes[4, 1] = math.nan
    np.testing.assert_allclose(zscore(holes), stats.zscore(holes, nan_policy="omit"), rtol=1e-12)


@pytest.mark.parametrize("ddof", [-1, 0.5, True, "1"])
def test_ddof_is_a_whole_number(ddof):
    with pytest.raises(ValueError if ddof == -1 else TypeError, match="ddof must be"):
        zscore(SCORES, ddof=ddof)


def test_trim_is_a_number():
    with pytest.raises(TypeError, match="trim must be a number"):
        outlier_probability(SCORES, trim="some")


def test_zscores_of_one_value_are_nan():
    with pytest.warns(UserWarning, match="column 1: too few values for a scale: z-scores are NaN"):
        z = zscore([[1.0, 2.0], [2.0, math.nan], [4.0, math.nan]], ddof=1)
    assert np.isnan(z[:, 1]).all()
    assert zscore([1.0, 3.0], ddof=1) == pytest.approx([-math.sqrt(0.5), math.sqrt(0.5)])


@pytest.mark.parametrize("function", [zscore, outlier_probability])
def test_an_index_gives_an_array(function):
    found = function(pd.Index(SCORES[:, 0]))
    assert type(found) is np.ndarray
    assert np.array_equal(found, function(SCORES[:, 0]))


# --- a known share of outliers -------------------------------------------------------------------------

METHODS = ("gaussian", "huber", "tukey", "linear", "gamma", "robust-gamma", "yeo-johnson")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_mean_probabilities_are_the_contamination(method, share):
    found = outlier_probability(SCORES, method=method, contamination=share)
    assert found.mean(axis=0) == pytest.approx(np.full(5, share), rel=1e-7)
    plain = fit_scaling(SCORES, method=method)
    scaling = fit_scaling(SCORES, method=method, contamination=share)
    values = SCORES if plain.power is None else plain.power.transform(SCORES)
    assert np.array_equal(scaling.mu, np.minimum(plain.mu, np.quantile(values, max(1.0 - 3.0 * share, 0.0), axis=0)))
    assert np.array_equal(scaling.probability(SCORES), found)
    assert f"contamination={share}" in repr(scaling)


def test_contamination_sets_sigma_of_the_gaussian_rule():
    x = SCORES[:, 0]
    scaling = fit_scaling(x, contamination=0.05)

    def excess(sigma):
        return np.maximum(0.0, special.erf((x - x.mean()) / (sigma * math.sqrt(2.0)))).mean() - 0.05

    assert scaling.sigma[0] == pytest.approx(optimize.brentq(excess, 1e-3, 1e3, xtol=1e-13), rel=1e-9)


def test_calibrated_probabilities_have_smaller_brier_scores():
    draws = np.random.default_rng(1)
    for law in (draws.normal, draws.gamma, draws.lognormal):
        for shift in (1.0, 3.0, 6.0):
            scores = law(1.0, size=2000)
            y = np.repeat([0, 1], [1900, 100])
            scores = scores + shift * scores.std() * y
            plain, given = outlier_probability(scores), outlier_probability(scores, contamination=0.05)
            assert brier_score(y, given) < brier_score(y, plain)
            assert brier_score(y, given) < (1.3 if shift == 1.0 else 1.0) * 0.05 * 0.95  # the score of the base rate


def test_contamination_holds_for_missing_infinite_and_few_scores():
    scores = np.append(SCORES[:, 0], [math.nan, math.inf, -math.inf])
    assert np.nanmean(outlier_probability(scores, contamination=0.1)) == pytest.approx(0.1, rel=1e-7)
    with pytest.warns(UserWarning, match="scale 0: probabilities are 1 above the location"):
        found = outlier_probability([0.0] * 9 + [1.0], contamination=0.3)  # one lies above the others, not three
    assert found.tolist() == [0.0] * 9 + [1.0]
    with pytest.warns(UserWarning, match="no values"):
        assert np.isnan(outlier_probability([math.nan, math.nan], contamination=0.3)).all()


@pytest.mark.parametrize("share", [0.0, 0.6, -0.1, math.nan, "auto", True])
def test_contamination_must_be_a_fraction(share):
    with pytest.raises(ValueError if type(share) is float else TypeError, match="contamination must be a number"):
        outlier_probability(SCORES, contamination=share)


# --- z-scores ------------------------------------------------------------------------------------------


def test_zscores_without_a_scale_are_nan():
    with pytest.warns(UserWarning, match="column 1: the scale is 0"):
        found = zscore(np.column_stack([SCORES[:, 0], np.ones(300)]))
    assert np.isnan(found[:, 1]).all()
    assert np.array_equal(found[:, 0], zscore(SCORES[:, 0]))


def test_zscores_refuse_infinite_values():
    with pytest.raises(ValueError, match="row 1: the value is inf"):
        zscore([1.0, math.inf])


def test_a_range_that_overflows_is_refused():
    scores = np.array([[1.0, 1e308], [2.0, -1e308], [3.0, 0.0]])
    with pytest.raises(ValueError, match="column 1: the range of the scores is beyond the range of float64"):
        outlier_probability(scores, method="linear")
    assert outlier_probability(scores / 4.0, method="linear")[:, 1].tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("method", "mu", "sigma", "message"),
    [
        ("gaussian", 1.0, 0.0, "the scores have scale 0: probabilities are 1 above the location and 0 elsewhere"),
        ("linear", 1.0, 0.0, "the scores have scale 0: probabilities are 0 throughout"),
        ("linear", math.nan, math.nan, "no scores"),
        ("gamma", 0.0, 1.0, "the gamma rule needs a positive mean"),
        ("robust-gamma", -1.0, 0.5, "the gamma rule needs a positive mean"),
        ("gamma", -1.0, 0.0, "the scores have scale 0"),
        ("gamma", 1.0, math.nan, "the gamma rule needs two scores"),
        ("gamma", math.nan, math.nan, None),
        ("gaussian", math.nan, math.nan, None),
        ("gaussian", -1.0, 0.5, None),
        ("gamma", 1e-9, 0.5, None),
        ("linear", -1.0, 0.5, None),
    ],
)
def test_degenerate_detectors_are_named_in_one_warning(method, mu, sigma, message):
    columns = np.array([2.0, mu]), np.array([3.0, sigma])
    if message is None:
        warn_about_columns(method, *columns, None)
    else:
        with pytest.warns(UserWarning, match=f"^column 1: {message}") as caught:
            warn_about_columns(method, *columns, None)
        assert len(caught) == 1
