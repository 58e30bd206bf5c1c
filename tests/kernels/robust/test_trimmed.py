"""The window of the trimmed likelihood, compared with the best of all windows, with and without weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerkern.kernels.location.weights import frequency_weights, new_frequency_work
from powerkern.kernels.robust import trimmed
from powerkern.kernels.robust.column import Prestandardized
from powerkern.kernels.transforms.rectified import ROOM, SortedColumn


def best_window(y, logs, w, lmbda, fraction):
    """Return the window that `trimmed._best_window` chooses.

    Parameters
    ----------
    y, logs : (n,) ndarray
        Transformed values, ascending, and logs of the original values.
    w : (n,) ndarray or None
        Weights.
    lmbda : float
        Lambda.
    fraction : float
        Fraction of the total weight that the window has.
    """
    n = y.size
    padded = [np.append(v, np.ones(ROOM)) for v in (y, logs)]
    counts = None if w is None else frequency_weights(w, new_frequency_work(n))
    column = SortedColumn(*padded, n, 0, 0.0, 0, n - 1)
    outward = tuple(np.full(n + 1, np.nan) for _ in range(3))
    with np.errstate(all="ignore"):
        window = trimmed._best_window(
            counts, Prestandardized(column, counts, None, padded[0]), lmbda, fraction, outward
        )
    factor = 1.0 if counts is None else counts.factor
    return window._replace(excluded_low=window.excluded_low / factor, excluded_high=window.excluded_high / factor)


def objective(y, logs, v, lmbda):
    mean = np.average(y, weights=v)
    return 0.5 * math.log(np.average((y - mean) ** 2, weights=v)) - (lmbda - 1.0) * np.average(logs, weights=v)


def brute_force(y, logs, w, lmbda, size):
    """Return the lowest objective of all windows of weight `size`, and the weights of the values in the best window.

    A window begins or ends between two values. The other arguments are as in `best_window`.
    """
    through = np.append(0.0, np.cumsum(w))
    best, weights = math.inf, None
    for start in np.append(through, through - size):
        if -1e-9 <= start <= through[-1] - size + 1e-9:
            v = np.clip(np.minimum(through[1:], start + size) - np.maximum(through[:-1], start), 0.0, None)
            v[v < 1e-9] = 0.0
            if np.unique(y[v > 0.0]).size > 1 and (value := objective(y, logs, v, lmbda)) < best - 1e-12:
                best, weights = value, v
    return best, weights


def whole_size(n, fraction):
    return min(max(math.ceil(fraction * n - 1e-9), n // 2 + 1), n)


def column(seed):
    rng = np.random.default_rng(seed)
    y = np.sort(np.round(rng.standard_t(2, size=int(rng.integers(4, 14))), 1)) + 100.0 * (seed % 3)
    if seed % 2:
        y[-1] += 50.0
    return y, np.sort(rng.normal(size=y.size)), rng


@pytest.mark.parametrize("fraction", [0.55, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_window_without_weights(seed, fraction):
    y, logs, _ = column(seed)
    n = y.size
    for lmbda in (-0.5, 1.0, 2.0):
        size = whole_size(n, fraction)
        value, weights = brute_force(y, logs, np.ones(n), lmbda, size)
        found = best_window(y, logs, None, lmbda, fraction)
        assert found.value == pytest.approx(value, abs=1e-9)
        assert (found.stop - found.start, found.excluded_low, found.excluded_high) == (size, 0.0, 0.0)
        ones = np.zeros(n)
        ones[found.start : found.stop] = 1.0
        assert objective(y, logs, ones, lmbda) == pytest.approx(value, abs=1e-9)
        assert weights.sum() == size


@pytest.mark.parametrize("fraction", [0.55, 0.8, 1.0])
@pytest.mark.parametrize("kind", ["whole", "fractional"])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_window_with_weights(seed, kind, fraction):
    """Compare with `brute_force`; the first and the last value may be inside with a part of their weight."""
    y, logs, rng = column(seed)
    n = y.size
    w = rng.integers(1, 4, n).astype(float) if kind == "whole" else rng.uniform(1.0, 3.0, n)
    total = w.sum()
    floor = math.floor(total + 1e-9)
    size = whole_size(floor, fraction)
    size += (total - floor) * (whole_size(floor + 1, fraction) - size) if total - floor > 1e-9 else 0.0
    for lmbda in (-0.5, 1.0, 2.0):
        value, _ = brute_force(y, logs, w, lmbda, size)
        found = best_window(y, logs, w, lmbda, fraction)
        assert found.value == pytest.approx(value, abs=1e-9)
        v = np.where((np.arange(n) >= found.start) & (np.arange(n) < found.stop), w, 0.0)
        v[found.start] -= found.excluded_low
        v[found.stop - 1] -= found.excluded_high
        assert v.sum() == pytest.approx(size, rel=1e-9)
        assert 0.0 <= found.excluded_low < w[found.start]
        assert 0.0 <= found.excluded_high < w[found.stop - 1]
        assert objective(y, logs, v, lmbda) == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_windows_of_equal_values_have_no_likelihood(weighted):
    y, logs = np.full(5, 2.0), np.zeros(5)
    assert best_window(y, logs, np.ones(5) if weighted else None, 1.0, 0.8).value == math.inf
    y = np.array([2.0, 2.0, 2.0, 2.0, 5.0, 6.0, 8.0])
    found = best_window(y, np.zeros(7), np.ones(7) if weighted else None, 1.0, 0.5)
    assert found.value == pytest.approx(brute_force(y, np.zeros(7), np.ones(7), 1.0, 4)[0], abs=1e-12)
    assert found.stop - found.start == 4
