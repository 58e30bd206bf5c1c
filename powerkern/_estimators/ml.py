"""Maximum likelihood, the default estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from powerkern._engine.gather import Columns, shift_and_scale
from powerkern._estimators.base import ColumnSpec, Estimator, Run
from powerkern._estimators.censored import has_censored, maximize_censored_likelihood
from powerkern._estimators.limits import apply_limit
from powerkern._estimators.options import CUTOFF
from powerkern._estimators.origin import OriginFit, find_origin
from powerkern._estimators.routes import maximize_likelihood, profile_likelihood
from powerkern._estimators.shift import convert_to_data_units, express_in_data_units
from powerkern._estimators.standard_units import STANDARDIZED, center_and_scale
from powerkern._input.arrays import Matrix, as_choice
from powerkern._status import Status
from powerkern._typing import FloatArray, Weights
from powerkern.kernels.results import CURVATURE, STATUS
from powerkern.kernels.transforms.family import is_mirrored


@dataclass(frozen=True, kw_only=True, repr=False)
class ML(Estimator):
    r"""Maximum likelihood, ``estimator="mle"``: lambda minimises the negative log-likelihood of the transformed values.

    .. math:: g(\lambda) = \tfrac{1}{2} \ln \operatorname{Var} \psi_\lambda(x) - (\lambda - 1)\, \overline J

    ([1]_, eq. (8), per observation), see `powerkern.fit`. g is strictly convex: its only optimum is found as the root
    of its derivative. A single outlier can move lambda arbitrarily far.

    Parameters
    ----------
    prestandardize : {"none", "mad", "std"}, default "none"
        Standardisation before the Yeo-Johnson transform, whose lambda depends on the origin and the unit of the data.
        "mad" transforms ``(x - median)/MAD`` (MAD with the factor 1.4826; the standard deviation where the MAD is 0),
        "std" transforms ``(x - mean)/sd``, with 1/n in the variance. lambda is then the same for x and ``a + b x`` with
        b > 0. Box-Cox is not standardised, since its lambda does not depend on the unit. See also
        ``powerkern.fit(X, origin="fit")``.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> pk.fit(np.arange(10.0)).estimator
    ML()
    """

    prestandardize: str = "none"

    name: ClassVar[str] = "mle"
    cutoff: ClassVar[float] = CUTOFF
    has_likelihood: ClassVar[bool] = True
    is_robust: ClassVar[bool] = False
    fits_origin: ClassVar[bool] = True

    @property
    def sets_unit(self) -> bool:
        """True if columns are standardised before they are fitted."""
        return self.prestandardize != "none"

    def __post_init__(self) -> None:
        as_choice("prestandardize", self.prestandardize, STANDARDIZED)

    @property
    def fits_chunks(self) -> bool:
        """True unless columns are standardised first, which needs medians that summaries of chunks do not hold."""
        return not self.sets_unit

    def fit_columns(self, matrix: Matrix, family: int, requested: ColumnSpec, run: Run) -> FloatArray:
        """Fit every column in the units of the data; see `Estimator.fit_columns`."""
        values, weight, shift, divisor = matrix.values, matrix.weight, requested.shift, None
        if self.prestandardize != "none" and is_mirrored(family):
            center, divisor = center_and_scale(self.prestandardize, values, weight, run.n_threads)
            shift = 0.0 - center
        columns = shift_and_scale(values, shift, divisor)
        results = maximize_likelihood(columns, family, requested.lmbda, weight, run.n_threads, run.progress)
        self.clip_lambdas(results, columns, family, matrix, requested, run)
        express_in_data_units(results, matrix, shift, divisor)
        return results

    def fit_censored_columns(
        self, matrix: Matrix, family: int, requested: ColumnSpec, run: Run
    ) -> tuple[FloatArray, FloatArray]:
        """Fit every column of a matrix with censored cells; see `Estimator.fit_censored_columns`."""
        assert matrix.ends is not None
        columns, ends = shift_and_scale(matrix.values, requested.shift), shift_and_scale(matrix.ends, requested.shift)
        is_censored = has_censored(matrix.ends)
        results, censored = maximize_censored_likelihood(
            columns, ends, is_censored, family, requested.lmbda, matrix.weight, run.n_threads, run.progress
        )

        def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
            moved, censored[at] = maximize_censored_likelihood(
                columns[:, at], ends[:, at], is_censored[at], family, bounded, matrix.weight, run.n_threads
            )
            return moved

        apply_limit(refit, family, results, matrix.names, requested.limit, requested.lmbda)
        convert_to_data_units(results, requested.shift)
        return results, censored

    def fit_values(self, values: Columns, family: int, weight: Weights, run: Run) -> FloatArray:
        """Fit lambda of every column; see `Estimator.fit_values`."""
        return maximize_likelihood(
            values, family, np.full(values.shape[1], np.nan), weight, run.n_threads, run.progress
        )

    def clip_lambdas(
        self, results: FloatArray, columns: Columns, family: int, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> None:
        """Clip lambdas to their bounds and to the interval where transformed values stay within `ymax`, in place.

        The arguments are as for `Estimator.clip_lambdas`.
        """

        def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
            return maximize_likelihood(columns[:, at], family, bounded, matrix.weight, run.n_threads)

        apply_limit(refit, family, results, matrix.names, requested.limit, requested.lmbda)

    def objective(
        self, values: Columns, family: int, lmbdas: FloatArray, weight: Weights, n_threads: int, routes: FloatArray
    ) -> FloatArray:
        """Evaluate the negative log-likelihood g of the class docstring; see `Estimator.objective`."""
        return profile_likelihood(values, family, lmbdas, weight, n_threads)

    def fit_origin(self, values: Columns, family: int, weight: Weights, requested: ColumnSpec, run: Run) -> OriginFit:
        """Maximise the likelihood over origin, unit and lambda (which may be given or bounded); see `Estimator`."""
        lmbda = np.where(np.isnan(requested.lmbda), requested.limit.bounds, requested.lmbda)
        return find_origin(values, family, weight, run.n_threads, lmbda=lmbda, progress=run.progress)

    def fit_at_origin(
        self, rescaled: Columns, family: int, origin: OriginFit, matrix: Matrix, requested: ColumnSpec, run: Run
    ) -> FloatArray:
        """Fit lambda; the information accounts for the fitted origin and unit. See `Estimator.fit_at_origin`."""
        results = maximize_likelihood(rescaled, family, requested.lmbda, matrix.weight, run.n_threads, run.progress)
        self.clip_lambdas(results, rescaled, family, matrix, requested, run)
        optimal = (results[:, STATUS] == Status.OK) & np.isfinite(origin.information)
        results[optimal, CURVATURE] = origin.information[optimal]
        return results
