"""Robust principal components compared with NumPy's, and the distances and cut-offs of the outlier map."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from powerkern.cellwise import wrap, wrapped_correlation, wrapped_covariance, wrapped_pca


def low_rank(n=300, p=8, k=2, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) + noise * rng.normal(size=(n, p))


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("n, p", [(300, 8), (12, 40)])
def test_components_are_the_eigenvectors(standardize, n, p):
    x = low_rank(n, p)
    fit = wrapped_pca(x, 3, standardize=standardize)
    target = wrapped_correlation(x) if standardize else wrapped_covariance(x)
    values, vectors = np.linalg.eigh(target)
    np.testing.assert_allclose(fit.eigenvalues, values[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(fit.components @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(fit.explained_variance_ratio, fit.eigenvalues / np.trace(target), rtol=1e-10)
    assert (np.take_along_axis(fit.components, np.abs(fit.components).argmax(axis=1)[:, None], axis=1) > 0.0).all()


@pytest.mark.parametrize("standardize", [True, False])
def test_scores_and_distances_agree_with_numpy(standardize):
    x = low_rank()
    fit = wrapped_pca(x, 2, standardize=standardize)
    wrapped = wrap(x)
    unit = wrapped.scale if standardize else np.ones(8)
    y = (x - wrapped.values.mean(axis=0)) / unit
    np.testing.assert_allclose(fit.scores, y @ fit.components.T, atol=1e-10)
    inside = np.sqrt((fit.scores**2 / fit.eigenvalues).sum(axis=1))
    np.testing.assert_allclose(fit.score_distances, inside, rtol=1e-10)
    rest = y - fit.scores @ fit.components
    np.testing.assert_allclose(fit.orthogonal_distances, np.linalg.norm(rest, axis=1), rtol=1e-9)
    np.testing.assert_allclose(fit.transform(x), fit.scores)
    np.testing.assert_allclose(fit.distances(x), [fit.score_distances, fit.orthogonal_distances])
    back = fit.inverse_transform(fit.scores)
    np.testing.assert_allclose(np.linalg.norm((x - back) / unit, axis=1), fit.orthogonal_distances, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_no_row_lies_outside_of_all_components(size):
    x = size * low_rank(60, 4)
    assert (wrapped_pca(x, 4, standardize=False).distances(x)[1] == 0.0).all()
    assert (wrapped_pca(x, 3, standardize=False).distances(x)[1] > 0.0).all()


def test_cutoffs_flag_the_nominal_fraction():
    x = low_rank(4000)
    fit = wrapped_pca(x, 2, standardize=False, quantile=0.95)
    assert fit.score_cutoff == pytest.approx(np.sqrt(stats.chi2.ppf(0.95, 2)))
    cube = wrap(fit.orthogonal_distances ** (2.0 / 3.0), method="mcd")
    expected = (cube.loc[0] + cube.scale[0] * stats.norm.ppf(0.95)) ** 1.5
    assert fit.orthogonal_cutoff == pytest.approx(expected)
    for distances, cutoff in (
        (fit.score_distances, fit.score_cutoff),
        (fit.orthogonal_distances, fit.orthogonal_cutoff),
    ):
        assert np.mean(distances > cutoff) == pytest.approx(0.05, abs=0.02)


def test_good_and_bad_leverage_and_orthogonal_outliers_are_told_apart():
    rng = np.random.default_rng(1)
    loadings = np.linalg.qr(rng.normal(size=(10, 10)))[0]
    x = rng.normal(size=(500, 2)) * [5.0, 4.0] @ loadings[:2] + 0.1 * rng.normal(size=(500, 10))
    x[0], x[1], x[2] = 30.0 * loadings[0], 2.0 * loadings[5], 30.0 * loadings[1] + 2.0 * loadings[6]
    fit = wrapped_pca(x, 2, standardize=False)
    inside = fit.score_distances[:3] > fit.score_cutoff
    outside = fit.orthogonal_distances[:3] > fit.orthogonal_cutoff
    assert inside.tolist() == [True, False, True]
    assert outside[1:].tolist() == [True, True]
    assert fit.outliers[:3].all()
    assert fit.outliers.mean() < 0.1


def test_the_number_of_components_explains_80_percent():
    x = low_rank(k=3, noise=0.01)
    fit = wrapped_pca(x)
    cumulative = np.cumsum(np.sort(np.linalg.eigvalsh(wrapped_correlation(x)))[::-1]) / 8
    assert fit.eigenvalues.size == np.searchsorted(cumulative, 0.8) + 1
    assert wrapped_pca(np.random.default_rng(0).normal(size=(400, 30))).eigenvalues.size == 10


def test_missing_values_count_as_the_center():
    x = low_rank()
    x[4] = np.nan
    x[5, 2] = np.nan
    fit = wrapped_pca(x, 2)
    np.testing.assert_array_equal(fit.scores[4], [0.0, 0.0])
    filled = np.where(np.isnan(x), fit.center, x)
    np.testing.assert_allclose(fit.transform(x), fit.transform(filled), atol=1e-14)


def test_all_components_leave_no_orthogonal_distance():
    x = np.random.default_rng(0).normal(size=50)
    fit = wrapped_pca(x)
    assert fit.components.tolist() == [[1.0]]
    assert (fit.orthogonal_distances == 0.0).all()
    assert fit.orthogonal_cutoff == 0.0
    assert wrapped_pca(low_rank(), 8).orthogonal_distances.max() == 0.0


def test_columns_without_a_scale_are_left_out():
    x = low_rank()
    x[:, 3] = 1.0
    with pytest.warns(UserWarning, match="column 3: no positive, finite scale; left out"):
        fit = wrapped_pca(x, 2)
    rest = np.arange(8) != 3
    np.testing.assert_allclose(fit.components[:, rest], wrapped_pca(x[:, rest], 2).components, atol=1e-10)
    assert (fit.components[:, 3] == 0.0).all()
    with pytest.raises(ValueError, match="no column of X"):
        wrapped_pca(np.ones((5, 2)))


def test_frames_are_matched_by_name():
    x = low_rank()
    frame = pd.DataFrame(x, columns=list("abcdefgh"))
    fit = wrapped_pca(frame, 2)
    assert fit.column_names == list("abcdefgh")
    np.testing.assert_array_equal(fit.transform(frame[list("hgfedcba")]), fit.transform(x))


def test_threads_and_row_order_do_not_change_scores():
    x = low_rank(2000, 30)
    base = wrapped_pca(x, 3, n_threads=1)
    np.testing.assert_array_equal(wrapped_pca(x, 3, n_threads=3).scores, base.scores)
    order = np.random.default_rng(0).permutation(2000)
    np.testing.assert_allclose(wrapped_pca(x[order], 3).scores, base.scores[order], atol=1e-9)


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"n_components": 0}, ValueError, "at least 1"),
        ({"n_components": 9}, ValueError, "from 1 to 8"),
        ({"n_components": 1.5}, TypeError, "whole number"),
        ({"quantile": 1.0}, ValueError, r"in \(0, 1\)"),
        ({"standardize": "yes"}, TypeError, "True or False"),
    ],
)
def test_invalid_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        wrapped_pca(low_rank(), **options)


def test_more_components_than_the_rank_are_refused():
    x = low_rank(k=2)
    x[:, 4:] = x[:, :4]
    with pytest.raises(ValueError, match="rank 4; use at most 4"):
        wrapped_pca(x, 6)


def test_infinite_values_are_refused():
    x = low_rank()
    x[2, 5] = np.inf
    with pytest.raises(ValueError, match="column 5, row 2"):
        wrapped_pca(x)


def test_scores_of_another_number_of_components_are_refused():
    fit = wrapped_pca(low_rank(), 2)
    with pytest.raises(ValueError, match=r"scores must have 2 columns, one per component, got shape \(4, 3\)"):
        fit.inverse_transform(np.ones((4, 3)))
    with pytest.raises(TypeError, match="scores must be a real number or real numbers"):
        fit.inverse_transform("a")
