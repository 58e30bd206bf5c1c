"""uv_decompose and rank_profile, compared with the example of a lecture, a plain implementation, and NumPy."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings
from dataclasses import replace

import make_decomposition_reference
import mpmath
import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_files import make_again, read_reference

from powerkern.completion import complete_by_average, rank_profile, uv_decompose

nan = np.nan
LECTURE = np.array(make_decomposition_reference.LECTURE, dtype=float)
ONES = np.ones((5, 2)), np.ones((2, 5))
NORMALIZATIONS = [None, "rows", "columns", "both", "zscores"]


def low_rank(m=60, n=25, d=3, noise=0.1, missing=0.3, seed=0):
    """Return an (m, n) matrix with NaN for a fraction `missing` of its entries, and the complete matrix.

    The complete matrix is a matrix of rank `d` plus normal noise of standard deviation `noise`.
    """
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(m, d)) @ rng.normal(size=(d, n)) + noise * rng.normal(size=(m, n))
    return np.where(rng.uniform(size=full.shape) < missing, nan, full), full


# --- the textbook ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference():
    return read_reference("decomposition.json")


def test_first_elements_agree_with_the_lecture():
    visits = [("U", 0, 0), ("V", 0, 0), ("U", 2, 0)]
    result = uv_decompose(LECTURE, 2, init=ONES, order=visits, max_epochs=1)
    found = [result.U[0, 0], result.V[0, 0], result.U[2, 0]]
    np.testing.assert_allclose(found, [2.6, 1.6171003717472119, 1.1784655975269993], rtol=1e-14)


def test_first_steps_agree_with_the_reference(reference):
    for k, rmse in enumerate(reference["first"]["rmse"], start=1):
        visits = [("U", 0, 0), ("V", 0, 0), ("U", 2, 0)][:k]
        result = uv_decompose(LECTURE, 2, init=ONES, order=visits, max_epochs=1)
        assert result.rmse == pytest.approx(rmse, rel=1e-13)
    np.testing.assert_allclose(result.reconstruct(), reference["first"]["product"], rtol=1e-13)


@pytest.mark.parametrize("epochs", [1, 10])
def test_epochs_agree_with_the_reference(reference, epochs):
    result, expected = uv_decompose(LECTURE, 2, init=ONES, max_epochs=epochs, tol=0), reference["epochs"][str(epochs)]
    np.testing.assert_allclose(result.U, expected["U"], rtol=1e-12)
    np.testing.assert_allclose(result.V, expected["V"], rtol=1e-12)
    assert result.rmse == pytest.approx(reference["rmse"][epochs - 1], rel=1e-13)


def test_the_limit_agrees_with_the_reference(reference):
    result = uv_decompose(LECTURE, 2, init=ONES, max_epochs=5000, tol=0)
    np.testing.assert_allclose(result.reconstruct(), reference["end"], rtol=1e-9)
    np.testing.assert_allclose(result.history[:20], reference["rmse"], rtol=1e-12)


def test_least_squares_ends_where_coordinates_do(reference):
    result = uv_decompose(LECTURE, 2, "als", rng=0, n_starts=3, max_epochs=2000, tol=1e-15)
    np.testing.assert_allclose(result.reconstruct(), reference["end"], rtol=1e-6)


def test_the_script_still_writes_its_file(reference):
    assert make_again(make_decomposition_reference.first_elements()) == reference["first"]
    with mpmath.workdps(40):
        parts = next(make_decomposition_reference.all_epochs())
        assert float(parts.rmse()) == reference["rmse"][0]


# --- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge, damping", [(0.0, 1.0), (0.5, 0.7)])
def test_three_epochs_agree_with_a_plain_implementation(ridge, damping):
    M, _ = low_rank(8, 6, 2)
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(8, 2)), rng.normal(size=(2, 6))
    result = uv_decompose(M, 2, init=(U, V), ridge=ridge, damping=damping, max_epochs=3, tol=0)
    U, V = oracles.uv_visit(M, U, V, oracles.uv_all_elements(8, 6, 2) * 3, ridge, damping)
    np.testing.assert_allclose(result.U, U, rtol=1e-10)
    np.testing.assert_allclose(result.V, V, rtol=1e-10)
    assert result.rmse == pytest.approx(oracles.uv_rmse(M, U, V), rel=1e-12)


def test_a_permuted_order_visits_everything():
    M, _ = low_rank(8, 6, 2)
    fixed, permuted = (uv_decompose(M, 1, order=order, tol=1e-12, rng=0) for order in ("fixed", "permuted"))
    np.testing.assert_allclose(permuted.reconstruct(), fixed.reconstruct(), rtol=1e-4)
    assert (permuted.U != fixed.U).all()
    assert (permuted.V != fixed.V).all()


def test_columns_first_is_the_transpose():
    M, _ = low_rank(8, 6, 2)
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(8, 2)), rng.normal(size=(2, 6))
    options = {"max_epochs": 3, "tol": 0}
    for method in ("cd", "als"):
        result = uv_decompose(M, 2, method, init=(U, V), order="columns-first", **options)
        turned = uv_decompose(M.T, 2, method, init=(V.T, U.T), **options)
        assert (result.U == turned.V.T).all()
        assert (result.V == turned.U.T).all()
        assert (result.history == turned.history).all()
    one = uv_decompose(M, 2, init=(U, V), order="columns-first", max_epochs=1)
    elements = sorted(oracles.uv_all_elements(8, 6, 2), key=order_of)
    np.testing.assert_allclose(one.U, oracles.uv_visit(M, U, V, elements)[0], rtol=1e-10)


def order_of(element):
    return element[0] == "U", element[1:]


def relative_moves(before, after):
    """Return the absolute change of each element, divided by the root mean square of its factor after the change.

    `before` and `after` are pairs (U, V). The result is a dictionary with keys ``(factor, i, j)``, such as ("U", 0, 1).
    """
    return {
        (name, i, j): abs(new[i, j] - old[i, j]) / np.sqrt(np.mean(new**2))
        for name, old, new in zip("UV", before, after, strict=True)
        for i, j in np.ndindex(new.shape)
    }


@pytest.mark.parametrize("method", ["cd", "als"])
def test_stopping_by_the_largest_change(method):
    M, _ = low_rank(20, 10, 2)
    options = {"ridge": 0.3, "criterion": "change", "rng": 0}
    tol = 1e-3
    result = uv_decompose(M, 2, method, tol=tol, **options)
    runs = [uv_decompose(M, 2, method, tol=0, max_epochs=k, **options) for k in range(1, result.epoch + 1)]
    largest = [max(relative_moves((a.U, a.V), (b.U, b.V)).values()) for a, b in itertools.pairwise(runs)]
    assert result.converged
    assert len(largest) > 3
    assert largest[-1] <= tol < min(largest[:-1])
    assert not runs[-1].converged


@pytest.mark.parametrize("method", ["cd", "als"])
def test_the_gradient_is_zero_at_the_result(method):
    """At the result, the gradient of the objective is zero with respect to both factors."""
    M, _ = low_rank()
    result = uv_decompose(M, 3, method, ridge=0.4, tol=1e-14, max_epochs=3000, rng=0)
    residual = np.nan_to_num(M - result.U @ result.V)
    np.testing.assert_allclose(residual @ result.V.T, 0.4 * result.U, atol=1e-5)
    np.testing.assert_allclose(result.U.T @ residual, 0.4 * result.V, atol=1e-5)


@pytest.mark.parametrize("method", ["cd", "als"])
def test_the_error_falls(method):
    M, _ = low_rank()
    for damping in (1.0, 0.5):
        history = uv_decompose(M, 3, method, damping=damping, rng=0).history
        assert (np.diff(history) < 0.0).all()


def test_a_mean_start_has_the_mean_as_product():
    M = -np.abs(low_rank()[0])
    result = uv_decompose(M, 2, init="mean", order=[("U", 0, 0)], max_epochs=1)
    np.testing.assert_allclose((result.U @ result.V)[1:], np.nanmean(M), rtol=1e-14)


@pytest.mark.parametrize("rank", [2, 4])
def test_a_start_from_means_averages_row_and_column_means(rank):
    M, _ = low_rank()
    M += 5.0
    options = {"init": "means", "rng": 0}
    result = uv_decompose(M, rank, order=[("U", 0, 0)], max_epochs=1, **options)
    expected = (np.nanmean(M, axis=1)[:, None] + np.nanmean(M, axis=0)) / 2.0
    np.testing.assert_allclose((result.U @ result.V)[1:], expected[1:], rtol=1e-14)
    for method in ("cd", "als"):
        for order in ("fixed", "columns-first"):
            found = uv_decompose(M, rank, method, order=order, tol=1e-10, max_epochs=3000, **options)
            best = uv_decompose(M, rank, "als", tol=1e-10, max_epochs=3000, n_starts=3, rng=1)
            assert found.rmse == pytest.approx(best.rmse, rel=1e-4)


def test_the_start_from_means_heeds_what_is_held_out_and_taken_out():
    M, _ = low_rank(12, 8, 2)
    M[3] = nan
    options = {"init": "means", "order": [("U", 0, 0)], "max_epochs": 1, "normalize": "columns"}
    with pytest.warns(UserWarning, match="no entries in row 3"):
        result = uv_decompose(M, 2, **options)
    rest = M - np.nanmean(M, axis=0)
    expected = (np.nan_to_num(np.nanmean(np.delete(rest, 3, 0), axis=1))[:, None] + np.nanmean(rest, axis=0)) / 2.0
    np.testing.assert_allclose(np.delete(result.U @ result.V, 3, 0)[1:], expected[1:], rtol=1e-9, atol=1e-12)
    assert (result.U[3] == 0.0).all()


def test_the_best_of_several_starts_is_returned():
    M, _ = low_rank(d=6, noise=0.5)
    options = {"max_epochs": 5, "tol": 0}
    generator = np.random.default_rng(3)
    singles = [uv_decompose(M, 4, rng=generator, **options).rmse for _ in range(4)]
    assert uv_decompose(M, 4, n_starts=4, rng=np.random.default_rng(3), **options).rmse == min(singles)


def test_random_numbers_come_from_rng_as_spec_7_has_it():
    M, _ = low_rank(d=3, noise=0.5)
    seeds = (7, np.int64(7), np.random.default_rng(7), np.random.SeedSequence(7), np.random.PCG64(7))
    found = [uv_decompose(M, 2, rng=seed, max_epochs=3).U for seed in seeds]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert not np.array_equal(uv_decompose(M, 2, max_epochs=3).U, uv_decompose(M, 2, max_epochs=3).U)
    for wrong in (-1, True, 1.5, "7"):
        with pytest.raises(
            TypeError, match=r"rng must be a whole number of at least 0, a numpy\.random\.Generator or None"
        ):
            uv_decompose(M, 2, rng=wrong)
    with pytest.raises(TypeError, match="'random_state'; did you mean 'rng'"):
        uv_decompose(M, 2, random_state=7)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_normalisations_agree_with_numpy(normalize):
    M, _ = low_rank()
    M += 100.0 * np.arange(60.0)[:, None] + np.arange(25.0)
    rows = np.nanmean(M, axis=1) if normalize in ("rows", "both") else np.zeros(60)
    rest = M - rows[:, None]
    cols = np.zeros(25) if normalize in (None, "rows") else np.nanmean(rest, axis=0)
    scale = np.nanstd(rest, axis=0) if normalize == "zscores" else np.ones(25)
    result = uv_decompose(M, 2, normalize=normalize, rng=0)
    np.testing.assert_allclose(result.row_offset, rows, rtol=1e-13)
    np.testing.assert_allclose(result.column_offset, cols, rtol=1e-13, atol=1e-11)
    np.testing.assert_allclose(result.column_scale, scale, rtol=1e-13)
    rest = (rest - cols) / scale
    assert result.rmse == pytest.approx(oracles.uv_rmse(rest, result.U, result.V), rel=1e-10)
    by_hand = uv_decompose(rest, 2, rng=0).reconstruct() * scale + cols + rows[:, None]
    np.testing.assert_allclose(result.reconstruct(), by_hand, rtol=1e-9, atol=1e-6)


def test_held_out_entries_stop_the_iteration():
    M, _ = low_rank(noise=1.0, d=2)
    result = uv_decompose(M, 8, validation_fraction=0.2, patience=3, tol=0, rng=0)
    assert result.validation_history.size == result.history.size
    assert result.epoch == 1 + np.argmin(result.validation_history) == result.history.size - 3
    assert result.validation_rmse == result.validation_history.min()
    assert result.rmse == result.history[result.epoch - 1]
    # the squared errors of the fitted and of the held-out entries add up to the total
    seen, squares = ~np.isnan(M), np.nansum((M - result.reconstruct()) ** 2)
    held = round(0.2 * seen.sum())
    expected = held * result.validation_rmse**2 + (seen.sum() - held) * result.rmse**2
    assert squares == pytest.approx(expected, rel=1e-10)


def test_nothing_held_out_has_no_validation():
    result = uv_decompose(LECTURE, 1, rng=0)
    assert np.isnan(result.validation_rmse)
    assert result.converged


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("size", [1e300, 1e-300, 2.0**-1050])
def test_results_are_equivariant_to_the_unit(normalize, size):
    M, _ = low_rank()
    M = np.round(M * 64.0) / 64.0
    options = {"normalize": normalize, "rng": 0, "max_epochs": 5, "ridge": 0.0}
    one, other = uv_decompose(M, 3, **options), uv_decompose(M * size, 3, **options)
    close = {"rtol": 1e-9, "atol": 1e-9} if size > 1e-305 else {"rtol": 1e-5, "atol": 1e-5}  # subnormal: few digits
    np.testing.assert_allclose(other.reconstruct() / size, one.reconstruct(), **close)
    np.testing.assert_allclose(other.fold_in(M * size) / size, one.fold_in(M), **close)


@pytest.mark.parametrize("decades", [82, 100, 300])
def test_z_scores_do_not_depend_on_units_of_columns(decades):
    M, _ = low_rank(n=10)
    units = 2.0 ** np.round(np.log2(10.0) * decades * np.array([1.0, -1.0, 0.0, 0.5, -0.5, 1.0, -1.0, 0.0, 0.5, -0.5]))
    options = {"normalize": "zscores", "rng": 0, "validation_fraction": 0.1}
    one, other = uv_decompose(M, 3, **options), uv_decompose(M * units, 3, **options)
    np.testing.assert_allclose(other.history, one.history, rtol=1e-9)
    np.testing.assert_allclose(other.validation_history, one.validation_history, rtol=1e-9)
    np.testing.assert_allclose(other.column_scale / units, one.column_scale, rtol=1e-12)
    np.testing.assert_allclose(other.reconstruct() / units, one.reconstruct(), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.fold_in(M * units) / units, one.fold_in(M), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", ["cd", "als"])
def test_threads_memory_order_and_dtype_do_not_matter(method):
    M, _ = low_rank(300, 400)
    first = uv_decompose(M, 3, method, rng=0, n_threads=1)
    frozen = np.asfortranarray(M)
    frozen.flags.writeable = False
    for other, n_threads in ((M, 2), (M, 5), (frozen, 2), (M.astype(">f8"), 1), (np.ma.masked_invalid(M), 1)):
        result = uv_decompose(other, 3, method, rng=0, n_threads=n_threads)
        assert (result.U == first.U).all()
        assert (result.V == first.V).all()
        assert (result.history == first.history).all()
        assert (first.fold_in(other, n_threads=n_threads) == first.fold_in(M, n_threads=1)).all()
    assert np.isnan(M).any()  # M itself is unchanged


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 2**32 - 1), st.sampled_from(NORMALIZATIONS), st.data())
def test_estimates_are_finite_whatever_is_missing(m, n, seed, normalize, data):
    rank = data.draw(st.integers(1, min(m, n)))
    method = data.draw(st.sampled_from(["cd", "als"]))
    rng = np.random.default_rng(seed)
    M = rng.choice([0.0, 1.0, 1e6, -3.5], size=(m, n))
    M[rng.uniform(size=M.shape) < 0.5] = nan
    M[0, 0] = 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = uv_decompose(M, rank, method, normalize=normalize, rng=0)
    completed = result.complete(M)
    assert np.isfinite(completed).all()
    assert np.isfinite(result.fold_in(M)).all()
    assert (completed == M)[~np.isnan(M)].all()


# --- new rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_folding_in_fits_a_row_alone(normalize):
    M, _ = low_rank()
    result = uv_decompose(M, 3, normalize=normalize, ridge=0.1, rng=0)
    new, _ = low_rank(10, seed=1)
    new[3] = nan
    offset = np.nan_to_num(np.nanmean(new[:3], axis=1)) if normalize in ("rows", "both") else np.zeros(3)
    rest = (new[:3] - offset[:, None] - result.column_offset) / result.column_scale
    U = oracles.uv_least_squares(rest, result.V, 0.1)
    expected = (U @ result.V) * result.column_scale + result.column_offset + offset[:, None]
    filled = result.fold_in(new)
    np.testing.assert_allclose(filled[:3], np.where(np.isnan(new[:3]), expected, new[:3]), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(filled[3], result.column_offset)
    np.testing.assert_allclose(result.fold_in(new[4:5]), filled[4:5], rtol=1e-12)  # independent of the other new rows


# --- what cannot be done --------------------------------------------------------------------------------


def test_rows_and_columns_without_entries_get_offsets():
    M, _ = low_rank()
    M[3], M[:, 5] = nan, nan
    with pytest.warns(
        UserWarning, match=r"^no entries in row 3, column 5: estimates there consist only of the offsets of normalize"
    ):
        result = uv_decompose(M, 2, normalize="columns", rng=0)
    np.testing.assert_array_equal(result.reconstruct()[3], result.column_offset)
    np.testing.assert_array_equal(result.reconstruct()[:, 5], 0.0)


def test_a_long_list_is_cut_short():
    with pytest.warns(UserWarning, match=r"row 10 and 9 more: "):
        uv_decompose([[1.0]] + [[nan]] * 19, 1)


@pytest.mark.parametrize("normalize", NORMALIZATIONS)
@pytest.mark.parametrize("value", [0.0, 7.0, -1e200])
def test_constant_matrices_are_completed_by_their_constant(normalize, value):
    M = np.full((4, 3), value)
    M[1, 2] = nan
    result = uv_decompose(M, 2, normalize=normalize, tol=1e-14, rng=0)
    np.testing.assert_allclose(result.complete(M)[0], value, rtol=1e-12)
    assert result.converged
    for method in ("cd", "als"):
        result = uv_decompose(M, 1 if normalize is None else 2, method, normalize=normalize, tol=1e-14, rng=0)
        np.testing.assert_allclose(result.complete(M), value, rtol=1e-12)


@pytest.mark.parametrize(
    "M, rank, options, error, message",
    [
        (LECTURE, 6, {}, ValueError, r"rank is 6, but M has shape \(5, 5\); use at most 5"),
        (LECTURE, 0, {}, ValueError, "rank must be at least 1"),
        (LECTURE, 2.0, {}, TypeError, "rank must be a whole number"),
        (LECTURE, True, {}, TypeError, "rank must be a whole number"),
        (np.full((3, 3), nan), 1, {}, ValueError, "M has no entries"),
        ([[1.0, 2.0], [np.inf, 1.0]], 1, {}, ValueError, "column 0, row 1: the value is inf"),
        (np.empty((0, 3)), 1, {}, ValueError, "M has no rows"),
        ([["a"]], 1, {}, TypeError, "'a' is not a real number"),
        (LECTURE, 2, {"method": "svd"}, ValueError, "method must be one of 'cd', 'als'"),
        (LECTURE, 2, {"normalize": "row"}, ValueError, "did you mean 'rows'"),
        (LECTURE, 2, {"init": "ones"}, ValueError, "init must be one of 'random', 'mean'"),
        (LECTURE, 2, {"init": 1.0}, TypeError, r"init must be 'random', 'mean' or a pair \(U, V\)"),
        (LECTURE, 2, {"init": ONES[::-1]}, ValueError, r"U in init must have shape \(5, 2\)"),
        (LECTURE, 2, {"init": (ONES[0] * nan, ONES[1])}, ValueError, "no NaN"),
        (LECTURE, 2, {"init": (ONES[0] * 1e200, ONES[1] * 1e200)}, ValueError, "the factors overflow"),
        (LECTURE, 2, {"init": "mean", "method": "als"}, ValueError, "cannot separate"),
        (LECTURE, 2, {"init": "mean", "normalize": "rows"}, ValueError, "starts at 0"),
        (LECTURE, 1, {"init": "means"}, ValueError, "init='means' is a product of rank 2; use init='mean' for rank 1"),
        (LECTURE, 2, {"init": "means", "n_starts": 2}, ValueError, "n_starts > 1 needs init='random'"),
        (LECTURE, 2, {"criterion": "loss"}, ValueError, "criterion must be one of 'rmse', 'change'"),
        (LECTURE, 2, {"init": "mean", "n_starts": 2}, ValueError, "n_starts > 1 needs init='random'"),
        (LECTURE, 2, {"order": "random"}, ValueError, "order must be one of 'fixed', 'columns-first', 'permuted'"),
        (LECTURE, 2, {"order": []}, ValueError, "order has no elements"),
        (LECTURE, 2, {"order": [("V", 2, 0)]}, ValueError, r"order has \('V', 2, 0\), but V has shape \(2, 5\)"),
        (LECTURE, 2, {"order": [("W", 0, 0)]}, ValueError, "an element of order must be one of 'U', 'V'"),
        (LECTURE, 2, {"order": [3]}, TypeError, "order has 3; an element is"),
        (LECTURE, 2, {"order": [("U", 0.5, 0)]}, TypeError, r"order has \('U', 0\.5, 0\); an element is"),
        (LECTURE, 2, {"order": 3}, TypeError, "order must be 'fixed', 'permuted' or a sequence of elements, got 3"),
        (LECTURE, 2, {"order": "permuted", "method": "als"}, ValueError, "needs method='cd'"),
        (LECTURE, 2, {"damping": 0.0}, ValueError, "damping must be a number in \\[0.01, 1\\]"),
        (LECTURE, 2, {"ridge": -1.0}, ValueError, "ridge must be a number in \\[0, inf\\)"),
        (LECTURE, 2, {"ridge": "1"}, TypeError, "ridge must be a number"),
        (LECTURE, 2, {"tol": nan}, ValueError, "tol must be a number in \\[0, inf\\)"),
        (LECTURE, 2, {"validation_fraction": 1.0}, ValueError, "validation_fraction must be a number in \\[0, 0.9\\]"),
        ([[1.0]], 1, {"validation_fraction": 0.5}, ValueError, "only one entry"),
        (LECTURE, 2, {"n_threads": 0}, ValueError, "n_threads must be at least 1"),
    ],
)
def test_invalid_arguments_are_refused(M, rank, options, error, message):
    with pytest.raises(error, match=message):
        uv_decompose(M, rank, **options)


def test_other_shapes_are_refused():
    result = uv_decompose(LECTURE, 1, rng=0)
    with pytest.raises(ValueError, match=r"M has shape \(4, 5\), the decomposed matrix \(5, 5\)"):
        result.complete(LECTURE[:4])
    with pytest.raises(ValueError, match="M has 4 columns, the decomposed matrix has 5; pass the same columns"):
        result.fold_in(LECTURE[:, :4])


def test_a_data_frame_is_named_in_messages():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [nan, nan]})
    with pytest.warns(UserWarning, match=r"no entries in column 1 \('b'\)"):
        uv_decompose(frame, 1)


# --- the rank -------------------------------------------------------------------------------------------


def test_the_rank_is_found():
    M, _ = low_rank(100, 60, 4)
    profile = rank_profile(M, rng=0)
    assert profile.ranks.tolist() == list(range(1, 11))
    assert profile.best == profile.elbow == 4
    assert (np.diff(profile.rmse) < 0.0).all()
    assert profile.validation_rmse.argmin() == 3


def test_the_elbow_of_a_gentle_curve_comes_first():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(200, 8)) * [9, 8, 7, 0.8, 0.7, 0.6, 0.5, 0.4] @ rng.normal(size=(8, 100))
    profile = rank_profile(M + 0.1 * rng.normal(size=M.shape), rng=0)
    assert profile.elbow == 3
    assert profile.best == 8


@pytest.mark.parametrize("ranks", [[], [2, 1], [1, 1]])
def test_ranks_increase(ranks):
    with pytest.raises(ValueError, match="ranks must be increasing"):
        rank_profile(LECTURE, ranks)


def test_one_rank_is_a_list_of_one():
    assert rank_profile(LECTURE, 1, rng=0).ranks.tolist() == [1]
    with pytest.raises(TypeError, match=r"rank must be a whole number, got 1\.5"):
        rank_profile(LECTURE, [1.5])


def test_ranks_need_entries_held_out():
    with pytest.raises(ValueError, match="ranks are compared by the error on held-out entries"):
        rank_profile(LECTURE, validation_fraction=0)


# --- imports --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_functions_need_no_scikit_learn():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import powerkern.completion as c\n"
        "print(c.uv_decompose([[1.0]], 1).rank)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1"


@pytest.mark.parametrize("normalize", ["columns-first", "average"])
def test_other_normalizations_of_the_lecture_agree_with_numpy(normalize):
    """Offsets equal their definitions in NumPy and are added back to the estimates of fitted rows and new rows."""
    rng = np.random.default_rng(3)
    M = 5.0 + rng.normal(size=(12, 7)) + rng.normal(size=(12, 1)) + rng.normal(size=7)
    M[rng.uniform(size=M.shape) < 0.2] = np.nan
    result = uv_decompose(M, 1, normalize=normalize, rng=0)
    if normalize == "average":
        row, column = np.nanmean(M, axis=1) / 2.0, np.nanmean(M, axis=0) / 2.0
    else:
        column = np.nanmean(M, axis=0)
        row = np.nanmean(M - column, axis=1)
    np.testing.assert_allclose(result.row_offset, row, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(result.column_offset, column, rtol=1e-13)
    expected = result.U @ result.V + row[:, None] + column
    np.testing.assert_allclose(result.reconstruct(), expected, rtol=1e-12)
    fold = result.fold_in(M[:3])
    np.testing.assert_array_equal(fold[~np.isnan(M[:3])], M[:3][~np.isnan(M[:3])])
    assert np.isfinite(fold).all()


def test_caution_is_a_ratio_of_variances():
    """The caution is the variance within rows over the variance of the row means, computed here by loops."""
    from powerkern.completion.low_rank import _caution

    rng = np.random.default_rng(5)
    rows = [3.0 * rng.normal() + rng.normal(size=n) for n in (3, 6, 5, 4, 2)]
    values = np.full((5, 6), np.nan)
    for i, row in enumerate(rows):
        values[i, : row.size] = row
    within = sum(((row - row.mean()) ** 2).sum() for row in rows) / sum(row.size - 1 for row in rows)
    between = (sum(row.size * row.mean() ** 2 for row in rows) - len(rows) * within) / sum(row.size for row in rows)
    assert _caution(values) == pytest.approx(within / between, rel=1e-12)


@pytest.mark.parametrize("validation_fraction", [0.0, 0.2])
def test_the_average_of_decompositions_is_weighted(validation_fraction):
    rng = np.random.default_rng(3)
    M = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 20)) + 0.3 * rng.normal(size=(30, 20))
    M[rng.random(M.shape) < 0.3] = np.nan
    options = {"validation_fraction": validation_fraction, "rng": 0}
    every = [uv_decompose(M, rank, normalize=how, **options) for rank, how in ((1, "average"), (3, None), (2, "both"))]
    errors = np.array([each.validation_rmse if validation_fraction else each.rmse for each in every])
    assert np.unique(errors).size == 3
    expected = sum(each.reconstruct() / error**2 for each, error in zip(every, errors, strict=True))
    expected /= (1.0 / errors**2).sum()
    found = complete_by_average(M, every)
    missing = np.isnan(M)
    np.testing.assert_allclose(found[missing], expected[missing], rtol=1e-12)
    assert np.array_equal(found[~missing], M[~missing])
    assert np.array_equal(complete_by_average(M, every[:1]), every[0].complete(M))


def test_an_exact_decomposition_has_the_whole_weight():
    M = np.outer(np.arange(1.0, 6.0), np.arange(1.0, 5.0))
    M[0, 0] = np.nan
    exact, rough = uv_decompose(M, 1, tol=1e-15, rng=0), uv_decompose(M, 1, init="mean", max_epochs=1)
    exact = replace(exact, history=np.zeros_like(exact.history))
    assert complete_by_average(M, [exact, rough])[0, 0] == exact.complete(M)[0, 0]


@pytest.mark.parametrize("decompositions", [[], [1.0], "text"])
def test_only_decompositions_can_be_averaged(decompositions):
    with pytest.raises(TypeError, match="decompositions must be one or more results of uv_decompose"):
        complete_by_average(np.ones((2, 2)), decompositions)


def test_offsets_of_the_rows_of_a_single_column():
    M = np.array([[4.0], [8.0], [nan], [2.0]])
    with pytest.warns(UserWarning, match="row 2"):
        result = uv_decompose(M, 1, normalize="rows", rng=0)
    np.testing.assert_allclose(result.row_offset, [4.0, 8.0, 0.0, 2.0])
    np.testing.assert_allclose(result.reconstruct()[[0, 1, 3]], M[[0, 1, 3]])


@pytest.mark.parametrize("which", [0, 1])
def test_starting_factors_are_complete_and_of_the_right_shape(which):
    M = np.arange(1.0, 13.0).reshape(3, 4)
    factors = [np.ones((3, 2)), np.ones((2, 4))]
    uv_decompose(M, 2, init=tuple(factors), max_epochs=1)
    for wrong in (np.full(factors[which].shape, nan), factors[which].T, factors[which][:, :1]):
        given = list(factors)
        given[which] = wrong
        with pytest.raises(ValueError, match=r"\b(init|U|V)\b"):
            uv_decompose(M, 2, init=tuple(given), max_epochs=1)


@pytest.mark.parametrize(
    ("element", "is_valid"),
    [(("U", 0, 0), True), (("U", 2, 1), True), (("V", 1, 3), True), (("U", 3, 0), False), (("U", 0, 2), False),
     (("V", 2, 0), False), (("V", 0, 4), False), (("U", -1, 0), False), (("V", 0, -1), False), (("U", 0), False),
     (("W", 0, 0), False), (("U", 0.5, 0), False)],
)  # fmt: skip
def test_elements_of_an_order_are_in_the_factors(element, is_valid):
    M = np.arange(1.0, 13.0).reshape(3, 4)
    if is_valid:
        uv_decompose(M, 2, order=[element], max_epochs=1, rng=0)
    else:
        with pytest.raises((ValueError, TypeError), match="order"):
            uv_decompose(M, 2, order=[element], max_epochs=1, rng=0)
