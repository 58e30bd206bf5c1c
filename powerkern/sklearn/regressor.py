"""`PowerTransformedRegressor`: regression on a power transform of the response, with lambda estimated given X."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import check_cv, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from powerkern._engine.threads import thread_count
from powerkern._input.messages import suggest_in_constructor, warn
from powerkern._results.back_transform import back_transform
from powerkern._typing import FloatArray
from powerkern.regression import fit_regression
from powerkern.sklearn._compat import (
    BaseSearchCV,
    HasMethods,
    Interval,
    StrOptions,
    check_sample_weight,
    fit_context,
)
from powerkern.sklearn.reading import N_THREADS, note_features, read_array


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class PowerTransformedRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression on a power transform of the response, with lambda estimated given the features.

    The model of Box and Cox [1]_ is ``psi(lambda, y) = f(X) + s Z`` with standard normal Z. lambda maximises the
    likelihood of a linear model of the features (`powerkern.regression.fit_regression`). `regressor` is then fitted to
    the transformed response, and predictions are medians, means or quantiles of y.

    `sklearn.compose.TransformedTargetRegressor` with a `PowerTransformer` serves another purpose: it makes the
    distribution of y, not of the residuals, normal. The two lambdas differ widely if the features explain much of the
    response or have skewed distributions.

    Parameters
    ----------
    regressor : estimator, default LinearRegression()
        The regressor. A clone is fitted to X and the transformed response, in units of the residual standard deviation
        of the linear model.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform. Box-Cox needs responses above -shift, that is, positive ones by default.
    lmbda, shift, bounds
        A known lambda, the shift of Box-Cox, and the smallest and largest lambda, as in
        `powerkern.regression.fit_regression`.
    kind : {"median", "mean", "quantile"}, default "median"
        The quantity to predict. The inverse transform of a predicted mean is the median of y. The mean of y, which
        minimises the squared error, is the integral of ``psi^-1(f(X) + s z) phi(z)`` over z.
    quantile : float, default 0.5
        Level for ``kind="quantile"``, between 0 and 1.
    covariates : transformer, optional
        Transformer that computes numeric features for the linear model by which lambda is estimated; a clone is fitted
        to X. It is needed if X has categories, missing values, or too many columns. Default: X itself.
    cv : int, cross-validation splitter or iterable, optional
        Compute the scale s from residuals of held-out rows. Use it for regressors such as forests, whose residuals on
        the training data are too small. Default: residuals on the training data.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Attributes
    ----------
    regression_fit_ : RegressionFit
        The fit of lambda, with intervals, tests and status. It does not keep the training data.
    regressor_ : estimator
        The fitted regressor.
    lambda_ : float, or ndarray of shape (n_outputs,)
        The transformation parameter.
    residual_scale_ : float, or ndarray of shape (n_outputs,)
        Standard deviation s of the transformed response about its predictions, in units of the scale of the linear
        model; 1 if the regressor is that linear model.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Notes
    -----
    Means and quantiles assume that residuals on the transformed scale are normal with the same standard deviation for
    all rows. If the range of psi is finite, a prediction beyond it becomes the end of the domain, which may be
    infinite; see `powerkern.regression.RegressionFit.predict`. A response whose lambda cannot be estimated (constant,
    or exactly linear in the features) is not transformed.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import PowerTransformedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(500, 1))
    >>> y = np.exp(1.0 + X[:, 0] + 0.5 * rng.normal(size=500))
    >>> model = PowerTransformedRegressor(family="box-cox", kind="mean").fit(X, y)
    >>> bool(abs(model.lambda_) < 0.1)
    True
    >>> bool(abs(model.predict([[1.0]])[0] / np.exp(2.0 + 0.5**2 / 2) - 1.0) < 0.1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regressor": [HasMethods(["fit", "predict"]), None],
        "family": [StrOptions({"yeo-johnson", "box-cox", "best"})],
        "lmbda": [Real, "array-like", None],
        "shift": [Real, "array-like"],
        "bounds": ["array-like", None],
        "kind": [StrOptions({"median", "mean", "quantile"})],
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "covariates": [HasMethods(["fit_transform"]), None],
        "cv": ["cv_object"],
        "n_threads": N_THREADS,
    }

    regressor: Any = None
    _: KW_ONLY
    family: str = "yeo-johnson"
    lmbda: ArrayLike | None = None
    shift: ArrayLike = 0.0
    bounds: object = None
    kind: str = "median"
    quantile: float = 0.5
    covariates: Any = None
    cv: Any = None
    n_threads: int | None = None

    @fit_context(prefer_skip_nested_validation=False)  # type: ignore[untyped-decorator]
    def fit(self, X: object, y: object, sample_weight: ArrayLike | None = None, **fit_params: Any) -> Self:
        """Estimate lambda given X, then fit the regressor to X and the transformed response.

        Parameters
        ----------
        X : (n_samples, n_features) array-like
            Features. Without `covariates`, they must be numeric and complete.
        y : (n_samples,) or (n_samples, n_outputs) array-like
            Responses, not transformed.
        sample_weight : (n_samples,) array-like, optional
            Non-negative weights for the estimation of lambda and for the regressor, which must accept them. For a
            pipeline, they are passed to the last step.
        **fit_params
            Further arguments of `fit` of the regressor.

        Raises
        ------
        ValueError
            If a response is missing, infinite or outside the domain of the transform, or if features are not numbers.
        """
        Y = _read_responses(y)
        design = self._design(X, len(Y))
        self._is_vector = Y.ndim == 1
        regressor = LinearRegression() if self.regressor is None else self.regressor
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, np.empty((len(Y), 1)))
            fit_params = {**fit_params, _weight_argument(regressor): sample_weight}
        fit = fit_regression(
            Y, design, self.family, intercept=not (design == design[0]).all(), sample_weight=sample_weight,
            lmbda=self.lmbda, shift=self.shift, bounds=self.bounds, n_threads=self.n_threads,
        )  # fmt: skip
        self.regression_fit_ = copy.copy(fit)  # a copy does not keep the data
        Z = np.asarray(self.regression_fit_.power_fit.transform(Y))
        self.regressor_ = clone(regressor).fit(X, Z, **fit_params)
        self._scale = self._residual_scale(regressor, X, Z, sample_weight, fit_params)
        return self

    def predict(self, X: object) -> FloatArray:
        """Predict medians, means or quantiles (see `kind`) in the units and shape of the response."""
        check_is_fitted(self)
        Z = np.asarray(self.regressor_.predict(X), dtype=np.float64)
        threads = thread_count(self.n_threads)
        power = self.regression_fit_.power_fit
        flat = Z.reshape(len(Z), -1)
        found = back_transform(power._table, flat, self._scale, self.kind, self.quantile, threads)
        return found.reshape(Z.shape)

    @property
    def lambda_(self) -> float | FloatArray:
        """The transformation parameter of the response; an array for several responses."""
        check_is_fitted(self)
        return self._per_output(self.regression_fit_.lmbda)

    @property
    def residual_scale_(self) -> float | FloatArray:
        """Standard deviation of the transformed response about its predictions."""
        check_is_fitted(self)
        return self._per_output(self._scale)

    def _per_output(self, values: FloatArray) -> float | FloatArray:
        """Return a float if y was one-dimensional, otherwise the array `values`, (n_outputs,)."""
        return float(values[0]) if self._is_vector else values

    def _design(self, X: object, n: int) -> FloatArray:
        """Return the features, (n, k), of the linear model by which lambda is estimated; `n` is the length of y."""
        note_features(self, X)  # sets the number and the names of the features
        if self.covariates is not None:
            X = clone(self.covariates).fit_transform(X)
        design: FloatArray = read_array(
            X, dtype=np.float64, ensure_all_finite=True, ensure_min_samples=2, estimator=self
        )
        if len(design) != n:
            raise ValueError(f"X has {len(design)} rows, y has {n}; pass the same rows")
        if design.shape[1] + 1 < n:
            return design
        warn(
            f"{design.shape[1]} features and a constant fit any {n} responses exactly, so lambda is estimated without "
            "features; pass covariates=, a transformer that returns fewer columns",
            UserWarning,
        )
        return np.ones((n, 1))

    def _residual_scale(
        self, regressor: Any, X: object, Z: FloatArray, sample_weight: Any, fit_params: dict[str, Any]
    ) -> FloatArray:
        """Return the root mean square residual of each response, (p,), in held-out rows (with `cv`) or fitted rows.

        Parameters
        ----------
        regressor : estimator
            The unfitted regressor.
        X : array-like
            The features.
        Z : (n,) or (n, p) ndarray
            The transformed responses.
        sample_weight : (n,) array-like or None
            Weights of the rows.
        fit_params : dict
            Arguments of `fit` of the regressor.
        """
        if self.cv is None:
            predicted = self.regressor_.predict(X)
        else:
            folds = check_cv(self.cv)
            predicted = cross_val_predict(regressor, X, Z, cv=folds, params=fit_params)
        squares = (Z - np.asarray(predicted).reshape(Z.shape)).reshape(len(Z), -1) ** 2
        return np.sqrt(np.average(squares, axis=0, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family == "box-cox" and not np.any(self.shift)
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        tags.regressor_tags.poor_score = (
            True  # scikit-learn's checks have responses with outliers, which a transform pulls in
        )
        return tags


def _read_responses(y: object) -> FloatArray:
    """Return the responses as float64, (n,) or (n, p); raise ValueError if one is missing or infinite."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return np.asarray(read_array(y, "y", dtype=np.float64, ensure_all_finite=True, ensure_2d=False))


def _weight_argument(regressor: Any) -> str:
    """Return the name of the argument of ``regressor.fit`` for weights; regressors may be searches or pipelines."""
    if isinstance(regressor, BaseSearchCV):
        return _weight_argument(regressor.estimator)
    if isinstance(regressor, Pipeline):
        step, last = regressor.steps[-1]
        name = _weight_argument(last)
        return name if get_config()["enable_metadata_routing"] else f"{step}__{name}"
    if not has_fit_parameter(regressor, "sample_weight"):
        raise ValueError(f"{type(regressor).__name__} takes no sample_weight; fit without weights")
    return "sample_weight"
