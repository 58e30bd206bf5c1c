"""Fitting and applying power transforms to the columns of a matrix."""

from __future__ import annotations

import inspect
import json
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern import _frames, columns, pieces
from powerkern._estimators import ESTIMATORS, QUANTILE, Robust, cutoff_of, other_estimator
from powerkern._status import Status
from powerkern._validate import (
    Matrix,
    as_choice,
    as_flag,
    as_matrix,
    as_out,
    as_weights,
    check_n_features,
    column_label,
    column_labels,
    domain_error,
)
from powerkern.kernels import columnwise, lambda_bounds, mle
from powerkern.pieces import Sums

FloatArray = NDArray[np.float64]
OutOfRange = Literal["nan", "raise", "clip"]

#: Version of the JSON text that `PowerFit.to_json` writes; it reads every version up to it.
JSON_VERSION = 2

_NO_WEIGHTS = np.empty(0)
_FLOAT64 = np.dtype(np.float64)

#: The better one of both families, column by column.
_BEST = "best"
_FAMILIES = (*columns.FAMILIES, _BEST)
#: Estimators that leave values out altogether.
_KEEPS = ("rewml", "rewml-nr", "mtl")
#: Columns compared at a time when both families are fitted robustly.
_COMPARED = 64

#: Distance from overflow of raw transformed values when no ymax is given, as in scipy.
_SAFETY = 1e4


class Interval(NamedTuple):
    """Likelihood intervals for lambda, one entry a column."""

    low: FloatArray
    high: FloatArray


