"""`GroupedPowerTransformer`: separate lambdas for each group of samples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from powerkern._estimators.base import Estimator
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._estimators.spec import UnknownGroups
from powerkern._fit import fit as fitting
from powerkern._input import frames
from powerkern._input.alignment import align_rows
from powerkern._input.arrays import as_matrix, check_n_features
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.labels import GroupsLike, without_names
from powerkern._input.messages import suggest_in_constructor
from powerkern._typing import Bounds, FloatArray
from powerkern.sklearn._compat import StrOptions, fit_context
from powerkern.sklearn.reading import (
    CALLING_FAMILY_METHOD,
    N_THREADS,
    FloatTransformer,
    feature_names,
    note_features,
    read,
    read_array,
)


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class GroupedPowerTransformer(FloatTransformer):
    """Box-Cox or Yeo-Johnson transform with separate lambdas for each group of samples, as a scikit-learn transformer.

    Parameters
    ----------
    method, standardize, estimator, bounds, out_of_range, infinite, n_threads
        As in `powerkern.sklearn.PowerTransformer`.
    groups : str or list of str, optional
        Name or names of the columns of a data frame that hold the group labels; the output does not contain them. By
        default, pass labels to `fit` and `transform` as ``groups=``; a pipeline routes them if they are requested
        (``set_fit_request(groups=True)``). Without labels, all samples form one group.
    dropna : bool, optional
        Treatment of samples without a label: True returns NaN for them, False treats them as a group; default: raise an
        error.
    unknown : {"raise", "nan", "pooled"}, default "raise"
        Treatment of new groups: raise an error, return NaN, or apply the transform fitted to all samples.
    shrink : bool, default False
        Shrink the lambda of each group towards the lambda of all samples.

    Attributes
    ----------
    grouped_fit_ : GroupedFit
        The fit, without the training data.
    lambdas_ : ndarray, shape (n_groups, n_features)
        The transformation parameters; rows in the order of `grouped_fit_.groups`.
    n_features_in_, feature_names_in_
        Number and names of the features, including columns of labels, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from powerkern.sklearn import GroupedPowerTransformer
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"site": np.repeat(["a", "b"], 100), "dose": rng.lognormal(size=200)})
    >>> transformer = GroupedPowerTransformer("box-cox", groups="site").fit(X)
    >>> transformer.lambdas_.round(2).tolist()
    [[-0.01], [0.17]]
    >>> transformer.transform(X).shape
    (200, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"yeo-johnson", "box-cox"})],
        "groups": [str, list, None],
        "standardize": ["boolean"],
        "estimator": [str, *ESTIMATORS.values()],
        "bounds": ["array-like", None],
        "dropna": ["boolean", None],
        "unknown": [StrOptions({"raise", "nan", "pooled"})],
        "shrink": ["boolean"],
        "out_of_range": [StrOptions({"nan", "raise", "clip"}), None],
        "infinite": [StrOptions({"raise", "missing", "keep"})],
        "n_threads": N_THREADS,
    }

    method: str = "yeo-johnson"
    _: KW_ONLY
    groups: str | list[str] | None = None
    standardize: bool = True
    estimator: Estimator | str = "mle"
    bounds: Bounds | None = None
    dropna: bool | None = None
    unknown: UnknownGroups = "raise"
    shrink: bool = False
    out_of_range: OutOfRange | None = None
    infinite: Infinite = "raise"
    n_threads: int | None = None

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @CALLING_FAMILY_METHOD
    def fit(
        self,
        X: object,
        y: object = None,
        groups: GroupsLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit every feature of `X` in every group; `y` is ignored.

        Parameters
        ----------
        X : (n_samples, n_features) array-like
            Training data.
        y : None
            Ignored.
        groups : (n_samples,) array-like, optional
            Labels, if the parameter `groups` names no columns. A series is aligned with the index of `X`.
        sample_weight : (n_samples,) array-like, optional
            Non-negative weights.
        """
        values, labels = self._read(X, groups, reset=True)
        names = feature_names(self)
        fit = fitting.fit(
            values,
            self.method,
            self.estimator,
            standardize=self.standardize,
            sample_weight=sample_weight,
            bounds=self.bounds,
            column_names=None if names is None else [name for name in names if name not in self._keys()],
            groups=labels,
            dropna=self.dropna,
            unknown=self.unknown,
            shrink=self.shrink,
            infinite=self.infinite,
            n_threads=self.n_threads,
        )
        self.grouped_fit_ = fit.without_data()
        return self

    def fit_transform(
        self,
        X: object,
        y: object = None,
        groups: GroupsLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NDArray[np.floating]:
        """Call `fit`, then `transform` with the same samples.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in `fit`.
        """
        self.fit(X, y, groups=groups, sample_weight=sample_weight)
        return self.transform(X, groups=groups)

    @CALLING_FAMILY_METHOD
    def transform(self, X: object, groups: GroupsLike | None = None) -> NDArray[np.floating]:
        """Transform each sample of `X` with the lambdas of its group.

        `X` and `groups` are as in `fit`. NaN stays NaN. Columns of labels are dropped.
        """
        check_is_fitted(self)
        values, labels = self._read(X, groups, reset=False)
        Z: NDArray[np.floating] = self.grouped_fit_.transform(
            values,
            labels,
            n_threads=self.n_threads,
            out_of_range=self.out_of_range or "raise",
            infinite=self.infinite,
        )
        return Z

    @CALLING_FAMILY_METHOD
    def inverse_transform(self, X: object, groups: GroupsLike | None = None) -> NDArray[np.floating]:
        """Undo `transform`; `X` contains no columns of labels.

        Pass the labels as `groups`: an (n_samples,) array-like, or a data frame with a column for each column of
        labels. They are not needed if `fit` had none.
        """
        check_is_fitted(self)
        Z = read_array(X, ensure_all_finite=False if self.infinite == "keep" else "allow-nan")
        if groups is None and self.groups is not None:
            raise TypeError("pass the labels of the samples as groups=; transformed data do not contain them")
        check_n_features(Z, self.grouped_fit_.n_features, None, None)
        back: NDArray[np.floating] = self.grouped_fit_.inverse_transform(
            Z, _labels(groups, X, len(Z)), n_threads=self.n_threads, out_of_range=self.out_of_range or "nan"
        )
        return back

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the output features: all features except the columns of labels."""
        names = super().get_feature_names_out(input_features)
        return np.array([name for name in names if name not in self._keys()], dtype=object)

    @property
    def lambdas_(self) -> FloatArray:
        """The transformation parameters of each group and feature."""
        check_is_fitted(self)
        lambdas: FloatArray = self.grouped_fit_.lmbda
        return lambdas

    def _keys(self) -> list[str]:
        """Return the names of the columns of labels as a list."""
        return [] if self.groups is None else [self.groups] if isinstance(self.groups, str) else list(self.groups)

    def _read(self, X: Any, groups: Any, reset: bool) -> tuple[Any, Any]:
        """Read `X`: return its numeric values and the labels of its rows; `reset` is as in scikit-learn."""
        if self.groups is None:
            values = read(self, X, reset=reset)
            return values, _labels(groups, X, len(values))
        if groups is not None:
            raise TypeError(f"groups= can be passed only if the parameter groups is None, but it is {self.groups!r}")
        names = frames.names_of(X)
        missing = [key for key in self._keys() if key not in (names or [])]
        if names is None or missing:
            raise ValueError(
                f"groups={self.groups!r} names columns that X, a {type(X).__name__}, does not have; add them to X"
            )
        note_features(self, X, reset)
        at = [names.index(key) for key in self._keys()]
        labels = frames.column_at(X, at[0]) if isinstance(self.groups, str) else frames.select(X, None, at)
        return as_matrix(without_names(X, self._keys())).values, labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.method == "box-cox"
        return tags


def _labels(groups: Any, X: Any, n: int) -> Any:
    """Return the labels in the order of the `n` rows of `X`; without labels, 0 for all rows."""
    return np.zeros(n, dtype=np.int64) if groups is None else align_rows(groups, X, "groups")
