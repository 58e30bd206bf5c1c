"""The fitted object: what `powerkern.fit` returns, and its methods."""

from __future__ import annotations

import functools
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.apply import Repair, count_outside, transform_matrix
from powerkern._engine.threads import thread_count
from powerkern._estimators.options import checked_cutoff, normal_quantile
from powerkern._estimators.rewml import RewML, RewMLNR
from powerkern._estimators.robust import small_sample_cutoff
from powerkern._input import batches as _batches
from powerkern._input import frames as _frames
from powerkern._input.arguments import domain_error_in
from powerkern._input.arrays import Matrix, as_choice, as_matrix, as_out, check_n_features, column_labels, output_type
from powerkern._input.messages import warn
from powerkern._results import json, records
from powerkern._results.back import mean_of, quantile_of
from powerkern._results.likelihood import Inference
from powerkern._results.likelihood_tests import Interval
from powerkern._status import Status, is_failed
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.kernels.results import INTERCEPT, KEPT_HIGH, KEPT_LOW, STATUS
from powerkern.kernels.transforms import gather
from powerkern.kernels.transforms.family import FAMILIES, lowest

OutOfRange = Literal["nan", "raise", "clip"]

#: The better of the two families, column by column.
BEST = records.BEST
#: Families that a fit may have.
FIT_FAMILIES = (*FAMILIES, BEST)