class PowerFit:
    """Power transforms fitted to the columns of a matrix.

    Made by `fit`; `from_json` reads one back. All arrays have one entry a column.

    Attributes
    ----------
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each column.
    estimator : str
        "mle", "rewml", "rewml-nr", "carroll", "mtl", "ks" or "ppcc".
    quantile : float
        Of the normal distribution, where the cut-off for outliers is.
    standardize : bool
        Whether `transform` standardises to mean 0 and standard deviation 1.
    column_names : list of str or None
        Names of the fitted columns, where the data had names.
    n_features : int
        Number of columns.
    lmbda : ndarray
        The transformation parameter. 1 for a column that could not be fitted, which is passed through unchanged.
    loc, scale, log_factor : ndarray
        Mean ``loc * exp(log_factor)`` and standard deviation ``scale * exp(log_factor)`` (with 1/n) of the raw
        transformed values, for robust fits of those that were kept. `log_factor` is 0 unless they would overflow.
        Standardised output does not pass through them: see Notes.
    nll : ndarray
        Negative log-likelihood ``n (1/2 ln Var(psi) - (lmbda - 1) mean(J))``, minus `scipy.stats.boxcox_llf`.
    information : ndarray
        Second derivative of `nll` in lambda: ``1/sqrt(information)`` is the standard error of `lmbda`.
    n_obs : ndarray
        Values that are not missing; with weights, the sum of their weights.
    n_iter : ndarray of int
        Evaluations of the likelihood or its derivatives, those on a sample included.
    status : ndarray of int
        A `powerkern.Status` each; `status_text` has them in words.
    x_min, x_max : ndarray
        Smallest and largest value of the fitted data.
    lmbda0 : ndarray
        Of robust fits: where reweighting started from; else `lmbda`.
    n_kept : ndarray
        Of robust fits: how many values the final fit is to; else `n_obs`.
    centre, divisor : ndarray
        Of robust Yeo-Johnson fits: what is transformed is ``(x - centre)/divisor``; else 0 and 1.

    Notes
    -----
    Standardised values are computed as ``slope * (psi(x) - psi(ref)) e^-s + intercept`` with a reference inside the
    data, so they are finite and accurate for every value in the fitted range even where psi itself overflows
    (lambda = -361) or all its values agree to 15 digits (years, tight clusters).
    """

    def __init__(
        self,
        family: str,
        results: FloatArray,
        *,
        estimator: str = "mle",
        families: NDArray[np.int64] | None = None,
        quantile: float = QUANTILE,
        standardize: bool = True,
        column_names: list[str] | None = None,
        data: tuple[NDArray[Any], FloatArray] | None = None,
        sums: Sums | None = None,
        was_vector: bool = False,
    ) -> None:
        self.family = family
        self.estimator = estimator
        self.quantile = quantile
        self.standardize = standardize
        self.column_names = column_names
        self._results = results
        self._families = np.full(len(results), columns.FAMILIES[family]) if families is None else families
        self._was_vector = was_vector
        self._data = data
        self._sums = sums

    def _column(self, k: int) -> FloatArray:
        """A column of the results, read-only: slope and intercept depend on it."""
        view = self._results[:, k]
        view.flags.writeable = False
        return view

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._results.shape[0])

    @property
    def lmbda(self) -> FloatArray:
        """The transformation parameter of each column."""
        return self._column(mle.LMBDA)

    @property
    def loc(self) -> FloatArray:
        """Mean of the raw transformed values, a factor ``exp(log_factor)`` apart."""
        return self._column(mle.LOC)

    @property
    def scale(self) -> FloatArray:
        """Their standard deviation, a factor ``exp(log_factor)`` apart."""
        return self._column(mle.SCALE)

    @property
    def log_factor(self) -> FloatArray:
        """Log of the factor that `loc` and `scale` leave out; mostly 0."""
        return self._column(mle.LOG_FACTOR)

    @property
    def nll(self) -> FloatArray:
        """Negative log-likelihood at `lmbda`."""
        return self._results[:, mle.NLL] * self.n_kept

    @property
    def information(self) -> FloatArray:
        """Second derivative of `nll` in lambda."""
        return self._results[:, mle.CURVATURE] * self.n_kept

    @property
    def n_obs(self) -> FloatArray:
        """Number (or total weight) of the values that are not missing."""
        return self._column(mle.N_OBS)

    @property
    def n_iter(self) -> NDArray[np.int64]:
        """Evaluations of the likelihood or its derivatives."""
        return self._results[:, mle.N_EVAL].astype(np.int64)

    @property
    def status(self) -> NDArray[np.int64]:
        """A `powerkern.Status` for each column."""
        return self._results[:, mle.STATUS].astype(np.int64)

    @property
    def status_text(self) -> list[str]:
        """The status of each column in words."""
        return [Status(code).sentence for code in self.status]

    @property
    def x_min(self) -> FloatArray:
        """Smallest value of the fitted data."""
        return self._column(mle.X_MIN)

    @property
    def x_max(self) -> FloatArray:
        """Largest value of the fitted data."""
        return self._column(mle.X_MAX)

    @property
    def families(self) -> list[str]:
        """The transform of each column."""
        names = {code: name for name, code in columns.FAMILIES.items()}
        return [names[code] for code in self._families.tolist()]

    @property
    def lmbda0(self) -> FloatArray:
        """Where the reweighting of a robust fit started from."""
        return self._column(mle.LMBDA0)

    @property
    def n_kept(self) -> FloatArray:
        """Number of values (or total weight) that the final fit is to."""
        return self._column(mle.N_KEPT)

    @property
    def centre(self) -> FloatArray:
        """What robust Yeo-Johnson fits subtract before they transform."""
        return self._column(mle.CENTRE)

    @property
    def divisor(self) -> FloatArray:
        """What they divide by."""
        return self._column(mle.DIVISOR)

    def __repr__(self) -> str:
        fitted = np.count_nonzero(~_failed(self.status))
        fitted_text = f"{fitted} of {self.n_features} columns fitted"
        return f"PowerFit(family={self.family!r}, estimator={self.estimator!r}, {fitted_text})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_data": None, "_sums": None}  # a fit travels without the data it came from

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands large arrays to its workers as read-only maps of a file, which kernels do not take
        self.__dict__.update(state, _results=np.array(state["_results"]))

    def part(self, columns: slice) -> PowerFit:
        """The fit of some of the columns, without data."""
        names = None if self.column_names is None else self.column_names[columns]
        return PowerFit(
            self.family,
            self._results[columns].copy(),
            estimator=self.estimator,
            families=self._families[columns].copy(),
            quantile=self.quantile,
            standardize=self.standardize,
            column_names=names,
        )

    # --- applying ---------------------------------------------------------------------------------------

    def transform(self, X: object, *, out: NDArray[Any] | None = None, n_threads: int | None = None) -> Any:
        """Transform every column of `X`.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            NaN stays NaN. Columns that could not be fitted pass unchanged. In a data frame the fitted columns are
            found by name, and others pass untouched.
        out : ndarray, optional
            Where to write; may be `X` itself, which is then overwritten only if every value is in the domain.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or a data frame or series where `X` is one of pandas or polars
            float32 for float32 input, else float64; same shape as `X`. Data frames keep their index, names and order
            of columns; of nullable columns, missing values are null.

        Raises
        ------
        ValueError
            Infinite values, non-positive values under Box-Cox (naming column and row), or a wrong shape.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).lognormal(size=(1000, 2))
        >>> Z = pk.fit(X, family="box-cox").transform(X)
        >>> bool(np.allclose(Z.mean(axis=0), 0)), bool(np.allclose(Z.std(axis=0), 1))
        (True, True)
        """
        part = _frames.columns_named(X, self.column_names)
        matrix = as_matrix(part)
        what = columnwise.FORWARD_STANDARDIZED if self.standardize else columnwise.FORWARD
        result, target = self._target(matrix, out)
        n_threads = columns.thread_count(n_threads)
        if out is not None:
            if np.shares_memory(target, matrix.values):  # nothing half-done: look before overwriting
                counts = columns.count_outside(matrix.values, self._families, self._results, n_threads)
                self._refuse(matrix, counts)
            self._forget(target)
        counts = columns.transform_matrix(matrix.values, target, self._families, what, self._results, n_threads)
        self._refuse(matrix, counts)
        return result if out is not None else _frames.restored(X, part, result)

    def inverse_transform(
        self,
        Z: object,
        *,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
        out_of_range: OutOfRange = "nan",
    ) -> Any:
        """Undo `transform`.

        Parameters
        ----------
        Z : (n, n_features) array-like, or (n,) where the fit was to one column
            Transformed values; NaN stays NaN. Data frames are treated as by `transform`.
        out : ndarray, optional
            Where to write; may be `Z` itself.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        out_of_range : {"nan", "raise", "clip"}, default "nan"
            A power transform maps onto a half line unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson).
            A value beyond its end has no inverse: it becomes NaN, with one warning; or a ValueError is raised; or
            the value becomes the nearest end of the fitted data (`x_min` or `x_max`).

        Returns
        -------
        ndarray, or a data frame or series where `Z` is one of pandas or polars
            float32 for float32 input, else float64; same shape as `Z`.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> fit = pk.fit(X)
        >>> bool(np.allclose(fit.inverse_transform(fit.transform(X)), X))
        True
        """
        if out_of_range not in ("nan", "raise", "clip"):
            raise ValueError(f"out_of_range must be 'nan', 'raise' or 'clip', got {out_of_range!r}")
        part = _frames.columns_named(Z, self.column_names)
        matrix = as_matrix(part)
        result, target = self._target(matrix, out)
        what = columnwise.INVERSE_STANDARDIZED if self.standardize else columnwise.INVERSE
        repair = self._repair(out_of_range == "clip", np.finfo(target.dtype).eps)

        def apply(to: NDArray[Any] | None) -> NDArray[np.intp]:
            lost = columns.transform_matrix(
                matrix.values, to, self._families, what, self._results, columns.thread_count(n_threads), repair
            )
            return np.flatnonzero(lost)

        if out is not None:
            if out_of_range == "raise" and np.shares_memory(target, matrix.values):
                self._report_lost(apply(None), out_of_range)  # nothing half-done: look before overwriting
            self._forget(target)
        self._report_lost(apply(target), out_of_range)
        return result if out is not None else _frames.restored(Z, part, result)

    def _repair(self, clip: bool, eps: float) -> columns.Repair:
        """What to do with values that have no inverse: NaN, or the nearest end of the fitted data.

        Where psi is flat, the image of an end of the data may round to the end of the range: that is not lost.
        """
        ends: list[NDArray[np.floating]] = []

        def repair(j: int, z: NDArray[Any], x: FloatArray) -> int:
            if not ends:
                ends.append(self.transform(np.array([self.x_min, self.x_max]), n_threads=1))
            low, high = ends[0][:, j]
            rounding = 16.0 * eps * max(abs(low), abs(high), abs(self._results[j, mle.INTERCEPT]))
            lost = np.flatnonzero(~np.isfinite(x) & ~np.isnan(z))
            at = z[lost].astype(np.float64)
            inside = (low - rounding <= at) & (at <= high + rounding)
            with np.errstate(invalid="ignore", over="ignore"):  # images of outliers may be infinite
                nearest = np.where((at >= high) | (at - low > high - at), self.x_max[j], self.x_min[j])
            x[lost] = np.where(inside | clip, nearest, np.nan)
            return 0 if clip else int(np.count_nonzero(~inside))

        return repair

    def _report_lost(self, lost: NDArray[np.intp], out_of_range: OutOfRange) -> None:
        if lost.size == 0:
            return
        where = column_labels(lost, self.column_names)
        text = f"Some values in {where} are beyond the range of the transform and have no inverse"
        if out_of_range == "raise":
            raise ValueError(f"{text}; use out_of_range='nan' or 'clip', or keep values inside the range")
        warnings.warn(f"{text} and became NaN; out_of_range='clip' or 'raise' handles them otherwise", stacklevel=3)

    def _target(self, matrix: Matrix, out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """The array to return, and it as a matrix."""
        check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
        dtype = np.float32 if matrix.values.dtype == np.float32 else np.float64
        shape = matrix.values.shape[:1] if matrix.was_vector else matrix.values.shape
        if out is None:
            order: Literal["F", "C"] = "F" if matrix.values.flags.f_contiguous else "C"
            out = np.empty(shape, dtype=dtype, order=order)
        else:
            out = as_out(out, shape, dtype, matrix.values)
        return out, out.reshape(matrix.values.shape) if matrix.was_vector else out

    def _refuse(self, matrix: Matrix, counts: NDArray[np.int64]) -> None:
        if counts.any():
            raise _domain_error(matrix, int(np.argmax(counts > 0)), matrix.names or self.column_names)

    def _forget(self, target: NDArray[Any]) -> None:
        """Drop the remembered data when it is about to be overwritten."""
        if self._data is not None and np.shares_memory(target, self._data[0]):
            self._data = None

    # --- outliers ---------------------------------------------------------------------------------------

    def weights(self, X: object) -> FloatArray:
        """Which values the fit would keep, with weight 1, and which it would leave out, with weight 0.

        RewML keeps what is within the cut-off of Huber's location and scale of the transformed data, the trimmed
        likelihood its stretch of order statistics, and the other estimators everything.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            The fitted data, or new ones. Missing values, and all values of a column that could not be fitted, have
            weight 0 and 1.

        Returns
        -------
        ndarray
            0 or 1; same shape as `X`, columns in the order of the fit. On the fitted data, their sums are `n_kept`,
            or more where values tie with the last ones that the trimmed likelihood keeps.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
        >>> int(pk.fit(x, estimator="rewml").weights(x)[-1])
        0
        """
        matrix = as_matrix(_frames.columns_named(X, self.column_names))
        check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
        values = matrix.values
        if self.estimator in _KEEPS:
            low, high = self._results[:, mle.KEPT_LOW], self._results[:, mle.KEPT_HIGH]
            kept = (values >= low) & (values <= high) | (_failed(self.status) & ~np.isnan(values))
        else:
            kept = ~np.isnan(values)
        weights: FloatArray = kept.astype(np.float64)
        return weights.reshape(-1) if matrix.was_vector else weights

    def outliers(self, X: object, *, quantile: float | None = None) -> NDArray[np.bool_]:
        """Values beyond the cut-off on the standardised scale: ``|psi(x) - loc| > Phi^-1(quantile) scale``.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            The fitted data, or new ones. Missing values are no outliers, nor are values of columns not fitted.
        quantile : float, optional
            Default: `quantile` of the fit, 0.995 unless given, which flags 1 % of normal data.

        Returns
        -------
        ndarray of bool
            Same shape as `X`, the columns in the order of the fit.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
        >>> bool(pk.fit(x, estimator="rewml").outliers(x)[-1])
        True
        """
        matrix = as_matrix(_frames.columns_named(X, self.column_names))
        check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
        low, high = self.cutoffs(quantile=quantile)
        with np.errstate(invalid="ignore"):
            beyond = (matrix.values < low) | (matrix.values > high)
        return beyond.reshape(-1) if matrix.was_vector else beyond

    def cutoffs(self, *, quantile: float | None = None) -> Interval:
        """The cut-offs for outliers in the units of the data.

        Parameters
        ----------
        quantile : float, optional
            Default: `quantile` of the fit.

        Returns
        -------
        Interval
            Arrays `low` and `high`: values with ``psi = loc -+ Phi^-1(quantile) scale``; -inf (0 under Box-Cox) and
            inf beyond the range of the transform; NaN for columns that could not be fitted.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=1000)
        >>> low, high = pk.fit(x, "box-cox", "rewml").cutoffs()
        >>> bool(0.0 < low[0] < 0.2 < 5.0 < high[0])
        True
        """
        cutoff = cutoff_of(self.quantile if quantile is None else quantile)
        ends = np.repeat([[-cutoff], [cutoff]], self.n_features, axis=1)
        families, results = self._families, self._results
        columns.transform_matrix(ends, ends, families, columnwise.INVERSE_STANDARDIZED, results, 1)
        low, high = ends
        lowest = np.where(families == mle.BOX_COX, 0.0, -np.inf)
        low, high = np.where(np.isnan(low), lowest, low), np.where(np.isnan(high), np.inf, high)
        failed = _failed(self.status)
        low[failed] = high[failed] = np.nan
        return Interval(low, high)

    # --- likelihood -------------------------------------------------------------------------------------

    def profile(
        self,
        lmbdas: ArrayLike,
        X: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> FloatArray:
        """Negative log-likelihood of every column at given lambdas.

        Parameters
        ----------
        lmbdas : float or (k,) array-like
            Where to evaluate.
        X : array-like, optional
            The fitted data. Not needed right after `fit`, which remembers its data without copying them (so they
            must not be changed in between), until the fit is used to overwrite them. A fit that was pickled or read
            from JSON has none.
        sample_weight : (n,) array-like, optional
            Weights that go with `X`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        (n_features, k) ndarray
            In the units of `nll`; NaN for columns that could not be fitted. For a scalar, (n_features,).

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.arange(1.0, 50.0), family="box-cox")
        >>> bool(np.isclose(fit.profile(fit.lmbda)[0, 0], fit.nll[0]))
        True
        """
        points = _reals("lmbdas", lmbdas)
        self._refuse_robust("the profile likelihood")
        if points.ndim > 1 or not np.isfinite(points).all():
            raise ValueError("lmbdas must be a finite number or a one-dimensional array of them")
        threads, points_1d = columns.thread_count(n_threads), np.atleast_1d(points)
        if X is None and sample_weight is None and self._sums is not None:
            g = self._sums.profile(points_1d, threads)
        else:
            values, weight = self._remembered(X, sample_weight)
            g = np.empty((self.n_features, points_1d.size))
            for code, chosen in self._by_family():
                g[chosen] = pieces.profile_matrix(values[:, chosen], code, points_1d, weight, threads)
        g *= self.n_obs[:, None]
        return g[:, 0] if points.ndim == 0 else g

    def confint(
        self,
        level: float = 0.95,
        X: object = None,
        *,
        sample_weight: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Interval:
        """Likelihood intervals for lambda: where `nll` exceeds its minimum by half a chi-square quantile.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level, between 0 and 1.
        X, sample_weight, n_threads
            As in `profile`.

        Returns
        -------
        Interval
            Arrays `low` and `high`; NaN for columns whose lambda was not found by maximum likelihood (given, at a
            bound, not fitted).

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> low, high = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox").confint()
        >>> bool(low[0] < 0.0 < high[0])
        True
        """
        self._refuse_robust("a likelihood interval")
        if _reals("level", level).ndim > 0 or not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}")
        from scipy.special import chdtri  # costs a third of the time to import powerkern

        threads = columns.thread_count(n_threads)
        with np.errstate(divide="ignore"):
            drop = 0.5 * chdtri(1, 1.0 - level) / self.n_obs
        if X is None and sample_weight is None and self._sums is not None:
            ends = self._sums.interval(self.lmbda, drop, threads)
        else:
            values, weight = self._remembered(X, sample_weight)
            ends = np.empty((self.n_features, 2))
            for code, chosen in self._by_family():
                args = values[:, chosen], code, self.lmbda[chosen], drop[chosen], weight, threads
                ends[chosen] = pieces.interval_matrix(*args)
        ends[drop == 0.0] = self.lmbda[drop == 0.0, None]  # a level that rounds to 0
        ends[self.status != Status.OK] = np.nan
        return Interval(ends[:, 0], ends[:, 1])

    def _by_family(self) -> list[tuple[int, slice | NDArray[np.intp]]]:
        """Each family in use, and its columns."""
        codes = np.unique(self._families).tolist()
        return [(code, slice(None) if len(codes) == 1 else np.flatnonzero(self._families == code)) for code in codes]

    def _refuse_robust(self, what: str) -> None:
        if self.estimator != "mle":
            raise ValueError(f"{what} of lambda: for estimator='mle' only, not for {self.estimator!r}")

    def _remembered(self, X: object, sample_weight: ArrayLike | None) -> tuple[NDArray[Any], FloatArray]:
        if X is not None:
            matrix = as_matrix(_frames.columns_named(X, self.column_names))
            check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
            weight = _weights(sample_weight, matrix.values.shape[0])
            weighted = matrix.values[weight > 0.0] if weight.size else matrix.values
            counts = columns.count_outside(weighted, self._families, self._results, 1)
            if counts.any():
                raise _domain_error(matrix, int(np.argmax(counts > 0)), matrix.names or self.column_names, weight)
            return matrix.values, weight
        if sample_weight is not None:
            raise ValueError("sample_weight goes with X: pass both, or neither to use the fitted data and weights")
        if self._data is None:
            raise ValueError(
                "this fit no longer has its data (it was pickled, read from JSON, or the data were overwritten): pass X"
            )
        return self._data

    # --- JSON -------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Write the fit as JSON text that `from_json` reads back bit for bit.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.arange(10.0))
        >>> bool(pk.PowerFit.from_json(fit.to_json()).lmbda == fit.lmbda)
        True
        """
        table = {name: [_to_json(v) for v in column] for name, column in zip(_FIELDS, self._results.T, strict=True)}
        head = {
            "format": "powerkern.PowerFit",
            "version": JSON_VERSION,
            "family": self.family,
            "estimator": self.estimator,
            "standardize": self.standardize,
            "column_names": self.column_names,
            "vector": self._was_vector,
            "families": self.families if self.family == _BEST else None,
            "quantile": self.quantile,
        }
        return json.dumps({**head, "columns": table}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> PowerFit:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            The text is not JSON, not a fit, or of a later version.
        """
        try:
            record = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"not a fit: the text is not JSON ({error})") from None
        if not isinstance(record, dict) or record.get("format") != "powerkern.PowerFit":
            raise ValueError("not a fit: the JSON text was not written by PowerFit.to_json")
        if record.get("version") not in range(1, JSON_VERSION + 1):
            raise ValueError(
                f"the fit has version {record.get('version')!r}, this powerkern reads versions 1 to {JSON_VERSION}"
            )
        try:
            table = record["columns"]
            if record["version"] == 1:
                p = len(table["lmbda"])
                kept = {"n_kept": table["n_obs"], "kept_low": table["x_min"], "kept_high": table["x_max"]}
                added = {"lmbda0": table["lmbda"], **kept, "centre": [0.0] * p, "divisor": [1.0] * p}
                table = {**added, **table}
            rows = [[_from_json(v) for v in table[name]] for name in _FIELDS]
            results = np.ascontiguousarray(np.array(rows, dtype=np.float64).T)
            families = record.get("families")
            fit = cls(
                record["family"],
                results,
                families=None if families is None else np.array([columns.FAMILIES[name] for name in families]),
                quantile=record.get("quantile", QUANTILE),
                estimator=record["estimator"],
                standardize=record["standardize"],
                column_names=record["column_names"],
                was_vector=record["vector"],
            )
            if not fit._is_sound():
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise ValueError("not a fit: the JSON text is damaged") from None
        return fit

    def _is_sound(self) -> bool:
        """Whether all parts fit together; a fit read from a text may not."""
        names = self.column_names
        used = self._results[:, [mle.LMBDA, mle.SLOPE, mle.INTERCEPT, mle.REF, mle.LOG_FACTOR, mle.CENTRE, mle.DIVISOR]]
        return (
            self.family in _FAMILIES
            and len(self._families) == self.n_features
            and self.estimator in ("mle", *ESTIMATORS)
            and isinstance(self.quantile, float)
            and 0.5 < self.quantile < 1.0
            and isinstance(self.standardize, bool)
            and isinstance(self._was_vector, bool)
            and bool(np.isin(self._results[:, mle.STATUS], list(Status)).all())
            and bool(np.isfinite(used).all() and (self._results[:, mle.DIVISOR] > 0.0).all())
            and (
                names is None
                or (
                    (isinstance(names, list) and all(isinstance(name, str) for name in names))
                    and len(set(names)) == len(names) == self.n_features
                )
            )
        )


#: Names of the result columns, in the order of `powerkern.kernels.mle`.
_FIELDS = columns.ColumnFit._fields


def _failed(status: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns could not be fitted."""
    return np.isin(status, [code for code in Status if code.failed])


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else repr(float(value))


def _from_json(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def fit(
    X: object,
    family: str = "yeo-johnson",
    estimator: str = "mle",
    *,
    standardize: bool = True,
    sample_weight: ArrayLike | None = None,
    lmbda: ArrayLike | None = None,
    ymax: float | None = None,
    column_names: Sequence[str] | None = None,
    non_numeric: _frames.NonNumeric = "raise",
    n_threads: int | None = None,
    progress: bool = False,
    **estimator_options: Any,
) -> PowerFit:
    """Fit a power transform to every column, by maximum likelihood or robustly.

    lambda minimises ``1/2 ln Var(psi) - (lambda - 1) mean(J)`` with

    * Box-Cox (x > 0): ``psi = (x**lambda - 1)/lambda``, ``ln x`` for lambda = 0; ``J = ln x``;
    * Yeo-Johnson: ``psi = ((1 + x)**lambda - 1)/lambda`` for x >= 0, ``-((1 - x)**(2 - lambda) - 1)/(2 - lambda)`` for
      x < 0; ``J = sign(x) log1p|x|``.

    The function is strictly convex, so there is one optimum; it is found as the root of its derivative, to
    about 1e-13 on well-conditioned columns of any scale (see the page on numerics in the documentation).

    Parameters
    ----------
    X : (n, p) or (n,) array-like
        Numbers of any real dtype: arrays of any order and strides, lists, pandas or polars data frames, masked
        arrays. Not changed and not copied. NaN (masked, null) is missing and ignored.
    family : {"yeo-johnson", "box-cox", "best"}, default "yeo-johnson"
        The transform; "best" takes, column by column, the one with the larger likelihood of the data (for robust fits:
        of the values that both keep), Yeo-Johnson where values are not positive.
    estimator : {"mle", "rewml", "rewml-nr", "carroll", "mtl", "ks", "ppcc"}, default "mle"
        Maximum likelihood, or one of these, that resist outliers [3]_:

        * "rewml": reweighted maximum likelihood. lambda0 brings the centre of the data closest to normal quantiles;
          then, twice, lambda is the maximum likelihood estimate from the values within the cut-off.
        * "rewml-nr": the same without rectification of the transform in the search for lambda0.
        * "carroll": maximum likelihood with the scale of Huber's least favourable density in the place of the standard
          deviation [4]_: sum psi(u) u = n P(abs(Z) < 1.5), u = (psi(x) - loc)/scale.
        * "mtl": maximum trimmed likelihood, of the best `h` consecutive order statistics.

        or one of these, by which the transformed data look most normal (see Notes):

        * "ks": least Kolmogorov-Smirnov distance from the normal distribution with their mean and standard deviation.
        * "ppcc": largest correlation with normal quantiles, that is, the straightest QQ plot [5]_.
    standardize : bool, default True
        Let the fit's `transform` return values with mean 0 and standard deviation 1 (1/n).
    sample_weight : (n,) array-like, optional
        Non-negative weights of the rows; integer weights act as if rows were repeated. Estimators other than "mle" take
        whole numbers only, and do repeat the rows.
    lmbda : float or (p,) array-like, optional
        Take these lambdas instead of fitting; NaN entries are fitted.
    ymax : float, optional
        Bound on the raw transformed values: lambda is the best one with ``|psi| <= ymax`` on the data (Marchand et al.
        2022). Default: none when standardising (the output is finite anyway), else the largest float64
        divided by 1e4, as in scipy.
    column_names : sequence of str, optional
        Names used in messages and kept with the fit; default: those of a data frame.
    non_numeric : {"raise", "warn", "ignore"}, default "raise"
        What to do with columns of a data frame that hold no numbers: a TypeError that names the first, or leave them
        out of the fit with one warning, or without. The fit's `transform` passes them untouched.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it, bit for bit.
    progress : bool, default False
        Show a progress bar (needs tqdm) when the work takes more than about a second.
    **estimator_options
        Of the estimators other than "mle"; they take no `lmbda` or `ymax`.

        * quantile (0.995, all): values further from the centre than this normal quantile are outliers.
        * prestandardize ("mad", all that resist outliers): Yeo-Johnson transforms ``(x - median)/MAD``; Box-Cox looks
          at the logs, less their median, over their MAD. "median": Box-Cox looks at ``x/median``. "none": both look
          at x. `lmbda` of Box-Cox is always that of the data.
        * n_reweight (2, RewML): number of reweighting steps.
        * search ("global", RewML): a scan for the global minimum, or "brent", from the full interval at once.
        * convention ("paper", RewML): or "cellwise", which fits as R's cellWise 2.5.3 does.
        * h (0.95, "mtl"): share of the values kept, more than a half.

    Returns
    -------
    PowerFit

    Raises
    ------
    TypeError
        Data that are not real numbers: strings, objects, complex, dates, sparse or lazy arrays.
    ValueError
        Infinite values, non-positive values under Box-Cox (naming column and row), wrong shapes, no data.

    Warns
    -----
    UserWarning
        Once, listing columns that have no maximum (constant, or all missing); they pass through unchanged.

    References
    ----------
    .. [1] G. E. P. Box and D. R. Cox, "An analysis of transformations", JRSS B 26, 1964, 211-252, eq. (1).
    .. [2] I.-K. Yeo and R. A. Johnson, "A new family of power transformations to improve normality or symmetry",
       Biometrika 87, 2000, 954-959, eq. (2.1).
    .. [3] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning, 2021.
    .. [4] R. J. Carroll, "A robust method for testing transformations to achieve approximate normality", JRSS B 42,
       1980, 71-78.
    .. [5] J. J. Filliben, "The probability plot correlation coefficient test for normality", Technometrics 17, 1975,
       111-117.

    Notes
    -----
    The Kolmogorov-Smirnov distance is ``max_i max(i/n - Phi(z_i), Phi(z_i) - (i - 1)/n)`` of the ascending transformed
    values, less their mean, over their standard deviation (with n - 1), see `powerkern.outliers.ks_distance`. The
    correlation is that of the ascending transformed values with normal quantiles at Filliben's median ranks, as in
    `scipy.stats.boxcox_normmax(x, method="pearsonr")`; tied values share their quantiles. Neither depends on how lambda
    was found, and neither resists outliers: a value far out moves the mean and the standard deviation.

    Both can have several minima, and the distance has kinks. They are scanned on both sides of the most likely lambda,
    as far as 4/sd(logs) and on as long as they fall; around the lowest point Brent's method finds lambda to about 1e-8.
    The status says whether the scan saw another minimum less than twice as high. Two distinct values look equally
    normal under any lambda: theirs is the most likely one. `nll` is the negative log-likelihood at the lambda found.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> X = np.random.default_rng(0).lognormal(size=(1000, 3))
    >>> fit = pk.fit(X, family="box-cox")
    >>> np.abs(fit.lmbda).max() < 0.1
    np.True_
    """
    as_choice("family", family, _FAMILIES)
    meant = inspect.signature(fit).parameters if estimator_options else ()
    other = other_estimator(estimator, estimator_options, meant)
    given_only = {"lmbda": lmbda, "ymax": ymax} if other else {}
    if family == _BEST:
        given_only["lmbda"] = lmbda
    for name, value in given_only.items():
        if value is not None:
            choice = f"estimator={estimator!r}" if other else f"family={family!r}"
            raise ValueError(f"{name} cannot be given with {choice}")
    standardize = as_flag("standardize", standardize)
    matrix = as_matrix(_frames.numeric_columns(X, non_numeric), column_names)
    n, p = matrix.values.shape
    weight = _weights(sample_weight, n)
    given = given_lambdas(lmbda, p)
    limit = output_limit(ymax, standardize, matrix.values.dtype)
    threads = columns.thread_count(n_threads)
    counted = matrix._replace(values=_repeated(matrix.values, weight, estimator)) if other else matrix

    def fitted_as(code: int) -> FloatArray:
        if isinstance(other, Robust):
            return columns.robust_matrix(counted.values, code, other.array, threads, progress)
        if other is not None:
            return columns.criterion_matrix(counted.values, code, other.criterion, threads, progress)
        results = pieces.fit_matrix(matrix.values, code, given, weight, threads, progress)
        if limit < math.inf:

            def refit(at: NDArray[np.intp], bounded: FloatArray) -> FloatArray:
                return pieces.fit_matrix(matrix.values[:, at], code, bounded, weight, threads)

            _apply_limit(refit, code, results, matrix.names, limit, given, strict=ymax is not None)
        return results

    families = None
    if family == _BEST:
        results, families = _best_family(fitted_as, counted, isinstance(other, Robust), threads)
    else:
        results = fitted_as(columns.FAMILIES[family])
    outside = np.flatnonzero(results[:, mle.STATUS] < 0)
    if outside.size:
        raise _domain_error(matrix, int(outside[0]), matrix.names, weight)
    _warn_unfitted(results[:, mle.STATUS], matrix.names)
    fitted = PowerFit(
        family,
        results,
        estimator=estimator,
        families=families,
        quantile=QUANTILE if other is None else other.quantile,
        standardize=standardize,
        column_names=matrix.names,
        data=(matrix.values, weight),
        was_vector=matrix.was_vector,
    )
    if (lmbda is not None or other is not None) and not standardize:
        _warn_overflow(fitted)
    return fitted


def transform(X: object, fit: PowerFit, **options: Any) -> Any:
    """Apply a fit: `PowerFit.transform` as a function."""
    return _checked_fit(fit).transform(X, **options)


def inverse_transform(Z: object, fit: PowerFit, **options: Any) -> Any:
    """Undo a fit's transform: `PowerFit.inverse_transform` as a function."""
    return _checked_fit(fit).inverse_transform(Z, **options)


def _checked_fit(fit: object) -> PowerFit:
    if not isinstance(fit, PowerFit):
        raise TypeError(f"the second argument must be a PowerFit, made by fit(X), got {type(fit).__name__}")
    return fit


def _domain_error(matrix: Matrix, j: int, names: list[str] | None, weight: FloatArray = _NO_WEIGHTS) -> ValueError:
    """The error for column j, which has a value (of positive weight) outside the domain."""
    with np.errstate(over="ignore"):
        column = np.asarray(matrix.values[:, j], dtype=np.float64)
    if weight.size:
        column = np.where(weight > 0.0, column, np.nan)
    infinite = np.isinf(column)
    kind, offends = ("infinite", infinite) if infinite.any() else ("not positive", column <= 0.0)
    i = int(np.argmax(offends))
    return domain_error(kind, None if matrix.was_vector else j, i, float(column[i]), names)


# --- arguments ----------------------------------------------------------------------------------------


def _weights(sample_weight: ArrayLike | None, n: int) -> FloatArray:
    """Weights as the kernels want them: contiguous and writable; empty for none."""
    return _NO_WEIGHTS if sample_weight is None else np.require(as_weights(sample_weight, n), requirements=["C", "W"])


def _repeated(values: NDArray[Any], weight: FloatArray, estimator: str) -> NDArray[Any]:
    """Rows as often as their weights say, for estimators that go by order statistics."""
    if not weight.size:
        return values
    broken = weight != np.floor(weight)
    if broken.any():
        i = int(np.argmax(broken))
        raise ValueError(
            f"sample_weight, row {i}: the weight is {weight[i]}; estimator={estimator!r} takes whole numbers, as which "
            "it repeats the rows"
        )
    return np.repeat(values, weight.astype(np.int64), axis=0)


def given_lambdas(lmbda: ArrayLike | None, p: int) -> FloatArray:
    """Lambdas of all columns; NaN where they are to be fitted."""
    """One lambda a column, NaN where it is to be found."""
    if lmbda is None:
        return np.full(p, np.nan)
    given = _reals("lmbda", lmbda)
    if given.ndim > 1 or (given.ndim == 1 and given.size != p):
        raise ValueError(f"lmbda must be one number or one a column ({p}), got shape {given.shape}")
    if np.isinf(given).any():
        raise ValueError("lmbda must be finite (NaN where it is to be fitted)")
    return np.array(np.broadcast_to(given, (p,)))  # a writable copy


def output_limit(ymax: float | None, standardize: bool, dtype: np.dtype[Any] = _FLOAT64) -> float:
    """Bound of raw transformed values: as given, or else, unless they are standardised, a distance from overflow."""
    if ymax is None:
        output = np.float32 if dtype == np.float32 else np.float64
        return math.inf if standardize else float(np.finfo(output).max) / _SAFETY
    limit = _reals("ymax", ymax)
    if limit.ndim > 0 or not limit > 0.0:
        raise ValueError(f"ymax must be positive, got {ymax!r}")
    return float(limit)


def _reals(what: str, value: object) -> FloatArray:
    """An argument as an array of float64."""
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{what} must be a real number or real numbers, got {value!r}")
    return array.astype(np.float64)


# --- the better one of both families ------------------------------------------------------------------


def _best_family(
    fitted_as: Callable[[int], FloatArray], matrix: Matrix, robust: bool, n_threads: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Results of the family with the larger likelihood, and which one it is, for every column."""
    results, other = fitted_as(mle.YEO_JOHNSON), fitted_as(mle.BOX_COX)
    at = np.flatnonzero((other[:, mle.STATUS] >= 0) & ~_failed(other[:, mle.STATUS]))
    if not robust:
        better = other[at, mle.NLL] < results[at, mle.NLL]
    else:
        better = _likelier(matrix.values, at, other[at], results[at], n_threads)
    better |= _failed(results[at, mle.STATUS])
    families = np.full(len(results), mle.YEO_JOHNSON)
    families[at[better]] = mle.BOX_COX
    results[at[better]] = other[at[better]]
    return results, families


def _likelier(
    values: NDArray[Any], at: NDArray[np.intp], box_cox: FloatArray, yeo_johnson: FloatArray, n_threads: int
) -> NDArray[np.bool_]:
    """Whether Box-Cox gives the values that both fits keep a larger likelihood, each with its lambda."""
    low = np.maximum(box_cox[:, mle.KEPT_LOW], yeo_johnson[:, mle.KEPT_LOW])
    high = np.minimum(box_cox[:, mle.KEPT_HIGH], yeo_johnson[:, mle.KEPT_HIGH])
    better = np.zeros(at.size, dtype=np.bool_)
    for start in range(0, at.size, _COMPARED):
        part = slice(start, start + _COMPARED)
        x = values[:, at[part]].astype(np.float64)
        x[~((x >= low[part]) & (x <= high[part]))] = np.nan
        nll = []
        for code, fit in ((mle.BOX_COX, box_cox[part]), (mle.YEO_JOHNSON, yeo_johnson[part])):
            scaled = (x - fit[:, mle.CENTRE]) / fit[:, mle.DIVISOR]
            lmbda = np.ascontiguousarray(fit[:, mle.LMBDA])
            refit = columns.fit_matrix(scaled, code, lmbda, _NO_WEIGHTS, n_threads)
            nll.append(refit[:, mle.NLL] + np.log(fit[:, mle.DIVISOR]))
        better[part] = nll[0] < nll[1]
    return better


# --- the bound on lambda (NUMERICS 6) -----------------------------------------------------------------


def _apply_limit(
    refit: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    family: int,
    results: FloatArray,
    names: list[str] | None,
    ymax: float,
    given: FloatArray,
    *,
    strict: bool,
) -> None:
    """Clip lambda, which is right because the likelihood is convex, and take the moments again where that moved it.

    `refit` fits given columns at given lambdas. Data that no lambda keeps within `ymax` are an error if `strict`; else
    they come as close to it as they can.
    """
    at, bounded = bounded_lambdas(family, results, names, ymax, given, strict=strict)
    if at.size:
        results[at] = at_bound(refit(at, bounded), results[at])


def bounded_lambdas(
    family: int, results: FloatArray, names: list[str] | None, ymax: float, given: FloatArray, *, strict: bool
) -> tuple[NDArray[np.intp], FloatArray]:
    """Columns whose lambda must move for ``|psi| <= ymax`` on their data, and where to."""
    found = np.flatnonzero(np.isnan(given) & (results[:, mle.STATUS] == Status.OK))
    found = found[_near_limit(family, results[found], ymax)]
    low, high = np.empty((2, found.size))
    lambda_bounds.lambda_ranges(family, results[found, mle.X_MIN], results[found, mle.X_MAX], ymax, low, high)
    impossible = low > high
    if strict and impossible.any():
        j = int(found[np.argmax(impossible)])
        raise ValueError(f"ymax={ymax:g} is too small for {column_label(j, names)}: no lambda satisfies it")
    low, high = np.where(impossible, 0.5 * (low + high), [low, high])
    bounded = np.clip(results[found, mle.LMBDA], low, high)
    moved = bounded != results[found, mle.LMBDA]
    return found[moved], bounded[moved]


def at_bound(again: FloatArray, before: FloatArray) -> FloatArray:
    """Rows of a fit at the bound of lambda, where there were others before."""
    again[again[:, mle.STATUS] == Status.FIXED, mle.STATUS] = Status.AT_BOUND
    again[:, mle.N_EVAL] += before[:, mle.N_EVAL]
    return again


def _near_limit(family: int, results: FloatArray, ymax: float) -> NDArray[np.bool_]:
    """Which columns may exceed `ymax`; ``|psi| = b_m(a) <= a e^max(m a, 0)`` tells at once that most do not."""
    lmbda, x_min, x_max = results[:, [mle.LMBDA, mle.X_MIN, mle.X_MAX]].T
    if family == mle.BOX_COX:
        above, below, other = np.log(np.maximum(x_max, 1.0)), -np.log(np.minimum(x_min, 1.0)), -lmbda
    else:
        above, below, other = np.log1p(np.maximum(x_max, 0.0)), np.log1p(np.maximum(-x_min, 0.0)), 2.0 - lmbda
    with np.errstate(over="ignore", invalid="ignore"):
        steepest = np.exp(np.maximum(0.0, np.maximum(lmbda * above, other * below)))
        return np.asarray(~(2.0 * np.maximum(above, below) * steepest <= ymax))


# --- messages -----------------------------------------------------------------------------------------


def _warn_unfitted(status: FloatArray, names: list[str] | None) -> None:
    parts = []
    for code in (
        Status.CONSTANT,
        Status.EMPTY,
        Status.UNREPRESENTABLE,
        Status.NO_SPREAD,
        Status.NOT_CERTIFIED,
        Status.UNRESOLVED,
    ):
        columns_with = np.flatnonzero(status == code)
        if columns_with.size:
            parts.append(f"{column_labels(columns_with, names)}: {code.sentence}")
    if parts:
        warnings.warn("; ".join(parts), stacklevel=3)


def _warn_overflow(fit: PowerFit) -> None:
    """Raw output of a lambda that was given is not bounded: say so where it overflows."""
    ends = fit.transform(np.array([fit.x_min, fit.x_max]), n_threads=1)
    overflows = np.flatnonzero(np.isinf(ends).any(axis=0))
    if overflows.size:
        text = f"{column_labels(overflows, fit.column_names)}: raw values overflow"
        warnings.warn(f"{text}; standardize=True stays finite", stacklevel=3)
