"""Wrapping and deviating cells as estimators of scikit-learn: the one module here that needs it."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from powerkern.cellwise.cells import Cells, ddc
from powerkern.cellwise.wrapping import wrap
from powerkern.location import METHODS
from powerkern.sklearn.private import Interval, StrOptions, fit_context
from powerkern.sklearn.reading import read, refuse_values

_THREADS: list[Any] = [None, Interval(Integral, 1, None, closed="left")]


class Wrapper(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Wrap columns: outlying cells are pulled in to the center of their column; see `powerkern.cellwise.wrap`.

    In front of principal components, covariances or linear models, it bounds the influence of each cell.

    Parameters
    ----------
    b, c : float, default 1.5 and 4
        Where psi leaves the identity, and where it vanishes.
    method : str, default "wrapping"
        Location and scale of the columns, as in `powerkern.cellwise.wrap`.
    missing : {"keep", "center"}, default "keep"
        Whether missing values stay, or become the location of their column.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.

    Attributes
    ----------
    loc_, scale_ : (n_features,) ndarray
        Robust location and scale of the columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the training data had names.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import Wrapper
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[0] = 1000.0
    >>> bool(abs(Wrapper().fit_transform(X)).max() < 4.0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "b": [Interval(Real, 0, 40, closed="neither")],
        "c": [Interval(Real, 0, 40, closed="neither")],
        "method": [StrOptions({"wrapping", "mcd", *METHODS})],
        "missing": [StrOptions({"keep", "center"})],
        "n_threads": _THREADS,
    }

    def __init__(
        self,
        *,
        b: float = 1.5,
        c: float = 4.0,
        method: str = "wrapping",
        missing: str = "keep",
        n_threads: int | None = None,
    ) -> None:
        self.b = b
        self.c = c
        self.method = method
        self.missing = missing
        self.n_threads = n_threads

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Wrapper:
        """Locations and scales of the columns of `X`, an (n, p) array or data frame; `y` is ignored."""
        self._fit(X)
        return self

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.floating]:
        """Fit, and wrap the same data."""
        return self._fit(X)

    def transform(self, X: Any) -> NDArray[np.floating]:
        """`X` wrapped about the locations that were fitted."""
        check_is_fitted(self)
        values = read(self, X, reset=False)
        refuse_values(self, values)
        wrapped: NDArray[np.floating] = self._wrapped.transform(values, n_threads=self.n_threads)
        return wrapped

    def _fit(self, X: Any) -> NDArray[np.floating]:
        values = read(self, X, reset=True)
        refuse_values(self, values)
        fit = wrap(values, self.b, self.c, method=self.method, missing=self.missing, n_threads=self.n_threads)
        self.loc_, self.scale_ = fit.loc, fit.scale
        self._wrapped = replace(fit, values=None)
        wrapped: NDArray[np.floating] = fit.values
        return wrapped

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class DDC(OneToOneFeatureMixin, OutlierMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Detect deviating cells, replace them, and tell which rows deviate as a whole; see `powerkern.cellwise.ddc`.

    `transform` replaces deviating and missing cells by predictions from the other cells of their row; `predict` says
    which rows are outliers. Columns that `powerkern.cellwise.check_data` drops stay as they are.

    Parameters
    ----------
    quantile : float, default 0.99
        Share of regular cells that are not flagged.
    min_correlation : float, default 0.5
        Columns whose robust correlation is, in absolute value, at least so large predict each other.
    include_self : bool, default True
        Whether a cell takes part in its own prediction.
    search : {"auto", "pairs", "wrapped"}, default "auto"
        How correlated columns are found.
    n_neighbors : int, default 100
        Largest number of columns that predict one, with the wrapped search.
    max_missing, max_discrete, min_scale
        As in `powerkern.cellwise.check_data`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.

    Attributes
    ----------
    fit_ : powerkern.cellwise.DDCFit
        Cells and rows of the training data, and how they were judged.
    offset_ : float
        `score_samples` of a row at the border.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the training data had names.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import DDC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + 0.3 * rng.normal(size=(100, 4))
    >>> X[7, 2] += 50.0
    >>> bool(abs(DDC().fit_transform(X)).max() < 5.0)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "min_correlation": [Interval(Real, 0, 1, closed="right")],
        "include_self": ["boolean"],
        "search": [StrOptions({"auto", "pairs", "wrapped"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "max_missing": [Interval(Real, 0, 1, closed="both")],
        "max_discrete": [Interval(Integral, 0, None, closed="left")],
        "min_scale": [Interval(Real, 0, None, closed="left")],
        "n_threads": _THREADS,
    }

    def __init__(
        self,
        *,
        quantile: float = 0.99,
        min_correlation: float = 0.5,
        include_self: bool = True,
        search: str = "auto",
        n_neighbors: int = 100,
        max_missing: float = 0.5,
        max_discrete: int = 3,
        min_scale: float = 1e-12,
        n_threads: int | None = None,
    ) -> None:
        self.quantile = quantile
        self.min_correlation = min_correlation
        self.include_self = include_self
        self.search = search
        self.n_neighbors = n_neighbors
        self.max_missing = max_missing
        self.max_discrete = max_discrete
        self.min_scale = min_scale
        self.n_threads = n_threads

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> DDC:
        """Judge the cells of `X`, an (n, p) array or data frame; `y` is ignored."""
        values = read(self, X, reset=True, ensure_min_samples=2)
        refuse_values(self, values)
        options = self.get_params(deep=False)
        self.fit_ = ddc(values, **{**options, "include_self": bool(self.include_self)})
        self.offset_ = -self.fit_.cutoff
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """`X` with deviating and missing cells replaced by their predictions."""
        values = self._read(X)
        imputed: NDArray[np.floating] = values.copy()
        imputed[:, self.fit_.remaining_columns] = self._cells(values).imputed
        return imputed

    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Minus the outlyingness of the rows: low scores are outliers; NaN for rows without values."""
        return np.asarray(-self._cells(self._read(X)).row_outlyingness)

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """`score_samples` less `offset_`: negative for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """-1 for rows that deviate as a whole, 1 for the others."""
        return np.where(self._cells(self._read(X)).flagged_rows, -1, 1)

    def _read(self, X: Any) -> NDArray[np.floating]:
        check_is_fitted(self)
        values: NDArray[np.floating] = read(self, X, reset=False)
        refuse_values(self, values)
        return values

    def _cells(self, values: NDArray[np.floating]) -> Cells:
        return self.fit_.predict(values, n_threads=self.n_threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
