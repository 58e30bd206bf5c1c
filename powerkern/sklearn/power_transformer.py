"""`PowerTransformer`, a drop-in replacement for scikit-learn's."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from powerkern import sketch
from powerkern._estimators.base import Estimator
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._estimators.ml import ML
from powerkern._estimators.shift import given_shift
from powerkern._estimators.spec import OnFailure
from powerkern._fit import fit as fitting
from powerkern._input.arguments import each_column, given_bounds
from powerkern._input.arrays import Matrix, as_reals, warn_of_columns
from powerkern._input.censoring import given_limits
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.infinite import without_infinite
from powerkern._input.messages import muted, suggest_in_constructor
from powerkern._results.fitted_data import FittedData
from powerkern._results.power_fit import PowerFit
from powerkern._status import Status
from powerkern._typing import Bounds, Limits
from powerkern.sklearn._compat import StrOptions, fit_context
from powerkern.sklearn.exchange import convert_fit, convert_to_sklearn, read_arguments
from powerkern.sklearn.fitted_rows import FittedRows
from powerkern.sklearn.reading import CALLING_FAMILY_METHOD, N_THREADS, feature_names, read, read_array
from powerkern.sklearn.tables import PartTransformer, SelectedColumns

#: Statuses about which `partial_fit` warns as soon as a column gets them, since more rows seldom help.
_LASTING_DOUBTS = (Status.UNREPRESENTABLE, Status.UNRESOLVED, Status.NOT_CERTIFIED)


def _uses_sums_only(transformer: PowerTransformer) -> bool:
    """Return whether the fit needs only sums over the data, so that `partial_fit` is possible."""
    return transformer.origin is None and transformer.estimator in (ML.name, ML())


@suggest_in_constructor
@dataclass(eq=False, repr=False)
class PowerTransformer(PartTransformer):
    """Box-Cox or Yeo-Johnson transform of every feature, as a scikit-learn transformer.

    To replace `sklearn.preprocessing.PowerTransformer`, change one import line. This transformer adds robust
    estimators, sample weights and threads. See `powerkern.fit` for the formulas.

    Parameters
    ----------
    method : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform. Box-Cox needs values above -shift, that is, positive ones by default.
    standardize : bool, default True
        Standardize the output to mean 0 and standard deviation 1.
    shift : float or (n_features,) array-like, default 0
        Box-Cox only: ``x + shift`` is transformed, for values above -shift.
    origin : {"fit"}, optional
        With "fit", the origin and the unit of each feature are fitted together with lambda; see `powerkern.fit`.
        `partial_fit` is then not available.
    bounds : (low, high), optional
        Smallest and largest lambda: numbers, or arrays with one number for each feature; None for no bound.
    ymax : float, optional
        Largest absolute transformed value, before standardizing, of the training data; see `powerkern.fit`.
    lmbda : float or (n_features,) array-like, optional
        Use these lambdas instead of fitted ones; NaN entries are fitted. Only with ``estimator="mle"``.
    limits : (low, high), optional
        Detection limits: numbers, or arrays with one number for each feature; None for no limit. `fit` treats training
        values at or beyond a limit as censored there, see `powerkern.fit`; `transform` does not censor values.
        `partial_fit` is then not available.
    on_failure : {"raise", "passthrough"}, default "raise"
        With "passthrough", features with values outside the domain of Box-Cox, or with fewer than three distinct
        values, pass through unchanged, as do features without values under Box-Cox. One warning lists them.
        `partial_fit` is then not available. Constant features become 0, as with "raise".
    variables : list of str or int, or (n_features,) array-like of bool, optional
        The features to transform, by name or position. All other features pass through unchanged, whatever their type.
        A data frame then gives a data frame, with all columns in their order. By default all features are transformed,
        and the result is an array.
    copy : bool, default True
        If False, `transform` and `inverse_transform` overwrite a float64 or float32 array in place.
    estimator : Estimator or str, default "mle"
        Estimator of lambda, as in `powerkern.fit`, such as "robust" or ``powerkern.AdaptiveRewML(n_reweight=3)``.
    out_of_range : {"raise", "nan", "clip"}, optional
        Treatment of values that cannot be transformed (not above -shift under Box-Cox, or so large that the transform
        overflows), and of transformed values without an inverse. "raise" raises an error, except that overflow returns
        infinity. "nan" returns NaN. "clip" moves all new values beyond the range of the fitted data to the nearest end
        of that range. One warning of `transform` gives the number of such values for each feature. The default is the
        behavior of scikit-learn: `transform` raises, and `inverse_transform` returns NaN, with a warning under
        Yeo-Johnson.
    infinite : {"raise", "missing", "keep"}, default "raise"
        Treatment of infinite values. "raise" raises an error, as in scikit-learn. "missing" replaces them by NaN, with
        a warning that counts them. "keep" leaves them out of the fit, and `transform` and `inverse_transform` return
        them unchanged.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process, or ``NUMBA_NUM_THREADS`` if that is fewer. joblib sets this
        variable in worker processes so that they do not compete for CPUs.

    Attributes
    ----------
    lambdas_ : ndarray, shape (n_features,)
        The transformation parameters; NaN for features not in `variables`. If you assign other lambdas, mean and scale
        keep their fitted values, as in scikit-learn.
    power_fit_ : PowerFit
        The fit, with intervals, standard errors and the status of each transformed feature. It does not keep the
        training data, so pass X to `PowerFit.confint` and `PowerFit.profile`.
    sketch_ : Sketch or None
        Sketch of all rows so far; None if `partial_fit` has not been called.
    n_features_in_, feature_names_in_
        Number and names of the features, as in scikit-learn.

    Notes
    -----
    NaN is missing: it is left out of the fit and stays NaN in the output. A feature for which no lambda is optimal
    (constant, or all missing) keeps its values, but with ``standardize=True`` a constant feature becomes 0, as in
    scikit-learn. An all-missing feature under Box-Cox raises an error, as in scikit-learn.

    `fit` with ``estimator="mle"`` emits no more warnings than scikit-learn's, with one exception: a warning lists the
    features for which scikit-learn raises an error, constant ones under Box-Cox and all-missing ones under Yeo-Johnson.
    ``power_fit_.status_text`` and ``power_fit_.summary()`` describe each feature. Other estimators warn as
    `powerkern.fit` does.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.sklearn import PowerTransformer
    >>> X = np.array([[1.0, 2.0], [3.0, 2.0], [4.0, 5.0]])
    >>> transformer = PowerTransformer().fit(X)
    >>> transformer.lambdas_.round(3)
    array([ 1.387, -3.101])
    >>> bool(np.allclose(transformer.inverse_transform(transformer.transform(X)), X))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"yeo-johnson", "box-cox"})],
        "standardize": ["boolean"],
        "shift": [Real, "array-like"],
        "origin": [StrOptions({"fit"}), None],
        "bounds": ["array-like", None],
        "ymax": [Real, None],
        "lmbda": [Real, "array-like", None],
        "limits": ["array-like", None],
        "on_failure": [StrOptions({"raise", "passthrough"})],
        "variables": ["array-like", None],
        "copy": ["boolean"],
        "estimator": [str, *ESTIMATORS.values()],  # `powerkern.fit` knows the names
        "out_of_range": [StrOptions({"nan", "raise", "clip"}), None],
        "infinite": [StrOptions({"raise", "missing", "keep"})],
        "n_threads": N_THREADS,
    }

    method: str = "yeo-johnson"
    _: KW_ONLY
    standardize: bool = True
    shift: ArrayLike = 0.0
    origin: str | None = None
    bounds: Bounds | None = None
    ymax: float | None = None
    lmbda: ArrayLike | None = None
    limits: Limits | None = None
    on_failure: OnFailure = "raise"
    variables: Any = None
    copy: bool = True
    estimator: Estimator | str = "mle"
    out_of_range: OutOfRange | None = None
    infinite: Infinite = "raise"
    n_threads: int | None = None

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @CALLING_FAMILY_METHOD
    def fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit every feature of `X`, (n_samples, n_features); `y` is ignored.

        `sample_weight`, (n_samples,), must not be negative; an integer weight k has the effect of k equal rows.
        """
        matrix = self._without_infinite(self._read(X)[1])
        with muted() if _uses_sums_only(self) else nullcontext():
            fit = fitting.fit(
                matrix,
                self.method,
                self.estimator,
                standardize=self.standardize,
                sample_weight=sample_weight,
                shift=self._shift(),
                origin=self.origin,
                bounds=self._bounds(),
                column_names=self._names(),
                ymax=self.ymax,
                infinite=self.infinite,
                lmbda=self._lmbda(),
                limits=self._limits(),
                on_failure=self.on_failure,
                n_threads=self.n_threads,
            )
        if self.on_failure == "raise" and self.method == "box-cox" and (fit.status == Status.EMPTY).any():
            raise ValueError("Column must not be all nan.")  # scikit-learn's words
        if _uses_sums_only(self):
            self._warn_where_sklearn_raises(fit)
        self.power_fit_ = fit.without_data()
        self.sketch_: sketch.Sketch | None = None
        self._rows = FittedRows(X, fit._data if isinstance(fit._data, FittedData) else None)
        return self

    @available_if(_uses_sums_only)  # type: ignore[untyped-decorator]
    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @CALLING_FAMILY_METHOD
    def partial_fit(self, X: object, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Update the fit with more rows, so that the data need not fit in memory; arguments are as in `fit`.

        The rows are summarised in a sketch (`powerkern.sketch`) of about 60 kilobytes per feature, which determines the
        likelihood to about 1e-13. A feature that cannot be fitted yet causes no warning; see
        ``power_fit_.status_text``. This method is available only with ``estimator="mle"``.

        After `fit`, this method continues from the rows of `fit`, as if `partial_fit` had been called with all rows.
        `fit` makes no sketch, so the first call of `partial_fit` summarises the data that were passed to `fit`. It
        raises a ValueError if these data have been changed or are no longer in memory. A transformer that has been
        pickled or deeply copied after `fit` has no access to them.
        """
        if self.limits is not None:
            raise ValueError("partial_fit has no limits=; call fit with all rows")
        if self.on_failure != "raise":
            raise ValueError("partial_fit works only with on_failure='raise'; call fit with all rows")
        is_first = not hasattr(self, "power_fit_")
        seen: sketch.Sketch | None = getattr(self, "sketch_", None)
        if not is_first:
            self._check_continued(seen)
        matrix = self._without_infinite(self._read(X, reset=is_first)[1])
        with muted():
            if seen is None and not is_first:
                rows, weight = getattr(self, "_rows", FittedRows()).read(
                    lambda given: self._without_infinite(self._read(given, reset=False)[1], warns=False),
                    self._names(),
                    self.n_threads,
                )
                seen = self._extend_sketch(None, rows, weight)
            total = self._extend_sketch(seen, matrix, sample_weight)
            fit = sketch.finish(
                total,
                standardize=self.standardize,
                lmbda=self._lmbda(),
                ymax=self.ymax,
                bounds=self._bounds(),
                n_threads=self.n_threads,
            )
        known = np.full(fit.n_features, Status.OK) if is_first else self.power_fit_.status
        new_doubts = [((fit.status == code) & (known != code), code.sentence) for code in _LASTING_DOUBTS]
        warn_of_columns(new_doubts, fit.column_names)
        self.power_fit_, self.sketch_, self._rows = fit, total, FittedRows()
        return self

    def _check_continued(self, seen: sketch.Sketch | None) -> None:
        """Raise ValueError if method or shift has changed since earlier calls; `seen` is the earlier sketch or None."""
        fit = self.power_fit_
        family, shift = (fit.family, fit._spec.shift) if seen is None else (seen.grid.family, seen.grid.shift)
        if family != self.method:
            raise ValueError(
                f"method is {self.method!r}, and the rows seen so far were fitted by {family!r}; "
                "start again with a clone"
            )
        was, is_now = (given_shift(each, family, fit.n_features) for each in (shift, self._shift()))
        if not np.array_equal(was, is_now):
            raise ValueError("shift differs from the shift of the rows seen so far; start again with a clone")

    def _extend_sketch(
        self, seen: sketch.Sketch | None, matrix: NDArray[Any], sample_weight: ArrayLike | None
    ) -> sketch.Sketch:
        """Return the sketch `seen` of earlier rows extended by the rows of `matrix` with weights `sample_weight`."""
        return sketch.extend(
            seen,
            matrix,
            self.method,
            sample_weight=sample_weight,
            shift=self._shift(),
            column_names=self._names(),
            n_threads=self.n_threads,
        )

    @CALLING_FAMILY_METHOD
    def transform(self, X: object) -> Any:
        """Transform every feature of `X`, (n_samples, n_features).

        The result is float32 if `X` is float32, otherwise float64.

        NaN stays NaN. By default, ValueError is raised for infinite values, and under Box-Cox for values not above
        -shift; see `out_of_range` and `infinite`.
        """
        check_is_fitted(self)
        table, matrix = self._read(X, reset=False, force_writeable=not self.copy)
        Z: NDArray[np.floating] = self.power_fit_.transform(
            matrix,
            out=self._target(matrix),
            n_threads=self.n_threads,
            out_of_range=self.out_of_range or "raise",
            infinite=self.infinite,
        )
        constant = self._constant_features()
        Z[:, constant] -= self.power_fit_.x_min[constant]
        return Z if table is None else table.with_values(Z, self.copy)

    @CALLING_FAMILY_METHOD
    def inverse_transform(self, X: object) -> Any:
        """Undo `transform`; the result is float32 if `X` is float32, otherwise float64.

        NaN stays NaN. Values outside the range of the transform have no inverse; see `out_of_range`.
        """
        check_is_fitted(self)
        table: SelectedColumns | None = None
        options: dict[str, Any] = {"ensure_all_finite": False if self.infinite == "keep" else "allow-nan"}
        if self._chosen is None:
            Z = read_array(X, force_writeable=not self.copy, **options)
        else:
            table, Z = self._read_output(X, **options)
        if Z.shape[1] != self.power_fit_.n_features:
            raise ValueError(
                f"X has {Z.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.power_fit_.n_features} features as input"
            )
        with muted() if self.method == "box-cox" else nullcontext():  # like scikit-learn, warn only under Yeo-Johnson
            back: NDArray[np.floating] = self.power_fit_._invert(
                Z,
                out=self._target(Z),
                n_threads=self.n_threads,
                out_of_range=self.out_of_range or "nan",
                warns_of_digits=False,  # scikit-learn does not
            )
        constant = self._constant_features()
        back[:, constant] += self.power_fit_.x_min[constant]
        return back if table is None else table.with_values(back, self.copy)

    @property
    def lambdas_(self) -> NDArray[np.float64]:
        """The transformation parameter of each feature."""
        check_is_fitted(self)
        if self._chosen is None:
            return self.power_fit_.lmbda
        lambdas = np.full(self.n_features_in_, np.nan)
        lambdas[self._chosen] = self.power_fit_.lmbda
        return lambdas

    @lambdas_.setter
    def lambdas_(self, lambdas: ArrayLike) -> None:
        lambdas, shift = as_reals("lambdas_", lambdas), as_reals("shift", self._shift())
        if not hasattr(self, "power_fit_"):
            if self.standardize or self.variables is not None:
                raise ValueError(
                    "lambdas_ cannot be assigned before fit with standardize=True or with variables; call fit first"
                )
            ends = np.broadcast_to([[1.0], [2.0]], (2, lambdas.size)) - shift  # stand-in for unknown data
            names = None
        else:
            if lambdas.shape != self.lambdas_.shape:
                raise ValueError(f"lambdas_ must have {self.lambdas_.size} entries, got shape {lambdas.shape}")
            lambdas = lambdas if self._chosen is None else lambdas[self._chosen]
            if self.standardize:
                theirs = convert_to_sklearn(self)
                theirs.lambdas_ = lambdas
                self.power_fit_ = convert_fit(theirs)
                return
            ends, names = np.array([self.power_fit_.x_min, self.power_fit_.x_max]), self.power_fit_.column_names
        self.power_fit_ = fitting.fit(
            ends, self.method, lmbda=lambdas, shift=shift, standardize=False, column_names=names
        ).without_data()

    def to_sklearn(self) -> Any:
        """Convert to an equivalent fitted `sklearn.preprocessing.PowerTransformer`.

        On data of ordinary range, the results of both transformers agree to 1e-12. If lambda is large, scikit-learn's
        formula, which subtracts the mean from transformed values, loses up to half of the digits. This transformer
        keeps them.

        Raises
        ------
        ValueError
            If scikit-learn cannot represent the fit: it transforms only some features (`variables`); it has a shift; it
            is a robust Yeo-Johnson fit, which rescales the data first; a mean or scale overflows, or a mean is 1e8
            scales or more; or a Box-Cox column passes unchanged with ``standardize=False``.

        Examples
        --------
        >>> import numpy as np
        >>> from powerkern.sklearn import PowerTransformer
        >>> X = np.random.default_rng(0).lognormal(size=(100, 2))
        >>> ours = PowerTransformer().fit(X)
        >>> bool(np.allclose(ours.to_sklearn().transform(X), ours.transform(X), rtol=0, atol=1e-12))
        True
        """
        check_is_fitted(self)
        if self._chosen is not None:
            raise ValueError(
                "scikit-learn's PowerTransformer transforms all features; use a ColumnTransformer, not variables="
            )
        return convert_to_sklearn(self)

    @classmethod
    def from_sklearn(cls, transformer: Any) -> Self:
        """Convert a fitted `sklearn.preprocessing.PowerTransformer` to a transformer of this class.

        All features have the status `Status.FIXED`. The training data are unknown: likelihoods are NaN, and `x_min` and
        `x_max` are the ends of the domain. TypeError is raised for another estimator, and
        `sklearn.exceptions.NotFittedError` if `transformer` is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn import preprocessing
        >>> from powerkern.sklearn import PowerTransformer
        >>> X = np.random.default_rng(0).lognormal(size=(100, 2))
        >>> theirs = preprocessing.PowerTransformer().fit(X)
        >>> bool(np.allclose(PowerTransformer.from_sklearn(theirs).transform(X), theirs.transform(X), atol=1e-12))
        True
        """
        made = cls(**read_arguments(transformer))
        made.power_fit_, made.sketch_, made._rows = convert_fit(transformer), None, FittedRows()
        made.n_features_in_ = transformer.n_features_in_
        if hasattr(transformer, "feature_names_in_"):
            made.feature_names_in_ = transformer.feature_names_in_
        return made

    def _read(
        self, X: object, reset: bool = True, **options: Any
    ) -> tuple[SelectedColumns | None, NDArray[np.floating]]:
        """Read `X`: return the table and the values of the features to transform.

        The table is None if all features are transformed. `reset` is as in scikit-learn, and `options` are those of
        `read`.
        """
        if reset:
            self._chosen = None
        if (self.variables if reset else self._chosen) is None:
            return None, read(self, X, reset=reset, **options)
        return self._read_part(X, reset)

    def _without_infinite(self, values: NDArray[Any], warns: bool = True) -> NDArray[Any]:
        """Treat infinite values as `infinite` requires, and return the values to fit; warn about them if `warns`."""
        return without_infinite(Matrix(values, self._names(), False), self.infinite, warns=warns).values

    def _warn_where_sklearn_raises(self, fit: PowerFit) -> None:
        """Warn about features that are not transformed, and about features for which scikit-learn raises an error."""
        refused = Status.CONSTANT if self.method == "box-cox" else Status.EMPTY
        left = (Status.EMPTY, Status.OUTSIDE_DOMAIN, Status.FEW_DISTINCT) if self.on_failure != "raise" else ()
        codes = dict.fromkeys((refused, *left))
        warn_of_columns([(fit.status == code, code.sentence) for code in codes], fit.column_names)

    def _names(self) -> list[str] | None:
        """Return the names of the transformed features for messages and results.

        If only some features of an array are transformed, the names are x0, x1, ...
        """
        if self._chosen is None:
            return feature_names(self)
        return list(self.get_feature_names_out()[self._chosen])

    def _shift(self) -> Any:
        """Return the shift of each transformed feature."""
        if self._chosen is None:
            return self.shift
        return each_column("shift", self.shift, self.n_features_in_, feature_names(self))[self._chosen]

    def _lmbda(self) -> Any:
        """Return the lambda that the user gave for each transformed feature, or None."""
        if self._chosen is None or self.lmbda is None:
            return self.lmbda
        return each_column("lmbda", self.lmbda, self.n_features_in_, feature_names(self))[self._chosen]

    def _limits(self) -> Any:
        """Return the detection limits of each transformed feature, or None."""
        if self._chosen is None or self.limits is None:
            return self.limits
        return tuple(given_limits(self.limits, self.n_features_in_, feature_names(self))[:, self._chosen])

    def _bounds(self) -> Any:
        """Return the bounds of each transformed feature."""
        if self._chosen is None:
            return self.bounds
        return given_bounds(self.bounds, self.n_features_in_, feature_names(self))[:, self._chosen]

    def _target(self, X: NDArray[Any]) -> NDArray[Any] | None:
        """Return `X` if the results may be written into it, otherwise None."""
        return X if not self.copy and self._chosen is None and X.dtype in (np.float32, np.float64) else None

    def _constant_features(self) -> NDArray[np.intp]:
        """Return the positions of constant features that must become 0, because the fit passes them unchanged."""
        return np.flatnonzero((self.power_fit_.status == Status.CONSTANT) & self.power_fit_.standardize)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.method == "box-cox" and not np.any(self.shift)
        return tags
