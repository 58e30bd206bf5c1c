"""`LocationScaler`: subtract a location and divide by a scale, by any method of `powerkern.location`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from powerkern._engine.threads import thread_count
from powerkern._input.arguments import weights_of
from powerkern._input.arrays import Matrix
from powerkern._input.messages import suggest_in_constructor
from powerkern.location import measure_location
from powerkern.sklearn.reading import FloatTransformer, feature_names, read_array, read_finite, refuse_values

#: Arguments that the estimator passes to `location_scale` itself.
_OWN = ("X", "method", "sample_weight", "n_threads")


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class LocationScaler(FloatTransformer):
    """Subtract a location from every feature and divide by a scale, estimated by any method of `powerkern.location`.

    It generalizes `sklearn.preprocessing.RobustScaler`, which resembles "median-niqr", to M-estimators and other
    methods.

    Parameters
    ----------
    method : str, default "median-mad"
        A method of `powerkern.location.location_scale`: "mean-sd", "huber", "huber-proposal2", "bisquare", ...
    constants : dict, optional
        Tuning constants of the method, such as ``{"k": 1.345}``.
    copy : bool, default True
        If False, `transform` and `inverse_transform` overwrite a float64 or float32 array in place.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Only `fit` uses several.

    Attributes
    ----------
    center_, scale_ : ndarray, shape (n_features,)
        Locations to subtract and scales to divide by. A scale of 0 (if more than half of the values are equal, say) is
        replaced by 1.
    status_ : ndarray of int, shape (n_features,)
        The `powerkern.location.LocationStatus` of each feature.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import LocationScaler
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [500.0]])
    >>> LocationScaler("median-niqr").fit_transform(X).ravel().round(2)
    array([ -1.35,  -0.67,   0.  ,   0.67, 335.22])
    """

    method: str = "median-mad"
    _: KW_ONLY
    constants: dict[str, Any] | None = None
    copy: bool = True
    n_threads: int | None = None

    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate location and scale of every feature of `X`, (n_samples, n_features).

        NaN is missing. `y` is ignored. `sample_weight`, (n_samples,), must not be negative; an integer weight k has the
        effect of k equal rows.
        """
        constants = self.constants or {}
        for name in _OWN:
            if name in constants:
                raise ValueError(
                    f"constants must not contain {name!r}, which the estimator passes itself; leave it out"
                )
        values = read_finite(self, X)
        matrix = Matrix(values, feature_names(self), False, weights_of(sample_weight, len(values)))
        estimate = measure_location(matrix, self.method, n_threads=thread_count(self.n_threads), **constants)
        self.center_ = estimate.loc
        self.scale_ = np.where(estimate.scale == 0.0, 1.0, estimate.scale)
        self.status_ = estimate.status
        return self

    def transform(self, X: object) -> NDArray[np.floating]:
        """Return ``(X - center_)/scale_``, in float32 if `X` is float32, otherwise in float64."""
        check_is_fitted(self)
        values = read_finite(self, X, copy=self.copy, force_writeable=True, reset=False)
        with np.errstate(over="ignore"):  # infinite in float64
            values -= self.center_
            values /= self.scale_
        return values

    def inverse_transform(self, X: object) -> NDArray[np.floating]:
        """Undo `transform`: multiply by the scales and add the locations."""
        check_is_fitted(self)
        values: NDArray[np.floating] = read_array(X, copy=self.copy, force_writeable=True, ensure_all_finite=False)
        if values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input"
            )
        refuse_values(self, values)
        with np.errstate(over="ignore"):
            values *= self.scale_
            values += self.center_
        return values
