"""Measures of outlier probabilities, compared with reference values and plain versions, and mathematical identities."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from reference_files import read_reference
from rules_study import harmonic_improvement_score, stratified_errors

from powerkern import outliers
from powerkern.outliers import (
    brier_score,
    calibration_error,
    refinement_error,
    reliability_diagram,
    sharpness_error,
    skill_score,
)

MEASURES = {
    "brier": brier_score,
    "sharp": sharpness_error,
    "refine": refinement_error,
    "calib": calibration_error,
}
BINNED = (refinement_error, calibration_error)
STRATA = {"": "all", "_out": "outliers", "_in": "inliers"}


@pytest.fixture(scope="module")
def reference():
    return read_reference("scaling.json")["samples"]


def cases(n=60, seed=0):
    rng = np.random.default_rng(seed)
    p = np.clip(rng.normal(0.3, 0.4, n), 0.0, 1.0).round(2)
    return rng.uniform(size=n) < p, p


@pytest.mark.slow
def test_every_measure_agrees_with_the_reference(reference):
    for sample in reference:
        for rule, expected in sample["rules"].items():
            for key, value in expected["measures"].items():
                measure, _, stratum = key.partition("_")
                found = MEASURES[measure](
                    sample["labels"], expected["p"], stratum=STRATA[f"_{stratum}" if stratum else ""]
                )
                assert found == pytest.approx(value, rel=1e-9, abs=1e-9), (sample["name"], rule, key)


def test_edges_of_bins_agree_with_the_reference(reference):
    for sample in reference:
        for n_bins, edges in sample["edges"].items():
            p = sample["rules"]["mean+nmad"]["p"]
            found = reliability_diagram(sample["labels"], p, n_bins=int(n_bins)).edges
            assert found == pytest.approx(edges, abs=1e-12), (sample["name"], n_bins)


@pytest.mark.slow
def test_improvement_scores_agree_with_the_reference(reference):
    for sample in reference:
        errors = stratified_errors(
            np.array(sample["labels"]), np.column_stack([found["p"] for found in sample["rules"].values()])
        )
        expected = [found["improvement"] for found in sample["rules"].values()]
        assert harmonic_improvement_score(errors) == pytest.approx(expected, rel=1e-7, abs=1e-9), sample["name"]


def test_a_matrix_gives_one_value_a_column():
    y, p = cases()
    for measure in MEASURES.values():
        table = measure(y, np.column_stack([p, 1.0 - p]))
        assert table == pytest.approx([measure(y, p), measure(y, 1.0 - p)], rel=1e-14)


@pytest.mark.parametrize("measure", MEASURES.values())
def test_strata_average_to_the_whole(measure):
    y, p = cases()
    outliers, inliers = (measure(y, p, stratum=stratum) for stratum in ("outliers", "inliers"))
    assert measure(y, p) == pytest.approx(y.mean() * outliers + (1 - y.mean()) * inliers, rel=1e-12)


@pytest.mark.parametrize("measure", MEASURES.values())
def test_order_does_not_matter(measure):
    y, p = cases()
    order = np.random.default_rng(1).permutation(y.size)
    assert measure(y[order], p[order]) == pytest.approx(measure(y, p), rel=1e-12)


@pytest.mark.parametrize("measure", MEASURES.values())
def test_certain_and_right_is_perfect(measure):
    y = [0, 1, 1, 0, 0]
    assert measure(y, y) == 0.0
    assert measure(y, [1 - label for label in y]) == (1.0 if measure in (brier_score, calibration_error) else 0.0)


def test_sharpness_of_one_probability_is_its_entropy():
    p = np.array([0.0, 1.0, 0.5, 1e-20, 0.25])
    exact = [0.0, 0.0, 1.0, float(oracles.entropy(1e-20)), float(oracles.entropy(0.25))]
    for value, expected in zip(p, exact, strict=True):
        assert sharpness_error(None, [value]) == pytest.approx(expected, rel=1e-14, abs=0.0)


@pytest.mark.parametrize("strategy", ["equal-area", "equal-count", "equal-width"])
@given(st.integers(0, 1000), st.integers(1, 12))
def test_bins_contain_every_score_once(strategy, seed, n_bins):
    y, p = cases(n=25, seed=seed)
    diagram = reliability_diagram(y, p, strategy=strategy, n_bins=n_bins)
    assert diagram.n_scores.sum() == y.size
    assert diagram.n_scores.size == diagram.edges.size - 1 <= n_bins
    assert (diagram.edges[0], diagram.edges[-1]) == (0.0, 1.0)
    assert (np.diff(diagram.edges) >= 0.0).all()
    full = diagram.n_scores > 0
    assert np.isnan(diagram.frequency[~full]).all()
    shares = diagram.n_scores[full] / y.size
    assert shares @ diagram.frequency[full] == pytest.approx(y.mean(), abs=1e-12)
    assert shares @ diagram.mean_prob[full] == pytest.approx(p.mean(), abs=1e-12)
    assert calibration_error(y, p, strategy=strategy, n_bins=n_bins) == pytest.approx(
        shares @ abs(diagram.frequency[full] - diagram.mean_prob[full]), abs=1e-12
    )


@pytest.mark.parametrize("strategy", ["equal-area", "equal-count", "equal-width"])
@pytest.mark.parametrize("digits", [1, 2, 17])
def test_bins_follow_numpy(strategy, digits):
    """A probability on an edge belongs to the bin on its right: bins are [edge, next edge). The last bin includes 1."""
    for seed in range(10):
        y, p = cases(n=30 + 10 * seed, seed=seed)
        p = np.clip(np.random.default_rng(seed).beta(0.5, 2.0, p.size), 0.0, 1.0).round(digits)
        for n_bins in (1, 2, 3, 5, 7, 10, 15, 20):
            diagram = reliability_diagram(y, p, strategy=strategy, n_bins=n_bins)
            assert np.histogram(p, diagram.edges)[0].tolist() == diagram.n_scores.tolist(), (seed, n_bins)


def test_bins_of_equal_count():
    p = np.arange(12) / 12
    diagram = reliability_diagram(np.arange(12) % 2, p, strategy="equal-count", n_bins=4)
    assert diagram.n_scores.tolist() == [3, 3, 3, 3]
    assert diagram.edges == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])


def test_tied_probabilities_share_a_bin():
    diagram = reliability_diagram([0, 1, 0, 1, 0], [0.2, 0.2, 0.2, 0.2, 0.9], strategy="equal-count", n_bins=3)
    assert diagram.n_scores.tolist() == [4, 1]


def test_bins_of_equal_width():
    diagram = reliability_diagram([0, 1, 1], [0.0, 0.5, 1.0], strategy="equal-width", n_bins=2)
    assert diagram.n_scores.tolist() == [1, 2]


def test_numbers_of_bins_are_averaged():
    y, p = cases()
    for measure in BINNED:
        separate = [measure(y, p, n_bins=k) for k in (3, 7)]
        assert measure(y, p, n_bins=[3, 7]) == pytest.approx(np.mean(separate), rel=1e-14)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: brier_score([0, 2], [0.1, 0.2]), "y_true, row 1: 2 is not a label"),
        (lambda: brier_score([0, math.nan], [0.1, 0.2]), "y_true, row 1: nan is not a label"),
        (lambda: brier_score([0], [0.1, 0.2]), "1 labels for 2 rows"),
        (lambda: brier_score([[0, 1], [1, 0]], [0.1, 0.2]), "one label per row"),
        (lambda: brier_score([0, 1], [0.1, 1.2]), "y_prob, row 1: 1.2 is not a probability"),
        (
            lambda: brier_score([0, 1], [[0.1, 0.2], [0.3, math.nan]]),
            "y_prob, column 1, row 1: nan is not a probability",
        ),
        (lambda: brier_score([0, 0], [0.1, 0.2], stratum="outliers"), "y_true has no outliers"),
        (lambda: brier_score([0, 1], [0.1, 0.2], stratum="outlier"), "did you mean 'outliers'"),
        (lambda: sharpness_error(None, [0.5], stratum="inliers"), "needs labels: pass y_true"),
        (lambda: refinement_error([0, 1], [0.1, 0.2], strategy="equal-areas"), "did you mean 'equal-area'"),
        (lambda: refinement_error([0, 1], [0.1, 0.2], n_bins=0), "n_bins must be at least 1"),
        (lambda: refinement_error([0, 1], [0.1, 0.2], n_bins=[]), "n_bins is empty"),
        (lambda: reliability_diagram([0, 1], [[0.1, 0.2], [0.1, 0.2]]), "shows one method"),
    ],
)
def test_invalid_labels_probabilities_and_options_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_number_of_bins_is_a_whole_number():
    with pytest.raises(TypeError, match="whole number"):
        refinement_error([0, 1], [0.1, 0.2], n_bins=[2.5])
    with pytest.raises(TypeError, match="whole number"):
        refinement_error([0, 1], [0.1, 0.2], n_bins=2.5)


def test_skill_scores_are_log_ratios_of_errors():
    assert skill_score(0.25, 0.5) == 1.0
    assert skill_score([0.0, 0.0, 0.1], [0.0, 0.1, 0.0]).tolist() == [0.0, np.inf, -np.inf]
    assert skill_score(1e-300, 1e300) == pytest.approx(600 * np.log2(10))
    with pytest.raises(ValueError, match="error must not be negative or NaN"):
        skill_score(-1.0, 1.0)
    with pytest.raises(ValueError, match="reference must not be negative or NaN"):
        skill_score(1.0, np.nan)


def test_harmonic_improvement_agrees_with_scipy():
    errors = np.random.default_rng(0).uniform(size=(4, 6))
    relative = errors / errors.mean(axis=0)
    expected = scipy.stats.hmean(relative, axis=1)
    assert outliers.harmonic_improvement_score(errors) == pytest.approx(expected, rel=1e-14)
    assert outliers.harmonic_improvement_score([[0.0, 0.4], [0.2, 0.4]]).tolist() == [0.0, 4.0 / 3.0]
    assert outliers.harmonic_improvement_score([[0.0, 0.1], [0.0, 0.3]]) == pytest.approx([2 / 3, 6 / 5])
    for wrong in ([0.1, 0.2], [[0.1, np.inf]], np.empty((3, 0))):
        with pytest.raises(ValueError, match="one row per method, got shape"):
            outliers.harmonic_improvement_score(wrong)


def test_a_diagram_prints_its_fields():
    text = repr(reliability_diagram([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2))
    assert text.startswith("ReliabilityDiagram(edges=")
    assert "frequency=" in text


@pytest.mark.parametrize("stratum", ["all", "outliers", "inliers"])
@pytest.mark.parametrize("strategy", ["equal-area", "equal-count", "equal-width"])
def test_measures_agree_with_their_definitions(strategy, stratum):
    y, p = cases(n=40)
    y = y.astype(float)
    chosen = {"all": y >= 0.0, "outliers": y == 1.0, "inliers": y == 0.0}[stratum]
    entropy = [-sum(q * math.log2(q) for q in (one, 1.0 - one) if q > 0.0) for one in p]
    assert brier_score(y, p, stratum=stratum) == pytest.approx(((p - y) ** 2)[chosen].mean(), rel=1e-13)
    assert sharpness_error(y, p, stratum=stratum) == pytest.approx(np.array(entropy)[chosen].mean(), rel=1e-12)
    refinement, calibration = [], []
    for n_bins in (4, 9):
        edges = reliability_diagram(y, p, strategy=strategy, n_bins=n_bins).edges
        place = np.minimum(np.searchsorted(edges, p, side="right"), edges.size - 1)
        parts = [(y[place == k], p[place == k], (place == k) & chosen) for k in np.unique(place)]
        share = [np.count_nonzero(own) / np.count_nonzero(chosen) for _, _, own in parts]
        refinement.append(sum(w * 2.0 * a.mean() * (1.0 - a.mean()) for w, (a, _, _) in zip(share, parts, strict=True)))
        calibration.append(sum(w * abs(a.mean() - b.mean()) for w, (a, b, _) in zip(share, parts, strict=True)))
    options = {"stratum": stratum, "strategy": strategy, "n_bins": (4, 9)}
    assert refinement_error(y, p, **options) == pytest.approx(np.mean(refinement), rel=1e-12)
    assert calibration_error(y, p, **options) == pytest.approx(np.mean(calibration), rel=1e-12)
