"""Arguments of kernels that are called from Python: conversions, and messages that name the argument."""

from __future__ import annotations

import re

import numpy as np
import pytest

from powerkern.kernels.plain_arguments import as_real, as_reals, as_vector, format_argument


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x" * 58, repr("x" * 58)),  # 60 characters with the quotation marks
        ("x" * 59, "'" + "x" * 56 + "... (str)"),
        (np.zeros((2, 2)), "array([[0., 0.], [0., 0.]])"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16... (list)"),
    ],
)
def test_long_arguments_are_cut_after_57_characters(value, text):
    assert format_argument(value) == text


@pytest.mark.parametrize("value", [2.5, 3, True, np.float32(0.5), np.int64(-7), [1.5], np.array([[2.0]]), 2**70])
def test_one_number_becomes_a_float(value):
    number = as_real("lmbda", value)
    assert type(number) is float
    assert number == float(np.ravel(np.asarray(value, dtype=float))[0])


@pytest.mark.parametrize("value", [[], [1.0, 2.0], np.zeros((2, 1))])
def test_other_sizes_are_not_one_number(value):
    with pytest.raises(TypeError, match=f"lmbda must be one number, got {re.escape(format_argument(value))}"):
        as_real("lmbda", value)


@pytest.mark.parametrize("value", [[1, 2], (1.5, 2.5), np.arange(6.0)[::2], np.array([True, False]), [], [2**70, 1]])
def test_vectors_are_contiguous_and_float64(value):
    vector = as_vector("x", value)
    assert vector.dtype == np.float64
    assert vector.flags.c_contiguous
    assert vector.tolist() == [float(each) for each in value]


@pytest.mark.parametrize("value", [1.0, [[1.0, 2.0]]])
def test_vectors_have_one_dimension(value):
    with pytest.raises(ValueError, match=re.escape(f"x must be one-dimensional, got shape {np.shape(value)}")):
        as_vector("x", value)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (["a"], TypeError, "x must be real numbers, got dtype <U1"),
        ([1.0j], TypeError, "x must be real numbers, got dtype complex128"),
        ([None, 1.0], TypeError, r"x must be real numbers, got \[None, 1.0\]"),
        ([2**70, "a"], TypeError, None),
        ([10**400], ValueError, "x has integers beyond the range of float64, 1.8e308; divide all of them first"),
        ([[1.0], [1.0, 2.0]], ValueError, r"x must be a number or numbers in rows of one length, got \[\[1.0\]"),
    ],
)
def test_what_is_not_a_real_number_is_refused(value, kind, message):
    with pytest.raises(kind, match=message):
        as_reals("x", value)


def test_empty_arrays_may_have_any_dtype():
    assert as_reals("x", np.empty((0, 2), dtype="U1")).shape == (0, 2)


def test_numbers_beyond_float64_are_infinite():
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        assert as_reals("x", np.longdouble(2.0) ** 2000) == np.inf
