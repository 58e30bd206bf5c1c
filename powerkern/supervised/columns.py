"""Columns as a search transforms them: scaled, transformed and standardised for each lambda, kept once computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._fit import fitting
from powerkern._typing import FloatArray

#: Bytes of transformed columns, and of their moments by class, that are kept for the next time.
_CACHE = 2**28
#: New values count as no further than this many ranges beyond the training data: Box-Cox of data scaled to [1, 2]
#: needs positive values, and large powers of large values overflow what estimators can use.
_BEYOND = 0.99


class Cache:
    """Arrays of several kinds by column and lambda, kept as long as all of them take no more than `_CACHE` bytes."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int, float], FloatArray] = {}
        self._free = _CACHE

    def get(self, kind: str, j: int, lmbdas: FloatArray, compute: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """The arrays of column j, one for each lambda; `compute` makes those that are not here."""
        wanted = lmbdas.tolist()
        missing = [lmbda for lmbda in wanted if (kind, j, lmbda) not in self._kept]
        fresh = dict(zip(missing, compute(np.array(missing)), strict=True)) if missing else {}
        found = np.array([fresh[lmbda] if lmbda in fresh else self._kept[kind, j, lmbda] for lmbda in wanted])
        for lmbda, array in fresh.items():
            if array.nbytes <= self._free:
                self._kept[kind, j, lmbda] = array.copy()  # a view would keep all that was computed with it
                self._free -= array.nbytes
        return found


class Columns:
    """Standardised transformed columns, kept once computed."""

    def __init__(self, scaled: FloatArray, family: str, weight: FloatArray | None) -> None:
        self._scaled = scaled
        self._family = family
        self._weight = weight
        self.cache = Cache()

    def get(self, j: int, lmbdas: FloatArray) -> FloatArray:
        """Column j with each lambda, as rows."""
        return self.cache.get("values", j, lmbdas, lambda missing: self._transformed(j, missing))

    def each(self, lmbdas: FloatArray, which: Iterable[int]) -> list[FloatArray]:
        """These columns, each with its own lambda."""
        return [self.get(j, lmbdas[j : j + 1])[0] for j in which]

    def _transformed(self, j: int, lmbdas: FloatArray) -> FloatArray:
        same = np.tile(self._scaled[:, j], (lmbdas.size, 1)).T
        fitted = fitting.fit(same, self._family, lmbda=lmbdas, sample_weight=self._weight, n_threads=1)
        return np.asarray(fitted.transform(same, n_threads=1).T)


class Scaling(NamedTuple):
    """x -> (x - offset)/size + base, brought within [lowest, highest]."""

    offset: FloatArray
    size: FloatArray
    base: float
    lowest: FloatArray
    highest: FloatArray
    varies: NDArray[np.bool_]

    def forwards(self, X: FloatArray) -> FloatArray:
        """Data, scaled."""
        with np.errstate(over="ignore"):  # infinite, and so the end
            scaled = np.asfortranarray((X - self.offset) / self.size)
        scaled += self.base
        return np.clip(scaled, self.lowest, self.highest, out=scaled)

    def backwards(self, scaled: FloatArray) -> FloatArray:
        """Scaled data in the units that they came in."""
        return (scaled - self.base) * self.size + self.offset


def scaling(X: FloatArray, family: str, weight: FloatArray | None) -> Scaling:
    """To [1, 2] for Box-Cox, to mean 0 and standard deviation 1 for Yeo-Johnson; rows of no weight do not count."""
    if weight is not None:
        X, weight = X[weight > 0.0], weight[weight > 0.0]
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    size = high - low
    varies = size > 0.0
    if not varies.any():
        raise ValueError("every column of X is constant or missing; there is nothing to transform")
    if not np.isfinite(size[varies]).all():
        raise ValueError("the range of a column of X overflows float64; divide X by its largest value")
    offset, size = np.where(np.isnan(low), 0.0, low), np.where(varies, size, 1.0)
    lowest, highest = np.full((2, size.size), [[-_BEYOND], [1.0 + _BEYOND]])
    if family == "box-cox":
        return Scaling(offset, size, 1.0, lowest + 1.0, highest + 1.0, varies)
    mean, sd = np.zeros(size.size), np.ones(size.size)
    mean[varies], sd[varies] = _moments((X[:, varies] - offset[varies]) / size[varies], weight)
    return Scaling(offset + mean * size, size * sd, 0.0, (lowest - mean) / sd, (highest - mean) / sd, varies)


def _moments(unit: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column, of what is not missing."""
    if weight is None:
        return np.nanmean(unit, axis=0), np.nanstd(unit, axis=0)
    seen = np.where(np.isnan(unit), 0.0, weight[:, np.newaxis])
    total, unit = seen.sum(axis=0), np.nan_to_num(unit)
    mean = (seen * unit).sum(axis=0) / total
    return mean, np.sqrt((seen * (unit - mean) ** 2).sum(axis=0) / total)
