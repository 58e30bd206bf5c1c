"""Prepare responses and covariates for the kernels, and compute results and likelihoods on several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.by_column import measure_columns
from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._input.arrays import Matrix
from powerkern._models.design import Basis, compute_basis
from powerkern._results.column_table import ColumnTable
from powerkern._status import is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray, Weights
from powerkern.kernels.regression import fit as kernel
from powerkern.kernels.regression.likelihood import Design, RegressionWork, new_regression_work


class ResponseResults(NamedTuple):
    """Results of regressions, with one row per response."""

    #: Rows of `kernels.results.ColumnFit`, (p, N_RESULTS).
    results: FloatArray
    #: Range in which lambda was searched for, (p, 2).
    scanned: FloatArray
    #: Coefficients of the centered covariates, (p, k), in units of the residual scale. If the design contains the
    #: constant, they are for psi minus its value at a reference inside the data.
    gamma: FloatArray
    #: Rank of the design of each response.
    rank: IntArray
    #: Coefficients of the constant as a combination of the covariates, (p, k), see `Basis.one`.
    one: FloatArray
    #: Mask of the responses whose missing values require a separate basis of the design.
    has_own_basis: BoolArray

    def replace_rows(self, at: NDArray[Any], others: ResponseResults, chosen: Any = slice(None)) -> None:
        """Replace the rows at positions `at` by the rows `chosen` of `others`, in place."""
        for whole, other in zip(self, others, strict=True):
            whole[at] = other[chosen]


class RegressionProblem(NamedTuple):
    """Responses, covariates and weights of the rows in use, with a basis of the design."""

    values: Columns
    covariates: FloatArray
    intercept: bool
    weight: Weights
    basis: Basis

    @classmethod
    def of(
        cls, matrix: Matrix, covariates: FloatArray, intercept: bool, weight: Weights, shift: FloatArray
    ) -> RegressionProblem:
        """Make the problem from the rows of positive weight; raise unless there are more rows than coefficients.

        Parameters
        ----------
        matrix : Matrix
            The responses, (n, p).
        covariates : (n, k) ndarray
            The design matrix.
        intercept : bool
            True if the first column of `covariates` is an intercept.
        weight : (n,) ndarray
            Weights of the rows; empty for none.
        shift : (p,) ndarray
            Constant to add to each response.
        """
        values = matrix.values
        if weight is not None and not weight.all():
            counted = weight > 0.0
            values, covariates, weight = values[counted], covariates[counted], weight[counted]
        basis = compute_basis(covariates, intercept, weight)
        if len(covariates) <= basis.rank:
            raise ValueError(
                f"there are {len(covariates)} rows (of positive weight) and {basis.rank} coefficients; a regression "
                "needs more rows than coefficients: leave out covariates"
            )
        return cls(shift_and_scale(values, shift), covariates, intercept, weight, basis)

    def bases(self, deficient: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], Basis]]:
        """Compute a separate basis for each pattern of missing values among some responses.

        `deficient` holds the positions of responses whose missing values may lower the rank of the design. Return the
        positions of the responses that have each pattern, with the basis over their observed rows.
        """
        patterns: dict[bytes, list[int]] = {}
        for j in deficient:
            patterns.setdefault(np.packbits(self._present(int(j))).tobytes(), []).append(int(j))
        found = []
        for columns in patterns.values():
            present = self._present(columns[0])
            basis = compute_basis(self.covariates, self.intercept, self.weight, present)
            found.append((np.array(columns), basis))
        return found

    def _present(self, j: int) -> BoolArray:
        """Return the mask of the observed values of response `j`."""
        column = self.values[:, j : j + 1]
        values = column if isinstance(column, np.ndarray) else column.values
        return np.asarray(~np.isnan(values.astype(np.float64)[:, 0]))

    def compute_results(
        self,
        compute: Callable[[FloatArray, Design, slice, RegressionWork, FloatArray], None],
        basis: Basis,
        columns: slice | NDArray[np.intp],
        width: int,
        n_threads: int,
        progress: bool = False,
    ) -> FloatArray:
        """Apply a kernel to groups of responses on several threads; return its results, (p, width).

        Parameters
        ----------
        compute : callable
            ``compute(block, design, group, work, out)`` writes the results of a group of responses to `out`.
        basis : Basis
            Basis of the design of these responses.
        columns : slice or ndarray of int
            Positions of the responses.
        width : int
            Number of results per response.
        n_threads : int
            Maximum number of threads.
        progress : bool
            Show a progress bar.
        """
        scratch = _RegressionScratch(basis.design)

        def measure(block: FloatArray, group: slice) -> FloatArray:
            out = np.empty((block.shape[0], width))
            compute(block, basis.design, group, scratch.work, out)
            return out

        return measure_columns(measure, self.values[:, columns], width, n_threads, progress)


class ResponseLikelihood(NamedTuple):
    """The likelihood of each response as a function of its lambda."""

    problem: RegressionProblem
    table: ColumnTable
    #: Mask of responses whose design has a separate basis; see `ResponseResults`.
    has_own_basis: BoolArray
    n_threads: int

    def curve(self, lmbdas: FloatArray) -> FloatArray:
        """Return the negative log-likelihoods at every lambda, (p, len(lmbdas))."""
        return self._profile(np.broadcast_to(lmbdas, (len(self.table), lmbdas.size)))

    def at(self, lmbda: FloatArray) -> FloatArray:
        """Return negative log-likelihoods at `lmbda`, which is one number for all responses, or one per response."""
        return self._profile(np.broadcast_to(lmbda.reshape(-1, 1), (len(self.table), 1)))[:, 0]

    def ends(self, drop: FloatArray) -> FloatArray:
        """Return the ends of profile intervals, (p, 2), where the log-likelihood per row has fallen by `drop`, (p,)."""
        return self._compute_results(kernel.interval_columns, np.column_stack([self.table.lmbda, drop]), 2)

    def _profile(self, lmbdas: FloatArray) -> FloatArray:
        """Return negative log-likelihoods, (p, m): each response at the lambdas in its row of `lmbdas`, (p, m)."""
        g = self._compute_results(kernel.profile_columns, np.ascontiguousarray(lmbdas), lmbdas.shape[1])
        g *= self.table.n_obs[:, np.newaxis]
        return g

    def _compute_results(self, entry: Callable[..., None], at: FloatArray, width: int) -> FloatArray:
        """Call an entry of `kernels.regression` for all fitted responses; return its results, (p, width).

        Row j of `at` holds the arguments of the entry for response j. Results of other responses are NaN.
        """
        found = np.full((len(self.table), width), np.nan)
        for columns, basis in self._bases():

            def compute(
                block: FloatArray,
                design: Design,
                group: slice,
                work: RegressionWork,
                out: FloatArray,
                code: int = int(self.table.family_codes[columns[0]]),
                own: FloatArray = at[columns],
            ) -> None:
                entry(block, design, code, own[group].copy(), work, out)

            found[columns] = self.problem.compute_results(compute, basis, columns, width, self.n_threads)
        return found

    def _bases(self) -> list[tuple[NDArray[np.intp], Basis]]:
        """Group the fitted responses by family and basis; return the positions and the basis of each group."""
        fitted, codes = ~is_failed(self.table.status), self.table.family_codes
        shared = (np.flatnonzero(fitted & ~self.has_own_basis), self.problem.basis)
        return [
            (columns[codes[columns] == code], basis)
            for columns, basis in (shared, *self.problem.bases(np.flatnonzero(fitted & self.has_own_basis)))
            for code in np.unique(codes[columns]).tolist()
        ]


class _RegressionScratch(threading.local):
    """Thread-local work arrays of `kernels.regression`."""

    def __init__(self, design: Design) -> None:
        self.work = new_regression_work(design)


def sum_of_products(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return ``a @ b.T``, summed in an order that does not depend on the number of rows, unlike BLAS."""
    total = np.zeros((len(a), len(b)))
    for k in range(a.shape[1]):
        total += a[:, k, np.newaxis] * b[:, k]
    return total
