"""Estimators in the style of scikit-learn for wrapping and for the detection of deviating cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from powerkern._input.arrays import Matrix
from powerkern._input.messages import suggest_in_constructor
from powerkern.cellwise.cells import Cells, ddc
from powerkern.cellwise.wrapping import fit_wrap
from powerkern.sklearn.reading import FloatTransformer, feature_names, read_finite


@suggest_in_constructor
@dataclass(eq=False, repr=False, kw_only=True)
class WrappingTransformer(FloatTransformer):
    """Wrap columns: pull outlying cells towards the center of their column; see `powerkern.cellwise.wrap`.

    In a pipeline before principal components, covariances or linear models, wrapping bounds the influence of each cell.

    Parameters
    ----------
    b, c, method, missing, n_threads
        As in `powerkern.cellwise.wrap`.

    Attributes
    ----------
    loc_, scale_ : (n_features,) ndarray
        Robust location and scale of the columns.
    n_features_in_, feature_names_in_
        Number and names of the columns, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import WrappingTransformer
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[0] = 1000.0
    >>> bool(abs(WrappingTransformer().fit_transform(X)).max() < 4.0)
    True
    """

    b: float = 1.5
    c: float = 4.0
    method: str = "wrapping"
    missing: str = "keep"
    n_threads: int | None = None

    def fit(self, X: Any, y: Any = None) -> WrappingTransformer:
        """Estimate locations and scales of the columns of `X`, an (n, p) array or data frame; `y` is ignored."""
        self._wrapped = fit_wrap(
            Matrix(read_finite(self, X), feature_names(self), False),
            self.b,
            self.c,
            method=self.method,
            missing=self.missing,
            n_threads=self.n_threads,
        )
        self.loc_, self.scale_ = self._wrapped.loc, self._wrapped.scale
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Wrap the columns of `X` with the fitted locations and scales."""
        check_is_fitted(self)
        values = read_finite(self, X, reset=False)
        wrapped: NDArray[np.floating] = self._wrapped.transform(values, n_threads=self.n_threads)
        return wrapped


@suggest_in_constructor
@dataclass(eq=False, repr=False, kw_only=True)
class DDC(OutlierMixin, FloatTransformer):  # type: ignore[misc]  # sklearn is untyped
    """Detect and replace deviating cells, and find rows that deviate as a whole; see `powerkern.cellwise.ddc`.

    `transform` replaces deviating and missing cells by predictions from the other cells of the row. `predict` flags
    outlying rows. Columns that `powerkern.cellwise.check_data` drops do not change.

    Parameters
    ----------
    quantile, min_correlation, include_self, search, n_neighbors, max_missing, max_discrete, min_scale, n_threads
        As in `powerkern.cellwise.ddc`.

    Attributes
    ----------
    fit_ : powerkern.cellwise.DDCFit
        Flags and predictions for the cells and rows of the training data.
    offset_ : float
        The value of `score_samples` below which a row is an outlier.
    n_features_in_, feature_names_in_
        Number and names of the columns, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import DDC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + 0.3 * rng.normal(size=(100, 4))
    >>> X[7, 2] += 50.0
    >>> bool(abs(DDC().fit_transform(X)).max() < 5.0)
    True
    """

    quantile: float = 0.99
    min_correlation: float = 0.5
    include_self: bool = True
    search: str = "auto"
    n_neighbors: int = 100
    max_missing: float = 0.5
    max_discrete: int = 3
    min_scale: float = 1e-12
    n_threads: int | None = None

    def fit(self, X: Any, y: Any = None) -> DDC:
        """Estimate from `X`, an (n, p) array or data frame, how to flag cells and rows; `y` is ignored."""
        values = read_finite(self, X, ensure_min_samples=2)
        self.fit_ = ddc(values, **self.get_params(deep=False))
        self.offset_ = -self.fit_.cutoff
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """Replace deviating and missing cells of `X` by their predictions."""
        values, cells = self._flag(X)
        imputed: NDArray[np.floating] = values.copy()
        imputed[:, self.fit_.check.columns] = cells.imputed
        return imputed

    def score_samples(self, X: Any) -> NDArray[np.floating]:
        """Return minus the outlyingness of each row: outliers have low scores, and rows without values have NaN."""
        return np.asarray(-self._flag(X)[1].row_outlyingness)

    def decision_function(self, X: Any) -> NDArray[np.floating]:
        """Return ``score_samples(X) - offset_``, which is negative for outliers."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for rows that deviate as a whole or have no values, and 1 for all others."""
        cells = self._flag(X)[1]
        return np.where(cells.flagged_rows | np.isnan(cells.row_outlyingness), -1, 1)

    def _flag(self, X: Any) -> tuple[NDArray[np.floating], Cells]:
        """Return the values of `X`, and the flags and predictions of its cells and rows."""
        check_is_fitted(self)
        values = read_finite(self, X, reset=False)
        return values, self.fit_.predict(values, n_threads=self.n_threads)
