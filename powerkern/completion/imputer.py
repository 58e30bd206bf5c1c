"""Missing values filled in by UV decomposition, as a scikit-learn estimator."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from powerkern._sklearn_input import read, refuse_values
from powerkern._sklearn_private import Interval, StrOptions, fit_context
from powerkern.completion.decomposition import uv_decompose


class UVImputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # sklearn is untyped
    """Replace missing values by what a decomposition of low rank predicts for them.

    The columns are standardised by the means and standard deviations of their values, and the standardised matrix is
    decomposed by `powerkern.completion.uv_decompose`. Rows to transform, those fitted to or new ones, are fitted to
    their own values with V held fixed.

    Parameters
    ----------
    rank : int, default 10
        Number of components; the number of rows or columns where that is smaller.
    shrinkage : float, default 0.2
        The ridge of the decomposition in units of ``sqrt(n) + sqrt(p)``, which is about the largest singular value of a
        (n, p) matrix of standard normal noise. Without it, rows with few values make wild predictions. More for noisy
        data; on all of scikit-learn's small data sets a value from 0.1 to 0.3 was best, or within 1 % of it.
    method : {"als", "cd"}, default "als"
        How to descend.
    n_starts : int, default 1
        Random starts to try.
    tol : float, default 1e-4
        Relative change of the error at which to stop.
    max_epochs : int, default 200
        Maximum number of epochs.
    random_state : int, RandomState or None, default None
        Seed of the random starts.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.

    Attributes
    ----------
    decomposition_ : UVDecomposition
        Of the training data.
    rank_ : int
        Its rank.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, where the training data had names.

    See Also
    --------
    powerkern.completion.rank_profile : How to choose the rank by holding entries out.

    Notes
    -----
    A column without a value in training is filled with 0, and one that was constant with its value. A row without
    values becomes the columns' means.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.completion import UVImputer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(200, 8))
    >>> holes = rng.uniform(size=X.shape) < 0.2
    >>> filled = UVImputer(shrinkage=0.05, random_state=0).fit_transform(np.where(holes, np.nan, X))
    >>> float(np.sqrt(np.mean((filled - X)[holes] ** 2)).round(1)), float(X.std().round(1))
    (0.2, 1.7)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rank": [Interval(Integral, 1, None, closed="left")],
        "shrinkage": [Interval(Real, 0, None, closed="left")],
        "method": [StrOptions({"als", "cd"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_threads": [None, Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        rank: int = 10,
        *,
        shrinkage: float = 0.2,
        method: str = "als",
        n_starts: int = 1,
        tol: float = 1e-4,
        max_epochs: int = 200,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> None:
        self.rank = rank
        self.shrinkage = shrinkage
        self.method = method
        self.n_starts = n_starts
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.n_threads = n_threads

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> UVImputer:
        """Decompose `X`, an (n, p) array or data frame in which NaN is missing; `y` is ignored."""
        values = self._values(X, reset=True)
        n, p = values.shape
        self.rank_ = min(self.rank, n, p)
        self.decomposition_ = uv_decompose(
            values,
            self.rank_,
            self.method,
            normalize="zscores",
            n_starts=self.n_starts,
            ridge=self.shrinkage * (math.sqrt(n) + math.sqrt(p)),
            tol=self.tol,
            max_epochs=self.max_epochs,
            random_state=check_random_state(self.random_state).randint(2**31),
            n_threads=self.n_threads,
        )
        return self

    def transform(self, X: Any) -> NDArray[np.floating]:
        """`X` with its missing values filled in, as float32 where `X` is, else as float64."""
        check_is_fitted(self)
        values = self._values(X, reset=False)
        return self.decomposition_.fold_in(values, n_threads=self.n_threads).astype(values.dtype, copy=False)

    def _values(self, X: Any, *, reset: bool) -> NDArray[np.floating]:
        values: NDArray[np.floating] = read(self, X, reset=reset)
        refuse_values(self, values)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
