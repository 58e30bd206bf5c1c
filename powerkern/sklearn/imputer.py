"""`UVImputer`: fill in missing values by a decomposition and by nearest rows."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import MissingIndicator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from powerkern._engine.threads import thread_count
from powerkern._input.arrays import Matrix
from powerkern._input.messages import suggest_in_constructor
from powerkern._typing import FloatArray
from powerkern.completion.decomposition import Normalize, uv_decompose, warn_empty
from powerkern.completion.normalization import NORMALIZATIONS, Normalization, outlier_limits, rms
from powerkern.completion.selection import choose
from powerkern.sklearn._compat import Interval, MissingValues, StrOptions, fit_context
from powerkern.sklearn.reading import N_THREADS, FloatTransformer, feature_names, read, refuse_nan, refuse_values

#: Fraction of the entries that `UVImputer.score` hides.
_HIDDEN = 0.2


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class UVImputer(FloatTransformer):
    """Replace missing values by the predictions of a decomposition and of the nearest rows.

    By default, the rank and the shrinkage of the decomposition, and the weight of rows with similar values, are chosen
    by the error on held-out entries. If a `rank` is given, only the decomposition of that rank is used
    (`powerkern.completion.uv_decompose`). `transform` fits the factors of each row, fitted or new, to its observed
    values, with V held fixed.

    Parameters
    ----------
    rank : "auto" or int, default "auto"
        Number of components; reduced to the number of rows or columns if that is smaller.
    shrinkage : float, default 0.2
        With a given rank, the ridge of the decomposition in units of ``sqrt(n) + sqrt(p)``, which is about the largest
        singular value of an (n, p) matrix of standard normal noise. Without a ridge, predictions for rows with few
        values are erratic. With ``rank="auto"``, `fit` raises a ValueError unless `shrinkage` has its default.
    normalize : {"zscores", "columns", "rows", "both", "columns-first", "average", None}, default "zscores"
        Offsets and scales, as in `powerkern.completion.uv_decompose`.
    n_neighbors : int, default 10
        With ``rank="auto"``, number of nearest rows that are averaged to fill a gap; 0 for none.
    budget : float, default 10.0
        With ``rank="auto"``, limit on the number of multiplications in the choice of rank and shrinkage, in billions; a
        billion takes about a second on one thread. Multiplications are counted, not timed, so that results are the same
        on any machine. If the choice would need more, fewer rows or fewer ranks are tried.
    max_deviation : float or None, default 40.0
        Values farther than this from the median of their column are treated as outliers. They count as missing in `fit`
        and in the completion of the other cells of their row, but `transform` returns them unchanged. The unit is
        1.4826 times the median distance from the median of the values on the same side of the median or, if that is 0,
        of all values that differ from the median. None: no value is an outlier.
    method, n_starts, tol, max_epochs
        With a given rank, as in `powerkern.completion.uv_decompose`; the default method is "als".
    random_state : int, RandomState or None, default None
        Seed of held-out entries and of random starts.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.
    missing_values : int, float, NaN or pandas.NA, default NaN
        Marker of a missing value. If it is a number, NaN raises an error.
    add_indicator : bool, default False
        Append an indicator for each column that had missing values in training: 1 if the value is missing, else 0. Its
        name is ``missingindicator_`` followed by the name of the column.

    Attributes
    ----------
    rank_ : int
        The rank; the number p of columns if a normal distribution of rows was chosen (see Notes).
    shrinkage_ : float
        The shrinkage, chosen or given.
    weights_ : (3,) ndarray
        With ``rank="auto"``: weights of the decomposition, of the mean of the neighbors, and of the decomposition plus
        its mean error at the neighbors. They sum to 1.
    validation_rmse_ : float
        With ``rank="auto"``: RMSE on the held-out entries by which the model was chosen, in units of `scale_`.
    decomposition_ : UVDecomposition
        With a given rank, the decomposition of the training data.
    scale_ : (p,) ndarray
        Standard deviations of the columns without outliers; 1 for constant columns.
    limits_ : (2, p) ndarray
        The lower and upper limit of each column, beyond which values are outliers.
    indicator_ : sklearn.impute.MissingIndicator or None
        Transformer that computes the indicators; None unless `add_indicator`.
    n_features_in_, feature_names_in_
        Number and names of the columns, as in scikit-learn.

    See Also
    --------
    powerkern.completion.rank_profile : show how the error on held-out entries depends on the rank.

    Notes
    -----
    With ``rank="auto"``, rows are modeled as draws from a normal distribution with covariance
    ``V.T @ V + shrinkage * I``, and gaps are filled with conditional means [1]_. This requires at least
    ``p (p + 1)/2`` observed entries, the number of parameters of the covariance, and a sufficient `budget`. Otherwise a
    row is modeled as a bias plus a combination of few components. The estimate of either model is blended with the mean
    of the `n_neighbors` nearest rows that have the value. Distances are computed over the observed values of the row,
    to rows that the model has completed. Closer rows have larger weights. The user guide has the details.

    A column without values in training is filled with 0, and a constant column is filled with its value. A row without
    values is filled with the column means of the model.

    References
    ----------
    .. [1] R. J. A. Little, D. B. Rubin, "Statistical Analysis with Missing Data", 3rd ed., Wiley 2019, section 11.2.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import UVImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> holes = rng.uniform(size=X.shape) < 0.2
    >>> filled = UVImputer(random_state=0).fit_transform(np.where(holes, np.nan, X))
    >>> float(np.sqrt(np.mean((filled - X)[holes] ** 2)).round(2)), float(X.std().round(2))
    (0.16, 1.7)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rank": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "normalize": [None, StrOptions(set(NORMALIZATIONS))],
        "n_neighbors": [Interval(Integral, 0, None, closed="left")],
        "budget": [Interval(Real, 0, None, closed="left")],
        "max_deviation": [None, Interval(Real, 0, None, closed="neither")],
        "method": [StrOptions({"als", "cd"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_threads": N_THREADS,
        "missing_values": [MissingValues(numeric_only=True)],
        "add_indicator": ["boolean"],
    }

    rank: int | str = "auto"
    _: KW_ONLY
    shrinkage: float = 0.2
    normalize: Normalize | None = "zscores"
    n_neighbors: int = 10
    budget: float = 10.0
    max_deviation: float | None = 40.0
    method: str = "als"
    n_starts: int = 1
    tol: float = 1e-4
    max_epochs: int = 200
    random_state: Any = None
    n_threads: int | None = None
    missing_values: Any = np.nan
    add_indicator: bool = False

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> UVImputer:
        """Choose a model for `X`, an (n, p) array or data frame with missing values, and fit it; `y` is ignored."""
        if self.rank == "auto" and self.shrinkage != type(self).shrinkage:
            raise ValueError(f"shrinkage={self.shrinkage!r} needs a rank: rank='auto' chooses the shrinkage itself")
        given = np.ascontiguousarray(self._values(X, reset=True), dtype=np.float64)
        self.indicator_ = MissingIndicator(error_on_new=False).fit(given) if self.add_indicator else None
        self.limits_ = outlier_limits(given, self.max_deviation)
        values = self._mask_outliers(given)
        seed = check_random_state(self.random_state).randint(2**31)
        zscores = Normalization.from_matrix(values, "zscores")
        self.scale_ = zscores.scale * zscores.unit
        if self.rank == "auto":
            self._choose(values, seed)
        else:
            self._decompose(values, min(int(self.rank), *values.shape), seed)
        return self

    def _mask_outliers(self, values: NDArray[np.floating]) -> FloatArray:
        """Return a row-major float64 copy of `values`, with NaN in place of values beyond the limits."""
        low, high = self.limits_
        return np.ascontiguousarray(np.where((values >= low) & (values <= high), values, np.nan), dtype=np.float64)

    def _choose(self, values: FloatArray, seed: int) -> None:
        """Choose a model for ``rank="auto"``, and fit it to `values`, (n, p)."""
        warn_empty(values, feature_names(self))
        self._normalization = Normalization.from_matrix(values, self.normalize).scale_to_mean_square_1(values)
        rows = self._normalization.normalize_rows(values, self._normalization.row_offsets(values))
        generator, threads = np.random.default_rng(seed), thread_count(self.n_threads)
        found = choose(rows, self.n_neighbors, self.budget * 1e9, generator, threads)
        self.rank_, self.shrinkage_ = found.model.rank, found.model.shrinkage
        self.weights_, self.validation_rmse_ = found.weights, found.validation_rmse
        self._completion = found

    def _decompose(self, values: FloatArray, rank: int, seed: int) -> None:
        """Fit the decomposition of a given rank to `values`, (n, p)."""
        self.rank_, self.shrinkage_ = rank, self.shrinkage
        self.decomposition_ = uv_decompose(
            Matrix(values, feature_names(self), False),
            rank,
            self.method,
            normalize=self.normalize,
            n_starts=self.n_starts,
            ridge=self.shrinkage * sum(map(math.sqrt, values.shape)),
            tol=self.tol,
            max_epochs=self.max_epochs,
            rng=seed,
            n_threads=self.n_threads,
        )

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Fill in the missing values of `X`; the result is float32 if `X` is float32, otherwise float64."""
        check_is_fitted(self)
        given = self._values(X, reset=False)
        estimates = self._estimate_missing(self._mask_outliers(given))
        filled = np.where(np.isnan(given), estimates.astype(given.dtype, copy=False), given)
        return filled if self.indicator_ is None else np.hstack([filled, self.indicator_.transform(given)])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the output columns: first the input columns, then the indicators."""
        names: NDArray[np.object_] = super().get_feature_names_out(input_features)
        if self.indicator_ is None:
            return names
        return np.concatenate([names, self.indicator_.get_feature_names_out(names)])

    def _estimate_missing(self, values: FloatArray) -> FloatArray:
        """Return the rows with NaN replaced by estimates."""
        if self.rank != "auto":
            return self.decomposition_.fold_in(values, n_threads=self.n_threads)
        row_offset = self._normalization.row_offsets(values)
        rows = self._normalization.normalize_rows(values, row_offset)
        completed = self._completion.complete_rows(rows, thread_count(self.n_threads))
        return self._normalization.restore(completed, row_offset)

    def score(self, X: Any, y: Any = None) -> float:
        """Hide a fifth of the values of `X`, estimate them, and return minus the RMSE in units of `scale_`.

        `y` is ignored. The choice of hidden values depends only on the positions of missing values in `X` and on
        `limits_`, so that estimators can be compared. The result is NaN if no value can be hidden.
        """
        check_is_fitted(self)
        values = self._mask_outliers(self._values(X, reset=False))
        row, column = np.nonzero(~np.isnan(values))
        hidden = np.random.default_rng(0).uniform(size=row.size) < _HIDDEN
        hidden[:1] |= not hidden.any()
        row, column = row[hidden], column[hidden]
        truth = values[row, column]
        values[row, column] = np.nan
        errors = (self._estimate_missing(values)[row, column] - truth) / self.scale_[column]
        return -rms(errors) if errors.size else math.nan

    def _values(self, X: Any, *, reset: bool) -> NDArray[np.floating]:
        """Read `X`, and return its values with NaN in place of `missing_values`; `reset` is as in scikit-learn."""
        values: NDArray[np.floating] = read(self, X, reset=reset)
        if not self._nan_is_missing():
            refuse_nan(self, values, f"but missing_values is {self.missing_values}; mark missing values with it")
            values = np.where(values == self.missing_values, values.dtype.type(np.nan), values)
        refuse_values(self, values)
        return values

    def _nan_is_missing(self) -> bool:
        """Return whether NaN marks missing values."""
        return not isinstance(self.missing_values, Real) or math.isnan(self.missing_values)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._nan_is_missing()
        return tags