class PowerFit(Inference):
    """Power transforms fitted to the columns of a matrix.

    Made by `fit`; `from_json` reads one back. All arrays have one entry per column; those of a fit to a vector have
    one, ``fit.lmbda[0]``. What `transform` and its like return has the shape of what they are given.

    Attributes
    ----------
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each column.
    estimator : ML, RewML, RewMLNR, Carroll, MTL, KS or PPCC
        How lambda was found.
    cutoff : float
        Quantile of the normal distribution beyond which values are outliers: `cutoff` of the estimator.
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
        transformed values. For robust fits these are the mean of the values kept, and their standard deviation over
        that of the same part of a normal distribution, so that clean data come out with standard deviation 1 (with
        ``convention="cellwise"`` theirs with 1/(n - 1)). `log_factor` is 0 unless they would overflow.
        Standardised output does not pass through them: see Notes.
    nll : ndarray
        Negative log-likelihood ``n (1/2 ln Var(psi) - (lmbda - 1) mean(J))``, minus `scipy.stats.boxcox_llf`; for
        robust fits that of the values kept.
    information : ndarray
        Second derivative of `nll` in lambda: ``1/sqrt(information)`` is the standard error of `lmbda` in maximum
        likelihood fits; for robust fits see `confint`.
    n_obs : ndarray
        Values that are not missing; with weights, the sum of their weights.
    n_iter : ndarray of int
        Evaluations of the likelihood or its derivatives, including those on a sample.
    status : ndarray of int
        A `powerkern.Status` each; `status_text` has them in words.
    route : list of str
        How the optimum was found: from sums over short columns, many in "lockstep", or of "one pass" over a long one,
        from moments about means ("two pass"), from "power sums" of a sketch, from "moments" that sites sent, or by a
        "refit" of the values that a robust estimator kept; "" where there is none.
    x_min, x_max : ndarray
        Smallest and largest value of the fitted data.
    lmbda0 : ndarray
        In robust fits, the lambda from which reweighting started; else `lmbda`.
    objective : ndarray
        What the estimator minimises, at `lmbda0`: see `objective_curve`. NaN for columns that could not be fitted.
    n_kept : ndarray
        In robust fits, the number of values that the last fit was to, those of weight 1 (see `weights`): `lmbda` is
        their likeliest. Where values are not left out ("carroll", "ks", "ppcc"), and else, `n_obs`.
    lmbda_error : ndarray
        In robust fits from chunks (`powerkern.sketch.fit_chunks`) and fits of rounded sums (`powerkern.federated`), a
        bound of the difference between `lmbda` and the lambda of the rows in memory, inf where there is none; else 0.
    center, divisor : ndarray
        What is transformed is ``(x - center)/divisor``: a median and a MAD in robust Yeo-Johnson fits, -shift and 1 in
        shifted Box-Cox fits; else 0 and 1.
    shift : ndarray
        In shifted Box-Cox fits ``x + shift`` is transformed; else 0.

    Notes
    -----
    Standardised values are computed as ``slope * (psi(x) - psi(ref)) e^-s + intercept`` with a reference inside the
    data, so they are finite and accurate for every value in the fitted range even where psi itself overflows
    (lambda = -361) or all its values agree to 15 digits (years, tight clusters).
    """

    def __repr__(self) -> str:
        fitted = np.count_nonzero(~is_failed(self.status))
        fitted_text = f"{fitted} of {self.n_features} columns fitted"
        return f"PowerFit(family={self.family!r}, estimator={self.estimator!r}, {fitted_text})"

    def part(self, columns: slice | IntArray) -> PowerFit:
        """The fit of some of the columns, without data."""
        names = None if self.column_names is None else np.array(self.column_names, dtype=object)[columns].tolist()
        part = self._with(self._results[columns].copy(), self._families[columns].copy(), names)
        part._unit_weights = None if self._unit_weights is None else self._unit_weights[columns].copy()
        part.lmbda_error = self.lmbda_error[columns].copy()
        return part

    def _with(self, results: FloatArray, families: IntArray, names: list[str] | None) -> PowerFit:
        """A fit of the same kind with other results, without data."""
        return PowerFit(
            self.family,
            results,
            estimator=self.estimator,
            families=families,
            standardize=self.standardize,
            column_names=names,
        )

    def rounded_fit(
        self,
        level: float = 0.95,
        X: object = None,
        *,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> PowerFit:
        """The fit with convenient powers: `rounded` in place of `lmbda`, and means and scales that go with it.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals in which powers are sought.
        X, sample_weight, n_threads
            As in `profile`: without data, fits of sketches answer from their power sums.

        Returns
        -------
        PowerFit
            Columns whose lambda has changed have the status `Status.ROUNDED`, the others what they had. `ymax` is not
            applied again. Rounding it once more changes nothing.

        Raises
        ------
        ValueError
            Robust fits, which have no such intervals; a fit without its data.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, family="box-cox").rounded_fit()
        >>> fit.lmbda, fit.status_text
        (array([0.]), ['lambda rounded to a convenient power inside the interval of its optimum'])
        >>> bool(np.allclose(fit.transform(x), (np.log(x) - np.log(x).mean()) / np.log(x).std()))
        True
        """
        rounded = self.rounded(level)
        results = self._results_at(rounded, X, sample_weight, thread_count(n_threads))
        results[results[:, STATUS] == Status.FIXED, STATUS] = Status.ROUNDED
        same = rounded == self.lmbda
        results[same] = self._results[same]
        fit = self._with(results, self._families, self.column_names)
        fit._was_vector, fit._data, fit._sums = self._was_vector, self._data, self._sums
        if not self.standardize:
            warn_overflow(fit)
        return fit

    # --- applying ---------------------------------------------------------------------------------------

    def transform(self, X: object, *, out: NDArray[Any] | None = None, n_threads: int | None = None) -> Any:
        """Transform every column of `X`.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            NaN stays NaN. Columns that could not be fitted are passed through unchanged. In a data
            frame the fitted columns are found by name, and others are passed through.
        out : ndarray, optional
            Where to write; may be `X` itself, which is then overwritten only if every value is in the domain.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or what `X` is: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
            float32 for float32 input, else float64; same shape as `X`, and the order of its memory, by rows or by
            columns, where it is an array. Data frames keep their index, names and order
            of columns; of nullable columns, missing values are null. Tables that are read in batches are transformed
            in batches, when they are read: a lazy frame of polars comes back as one, a data set, scanner, file or
            RecordBatchReader of pyarrow and a relation of DuckDB as a `pyarrow.RecordBatchReader`, which can be read
            once.

        Raises
        ------
        TypeError
            `out` for a table that is read in batches.
        ValueError
            Infinite values, values not above -shift under Box-Cox (naming column and row), or a wrong shape.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).lognormal(size=(1000, 2))
        >>> Z = pk.fit(X, family="box-cox").transform(X)
        >>> bool(np.allclose(Z.mean(axis=0), 0)), bool(np.allclose(Z.std(axis=0), 1))
        (True, True)
        """
        lazily = _batches.applied(X, functools.partial(self.transform, n_threads=n_threads), out)
        if lazily is not None:
            return lazily
        part = _frames.columns_named(X, self.column_names)
        matrix = as_matrix(part)
        direction = gather.FORWARD_STANDARDIZED if self.standardize else gather.FORWARD
        result, target = self._target(matrix, out)
        n_threads = thread_count(n_threads)
        if out is not None:
            if np.shares_memory(target, matrix.values):  # all or nothing: check before overwriting
                counts = count_outside(matrix.values, self._families, self._results, n_threads)
                self._refuse(matrix, counts)
            self._forget(target)
        counts = self._transform(matrix.values, target, direction, n_threads)
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
        ndarray, or what `Z` is: a data frame or series of pandas or polars, a table, record batch or array of pyarrow
            float32 for float32 input, else float64; same shape as `Z`.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> fit = pk.fit(X)
        >>> bool(np.allclose(fit.inverse_transform(fit.transform(X)), X))
        True
        """
        as_choice("out_of_range", out_of_range, ("nan", "raise", "clip"))
        again = functools.partial(self.inverse_transform, n_threads=n_threads, out_of_range=out_of_range)
        lazily = _batches.applied(Z, again, out)
        if lazily is not None:
            return lazily
        part = _frames.columns_named(Z, self.column_names)
        matrix = as_matrix(part)
        result, target = self._target(matrix, out)
        direction = gather.INVERSE_STANDARDIZED if self.standardize else gather.INVERSE
        repair = self._repair(out_of_range == "clip", np.finfo(target.dtype).eps)

        def apply(to: NDArray[Any] | None) -> NDArray[np.intp]:
            return np.flatnonzero(self._transform(matrix.values, to, direction, thread_count(n_threads), repair))

        if out is not None:
            if out_of_range == "raise" and np.shares_memory(target, matrix.values):
                self._report_lost(apply(None), out_of_range)  # all or nothing: check before overwriting
            self._forget(target)
        self._report_lost(apply(target), out_of_range)
        return result if out is not None else _frames.restored(Z, part, result)

    def inverse_mean(self, mean: ArrayLike, sd: ArrayLike, *, n_threads: int | None = None) -> FloatArray:
        """Mean of values whose transforms are normal: the bias-corrected inverse of a predicted mean.

        The plain inverse of a mean on the transformed scale is a median, ``psi^-1(mean)``. This is the integral of
        ``psi^-1(mean + sd t) phi(t)``, phi the standard normal density.

        Parameters
        ----------
        mean, sd : float or array-like
            Mean and standard deviation (0: nothing is spread) on the scale of `transform`: standardised, or raw where
            ``standardize=False``. They broadcast; the last axis stands for the columns of the fit, unless that is of
            one vector: then arrays have any shape.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray
            Of the shape that `mean` and `sd` broadcast to; `mean` itself for columns that could not be fitted.

        Raises
        ------
        TypeError
            `mean` or `sd` are no real numbers.
        ValueError
            `sd` is negative or infinite, or the shapes do not go with each other or with the columns.

        Notes
        -----
        The range of psi has an end unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson). Probability beyond it
        has no inverse: means are those of the part inside, given that values are there. For -1 <= lambda < 0 (the lower
        branch of Yeo-Johnson: 2 < lambda <= 3) that integral diverges at the end, however little probability is near
        it. It is then cut at the valley between the bulk and the end, where value times density is least; where there
        is no valley (the end is closer than ``2/sqrt(-lambda)`` standard deviations) the mean is infinite.

        Accurate to about 1e-12 by double exponential quadrature between the points where the integrand is not
        analytic. R's ``forecast::InvBoxCox(biasadj=TRUE)`` has the first two terms of a series in `sd`.

        See Also
        --------
        PowerFit.inverse_quantile : medians and other quantiles.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, family="box-cox", lmbda=0.0, standardize=False)
        >>> fit.inverse_mean([0.0, 1.0], 0.5) / np.exp([0.125, 1.125])
        array([1., 1.])
        """
        return mean_of(self, mean, sd, thread_count(n_threads))

    def inverse_quantile(
        self, mean: ArrayLike, sd: ArrayLike, quantile: ArrayLike, *, n_threads: int | None = None
    ) -> FloatArray:
        """Quantiles of values whose transforms are normal: ``psi^-1(mean + sd Phi^-1(quantile))``.

        Parameters
        ----------
        mean, sd : float or array-like
            As in `inverse_mean`.
        quantile : float or array-like
            Between 0 and 1; broadcasts with `mean` and `sd`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray
            Of the shape that the arguments broadcast to. A quantile beyond the range of psi is the end of the domain:
            -shift (Box-Cox, lambda > 0), inf (lambda < 0), -inf (Yeo-Johnson, lambda > 2).

        Raises
        ------
        TypeError, ValueError
            As `inverse_mean`; or `quantile` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, family="box-cox", lmbda=0.0, standardize=False)
        >>> fit.inverse_quantile(1.0, 0.5, [0.025, 0.5, 0.975]).round(3)
        array([1.02 , 2.718, 7.243])
        """
        return quantile_of(self, mean, sd, quantile, thread_count(n_threads))

    def _transform(
        self,
        values: NDArray[Any],
        out: NDArray[Any] | None,
        direction: int,
        n_threads: int,
        repair: Repair | None = None,
    ) -> IntArray:
        return transform_matrix(
            values, out, self._families, direction, self._results, n_threads, repair, self._fields()
        )

    def _repair(self, clip: bool, eps: float) -> Repair:
        """What to do with values that have no inverse: NaN, or the nearest end of the fitted data.

        Where psi is flat, the image of an end of the data may round to the end of the range: that is not lost.
        """
        ends: list[NDArray[np.floating]] = []

        def repair(j: int, z: NDArray[Any], x: FloatArray) -> int:
            if not ends:
                ends.append(self.transform(np.array([self.x_min, self.x_max]), n_threads=1))
            low, high = ends[0][:, j]
            rounding = 16.0 * eps * max(abs(low), abs(high), abs(self._results[j, INTERCEPT]))
            lost = np.flatnonzero(~np.isfinite(x) & ~np.isnan(z))
            at = z[lost].astype(np.float64)
            with np.errstate(invalid="ignore", over="ignore"):  # images of outliers, or of the ends, may be infinite
                inside = (low - rounding <= at) & (at <= high + rounding)
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
        warn(f"{text} and became NaN; out_of_range='clip' or 'raise' handles them otherwise")

    def _target(self, matrix: Matrix, out: NDArray[Any] | None) -> tuple[NDArray[Any], NDArray[Any]]:
        """The array to return, and it as a matrix."""
        check_n_features(matrix.values, self.n_features, matrix.names, self.column_names)
        dtype = output_type(matrix.values.dtype)
        shape = matrix.values.shape[:1] if matrix.was_vector else matrix.values.shape
        if out is None:
            between, within = map(abs, matrix.values.strides)
            by_column = matrix.values.flags.f_contiguous or between < within
            out = np.empty(shape, dtype=dtype, order="F" if by_column else "C")
        else:
            out = as_out(out, shape, dtype, matrix.values)
        return out, out.reshape(matrix.values.shape) if matrix.was_vector else out

    def _refuse(self, matrix: Matrix, counts: IntArray) -> None:
        if counts.any():
            j = int(np.argmax(counts > 0))
            raise domain_error_in(matrix, j, matrix.names or self.column_names, shift=self.shift[j])

    def _forget(self, target: NDArray[Any]) -> None:
        """Drop the remembered data when it is about to be overwritten."""
        if self._data is not None and np.shares_memory(target, self._data[0]):
            self._data = None

    # --- outliers ---------------------------------------------------------------------------------------

    def weights(self, X: object) -> FloatArray:
        """Which values the fit would keep, with weight 1, and which it would leave out, with weight 0.

        RewML keeps what was within the cut-off of Huber's location and scale of the transformed data when it last
        fitted lambda (`outliers` are those beyond the cut-off at the lambda found), the trimmed likelihood its window
        of order statistics, and the other estimators everything.

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
        if not self.estimator.keeps_all:
            low, high = self._results[:, KEPT_LOW], self._results[:, KEPT_HIGH]
            kept = (values >= low) & (values <= high) | (is_failed(self.status) & ~np.isnan(values))
        else:
            kept = ~np.isnan(values)
        weights: FloatArray = kept.astype(np.float64)
        return weights.reshape(-1) if matrix.was_vector else weights

    def outliers(self, X: object, *, cutoff: float | None = None) -> BoolArray:
        """Values beyond the cut-off on the standardised scale: ``|psi(x) - loc| > cutoff scale``.

        The cut-off is ``Phi^-1(cutoff)``; of reweighted maximum likelihood by the paper's convention, the quantile of
        Student's t with n_kept/4 degrees of freedom, nearly the same in long columns. About 1 % of clean values are
        then beyond the default one in short columns, too.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            The fitted data, or new ones. Missing values are no outliers, nor are values of columns not fitted.
        cutoff : float, optional
            Quantile of the normal distribution. Default: `cutoff` of the fit, 0.995 unless given, which
            flags about 1 % of normal data.

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
        low, high = self.cutoffs(cutoff=cutoff)
        with np.errstate(invalid="ignore"):
            beyond = (matrix.values < low) | (matrix.values > high)
        return beyond.reshape(-1) if matrix.was_vector else beyond

    def cutoffs(self, *, cutoff: float | None = None) -> Interval:
        """The cut-offs for outliers in the units of the data.

        Parameters
        ----------
        cutoff : float, optional
            Quantile of the normal distribution; default: `cutoff` of the fit.

        Returns
        -------
        Interval
            Arrays `low` and `high`: values with ``psi = loc -+ cutoff scale`` (see `outliers`); -inf (-shift under
            Box-Cox) and inf beyond the range of the transform; NaN for columns that could not be fitted.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=1000)
        >>> low, high = pk.fit(x, "box-cox", "rewml").cutoffs()
        >>> bool(0.0 < low[0] < 0.2 < 5.0 < high[0])
        True
        """
        reach = self.standardized_cutoff(cutoff=cutoff)
        ends = np.array([-reach, reach])
        families, results = self._families, self._results
        transform_matrix(ends, ends, families, gather.INVERSE_STANDARDIZED, results, 1)
        low, high = ends
        ends_of_domain = np.array([lowest(code) for code in FAMILIES.values()])
        low = np.where(np.isnan(low), self.center + ends_of_domain[families], low)
        high = np.where(np.isnan(high), np.inf, high)
        failed = is_failed(self.status)
        low[failed] = high[failed] = np.nan
        return Interval(low, high)

    def standardized_cutoff(self, *, cutoff: float | None = None) -> FloatArray:
        """The cut-off for outliers of each column on the standardised scale, see `outliers`.

        Weights count values. Where the mean of the weights, each weighted by itself, is less than one, they are
        relative, and that mean counts as one value: equal weights that sum to one change nothing.

        Parameters
        ----------
        cutoff : float, optional
            Quantile of the normal distribution; default: `cutoff` of the fit.

        Returns
        -------
        (n_features,) ndarray

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).lognormal(size=(1000, 1))
        >>> [pk.fit(X[:n], estimator="rewml").standardized_cutoff().round(1).tolist() for n in (10, 50, 1000)]
        [[7.2], [3.0], [2.6]]
        """
        cutoff = self.cutoff if cutoff is None else checked_cutoff("cutoff", cutoff)
        normal = np.full(self.n_features, normal_quantile(cutoff))
        if not isinstance(self.estimator, RewML | RewMLNR) or self.estimator.convention == "cellwise":
            return normal
        n_kept = self.n_kept if self._unit_weights is None else self.n_kept / self._unit_weights
        return np.where(is_failed(self.status), normal, small_sample_cutoff(cutoff, n_kept))

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
        return json.write("PowerFit", self.to_record())

    @classmethod
    def from_json(cls, text: str, *, check: bool = True) -> PowerFit:
        """Read the text that `to_json` wrote.

        Parameters
        ----------
        text : str
            The text, in any layout.
        check : bool, default True
            Refuse a text whose figures were changed since it was written, by the digest in it. False reads a text that
            was edited on purpose.

        Raises
        ------
        ValueError
            The text is not JSON, not a fit, of another version, was changed, or holds figures that no fit can produce.
        """
        return cls.from_record(json.read("PowerFit", text, check))

    def to_record(self) -> dict[str, Any]:
        """What JSON keeps."""
        return records.record_of(
            records.Record(
                self.family,
                self._results,
                self.estimator,
                self._families,
                self.standardize,
                self.column_names,
                self._was_vector,
                self._unit_weights,
                self.lmbda_error,
            )
        )

    @classmethod
    def from_record(cls, record: Any) -> PowerFit:
        """The fit of which JSON kept this."""
        return cls(**records.fit_of(record)._asdict())


def as_power_fit(fit: object, name: str = "fit") -> PowerFit:
    """An argument that must be a fit, once checked."""
    if not isinstance(fit, PowerFit):
        raise TypeError(f"{name} must be a PowerFit, made by fit(X), got {type(fit).__name__}")
    return fit


#: What a warning tells, in this order.
_TOLD = (
    Status.CONSTANT,
    Status.EMPTY,
    Status.UNREPRESENTABLE,
    Status.NO_SPREAD,
    Status.TOO_FEW,
    Status.EXACT,
    Status.AT_END,
    Status.NOT_CERTIFIED,
    Status.UNRESOLVED,
    Status.FEW_VALUES,
    Status.TAIL_KEPT,
    Status.NOT_SETTLED,
)


def warn_unfitted(status: FloatArray, names: list[str] | None) -> None:
    """One warning that lists the columns without a reliable fit, attributed to the caller's caller."""
    suspects = np.flatnonzero(status)  # not OK: mostly few, where a column of all results is slow to read
    if not suspects.size:
        return
    parts, doubts = [], status[suspects]
    for code in _TOLD:
        columns_with = suspects[doubts == code]
        if columns_with.size:
            parts.append(f"{column_labels(columns_with, names)}: {code.sentence}")
    if parts:
        warn("; ".join(parts))


def warn_overflow(fit: PowerFit) -> None:
    """Raw output under a given lambda is not bounded: warn where it overflows."""
    ends = fit.transform(np.array([fit.x_min, fit.x_max]), n_threads=1)
    overflows = np.flatnonzero(np.isinf(ends).any(axis=0))
    if overflows.size:
        text = f"{column_labels(overflows, fit.column_names)}: raw values overflow"
        warn(f"{text}; standardize=True stays finite")
