"""Responses given covariates, prepared for kernels, and results for every response on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import column_figures
from powerkern._engine.gather import Columns, shifted
from powerkern._input.arrays import Matrix
from powerkern._models.design import Basis, basis_of
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.regression.likelihood import Design, RegressionWork, new_regression_work


class Figures(NamedTuple):
    """Per response: a row of results, ends of the scan, coefficients, rank of its design.

    `own` says whether that design has a basis of its own, for the rows that are not missing.

    Coefficients refer to covariates less their center, and to psi less its value at a reference in the data (nothing,
    without a constant), over the residual scale.
    """

    results: FloatArray
    scanned: FloatArray
    gamma: FloatArray
    rank: IntArray
    one: FloatArray
    own: BoolArray


class Problem(NamedTuple):
    """Responses, covariates and weights, of the rows that count, with the basis of all of these."""

    values: Columns
    covariates: FloatArray
    intercept: bool
    weight: FloatArray
    basis: Basis

    @classmethod
    def of(
        cls, matrix: Matrix, covariates: FloatArray, intercept: bool, weight: FloatArray, shift: FloatArray
    ) -> Problem:
        """The problem without rows of weight zero; an error if it has no more rows than coefficients."""
        values = matrix.values
        if weight.size and not weight.all():
            counted = weight > 0.0
            values, covariates, weight = values[counted], covariates[counted], weight[counted]
        basis = basis_of(covariates, intercept, weight)
        if len(covariates) <= basis.rank:
            raise ValueError(
                f"there are {len(covariates)} rows (of positive weight) and {basis.rank} coefficients; a regression "
                "needs more rows than coefficients: leave out covariates"
            )
        return cls(shifted(values, shift), covariates, intercept, weight, basis)

    def bases(self, deficient: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Basis]]:
        """Separate bases for columns whose missing values may lower the rank of the design, one per pattern."""
        patterns: dict[bytes, list[int]] = {}
        for j in deficient:
            patterns.setdefault(np.packbits(self._present(int(j))).tobytes(), []).append(int(j))
        found = []
        for columns in patterns.values():
            present = self._present(columns[0])
            basis = basis_of(self.covariates, self.intercept, self.weight, present)
            found.append((np.array(columns), basis))
        return found

    def _present(self, j: int) -> BoolArray:
        column = self.values[:, j : j + 1]
        values = column if isinstance(column, np.ndarray) else column.values
        return np.asarray(~np.isnan(values.astype(np.float64)[:, 0]))

    def figures(
        self,
        compute: Callable[[FloatArray, Design, slice, RegressionWork, FloatArray], None],
        basis: Basis,
        columns: slice | NDArray[np.intp],
        width: int,
        n_threads: int,
        progress: bool = False,
    ) -> FloatArray:
        """The (p, width) results of ``compute(columns, design, group, work, out)``."""
        scratch = _Scratch(basis.design)

        def measure(block: FloatArray, group: slice) -> FloatArray:
            out = np.empty((block.shape[0], width))
            compute(block, basis.design, group, scratch.work, out)
            return out

        return column_figures(measure, self.values[:, columns], width, n_threads, progress)


class _Scratch(threading.local):
    """Each thread's arrays of `kernels.residual_likelihood.RegressionWork`."""

    def __init__(self, design: Design) -> None:
        self.work = new_regression_work(design)


def sum_of_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """``a @ b.T`` with an order of summation that, unlike BLAS, does not depend on the number of rows."""
    total = np.zeros((len(a), len(b)))
    for k in range(a.shape[1]):
        total += a[:, k, np.newaxis] * b[:, k]
    return total
