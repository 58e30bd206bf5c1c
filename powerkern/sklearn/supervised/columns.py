"""Scale columns, transform and standardize them for each lambda of a search, and cache the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._fit import fit as fitting
from powerkern._typing import FloatArray

#: Largest size of the cache of transformed columns and of their moments by class, in bytes.
_CACHE = 2**28
#: New values are clipped to at most this many ranges beyond the training data. Box-Cox of data scaled to [1, 2] needs
#: positive values, and large powers of large values overflow in estimators.
_BEYOND = 0.99


class Cache:
    """Cache of at most `_CACHE` bytes for arrays that depend on a column and a lambda."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, float], FloatArray] = {}
        self._free = _CACHE

    def get(
        self,
        kind: str,
        which: NDArray[np.intp],
        lmbdas: FloatArray,
        compute: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    ) -> FloatArray:
        """Return the arrays of several pairs of a column and a lambda, stacked; compute and cache missing arrays.

        Parameters
        ----------
        kind : str
            Kind of the arrays: "values" or "moments".
        which : (k,) ndarray of int
            Positions of the columns.
        lmbdas : (k,) ndarray
            Lambda of each column.
        compute : callable
            ``compute(which, lmbdas)`` returns the arrays of some pairs. It is called once for all missing arrays.
        """
        keys = [(kind, j, lmbda) for j, lmbda in zip(which.tolist(), lmbdas.tolist(), strict=True)]
        missing = {key: k for k, key in enumerate(keys) if key not in self._kept}
        at = list(missing.values())
        fresh = dict(zip(missing, compute(which[at], lmbdas[at]), strict=True)) if at else {}
        found = np.array([fresh[key] if key in fresh else self._kept[key] for key in keys])
        for key, array in fresh.items():
            if array.nbytes <= self._free:
                self._kept[key] = array.copy()  # a view would keep the whole batch alive
                self._free -= array.nbytes
        return found


class TransformedColumns:
    """Transforms and standardizes columns, and caches the results.

    Parameters
    ----------
    scaled : (n, p) ndarray
        The scaled columns.
    family : {"box-cox", "yeo-johnson"}
        The transform.
    weight : (n,) ndarray or None
        Weights of the rows.
    """

    def __init__(self, scaled: FloatArray, family: str, weight: FloatArray | None) -> None:
        self._scaled = scaled
        self._family = family
        self._weight = weight
        self.cache = Cache()

    def get(self, which: NDArray[np.intp], lmbdas: FloatArray) -> FloatArray:
        """Return the columns at positions `which`, (k,), transformed with `lmbdas`, (k,), as rows, (k, n)."""
        return self.cache.get("values", which, lmbdas, self._transformed)

    def _transformed(self, which: NDArray[np.intp], lmbdas: FloatArray) -> FloatArray:
        """Compute the result of `get`."""
        given = self._scaled[:, which]
        fitted = fitting.fit(given, self._family, lmbda=lmbdas, sample_weight=self._weight, n_threads=1)
        return np.asarray(fitted.transform(given, n_threads=1).T)


class ColumnScaling(NamedTuple):
    """The map ``x -> (x - offset)/size + base`` of each column, clipped to [lowest, highest].

    `varies` is a mask of the columns that are not constant.
    """

    offset: FloatArray
    size: FloatArray
    base: float
    lowest: FloatArray
    highest: FloatArray
    varies: NDArray[np.bool_]

    def scale(self, X: FloatArray) -> FloatArray:
        """Return scaled data."""
        with np.errstate(over="ignore"):  # clipped
            scaled = np.asfortranarray((X - self.offset) / self.size)
        scaled += self.base
        return np.clip(scaled, self.lowest, self.highest, out=scaled)

    def unscale(self, scaled: FloatArray) -> FloatArray:
        """Undo `scale`."""
        return (scaled - self.base) * self.size + self.offset


def compute_scaling(X: FloatArray, family: str, weight: FloatArray | None) -> ColumnScaling:
    """Return the scaling of the columns to [1, 2] for Box-Cox, and to mean 0 and standard deviation 1 for Yeo-Johnson.

    Rows of weight 0 are left out.
    """
    if weight is not None:
        X, weight = X[weight > 0.0], weight[weight > 0.0]
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    with np.errstate(over="ignore"):  # refused below
        size = high - low
    varies = size > 0.0
    if not varies.any():
        raise ValueError("every column of X is constant or missing; there is nothing to transform")
    if not np.isfinite(size[varies]).all():
        raise ValueError("the range of a column of X overflows float64; divide X by its largest value")
    offset, size = np.where(np.isnan(low), 0.0, low), np.where(varies, size, 1.0)
    lowest, highest = np.full((2, size.size), [[-_BEYOND], [1.0 + _BEYOND]])
    if family == "box-cox":
        return ColumnScaling(offset, size, 1.0, lowest + 1.0, highest + 1.0, varies)
    mean, sd = np.zeros(size.size), np.ones(size.size)
    mean[varies], sd[varies] = _moments((X[:, varies] - offset[varies]) / size[varies], weight)
    return ColumnScaling(offset + mean * size, size * sd, 0.0, (lowest - mean) / sd, (highest - mean) / sd, varies)


def _moments(unit: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and standard deviation of each column, ignoring NaN."""
    seen = np.where(np.isnan(unit), 0.0, 1.0 if weight is None else weight[:, np.newaxis])
    total, unit = seen.sum(axis=0), np.nan_to_num(unit)
    mean = (seen * unit).sum(axis=0) / total
    return mean, np.sqrt((seen * (unit - mean) ** 2).sum(axis=0) / total)
