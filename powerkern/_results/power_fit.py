"""The object that `powerkern.fit` returns."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.spec import FitSpec
from powerkern._input import batches
from powerkern._input.arrays import as_choice, column_label, column_labels, position_of
from powerkern._input.choices import Infinite, OutOfRange
from powerkern._input.frames import label_like
from powerkern._input.infinite import as_infinite
from powerkern._input.messages import suggest_in_class
from powerkern._input.reading import read_fitted, wrap_like_input
from powerkern._results import records
from powerkern._results.back_transform import (
    align_with_fit,
    inverse_means,
    invert,
    normal_quantiles,
    standardize_normals,
)
from powerkern._results.column_labels import ColumnLabels
from powerkern._results.column_table import ColumnTable
from powerkern._results.column_warnings import warn_about_columns
from powerkern._results.fit_censored import FitOfCensored
from powerkern._results.fitted_data import FittedData
from powerkern._results.image_repair import ImageRepair, error_without_image
from powerkern._results.inversion import (
    Inversion,
    warn_about_lost_digits,
    warn_about_values_without_inverse,
)
from powerkern._results.likelihood import KeptData
from powerkern._results.transforming import allocate_output, error_without_inverse
from powerkern.kernels.transforms.family import forward_direction, inverse_direction

__all__ = ["OutOfRange", "PowerFit", "as_power_fit", "build_power_fit"]


@suggest_in_class
class PowerFit(FitOfCensored):
    """Power transforms fitted to the columns of a matrix.

    `powerkern.fit` returns it, `save` writes it to a file, and `powerkern.load` reads it back. All arrays have one
    entry per column. A fit to a vector has arrays of length one, so use ``fit.lmbda[0]``. `transform` and similar
    methods return arrays of the same shape as their argument.

    ``fit["age"]`` and ``fit[0]`` are fits of one column, ``fit[["age", "income"]]`` and ``fit[:2]`` fits of several.
    ``len(fit)`` is the number of columns. A loop over the fit yields the names of the columns, or their positions if
    they have no names.

    Attributes
    ----------
    family : str
        "box-cox", "yeo-johnson" or "best".
    families : list of str
        The transform of each column.
    estimator : ML, CentralML, RewML, RewMLNR, Carroll, MTL or PPCC
        The estimator of lambda, with its options.
    cutoff : float
        Quantile of the normal distribution beyond which values are outliers: `cutoff` of the estimator.
    standardize : bool
        Whether `transform` standardises to mean 0 and standard deviation 1.
    column_names : list or None
        Labels of the fitted columns, of any type, as in ``df[fit.column_names]``; None if the data had no labels.
    n_features : int
        Number of columns.
    lmbda : ndarray
        The transformation parameter. It is 1 for a column that could not be fitted, which is passed through unchanged.
    lambdas : Series or ndarray
        `lmbda` as a pandas series indexed by column label, if columns have labels and pandas is installed; otherwise
        the array.
    loc, scale, log_factor : ndarray
        Mean ``loc * exp(log_factor)`` and standard deviation ``scale * exp(log_factor)`` (with 1/n) of the raw
        transformed values. For robust fits: the mean of the values kept, and their standard deviation divided by the
        standard deviation of a standard normal variable truncated at the same cut-off, so that clean data get standard
        deviation 1. (With ``convention="cellwise"`` the standard deviation, with 1/(n - 1), is not divided.)
        `log_factor` is 0 unless `loc` or `scale` would overflow. Standardised output is not computed from these
        numbers: see Notes.
    nll : ndarray
        Negative log-likelihood ``n (1/2 ln Var(psi) - (lmbda - 1) mean(J))``, which is the negative of
        `scipy.stats.boxcox_llf`. psi and J are as in `powerkern.fit`. For robust fits `nll` refers to the values kept.
    information : ndarray
        Second derivative of `nll` in lambda: ``1/sqrt(information)`` is the standard error of `lmbda` in maximum
        likelihood fits. With ``origin="fit"`` it is the derivative of `nll` maximised over origin and unit. For robust
        fits see `confint`.
    n_obs : ndarray
        Number of values that are not missing; with weights, the sum of their weights.
    n_censored : ndarray
        Number of censored cells, included in `n_obs`; with weights, their total weight.
    n_iter : ndarray of int
        Number of evaluations of the likelihood or its derivatives, including evaluations on a sample of the rows.
    status : ndarray of int
        A `powerkern.Status` for each column.
    status_text : list of str
        The status of each column in words.
    route : list of str
        The route by which lambda was computed: from sums over many short columns in "lockstep", or over a long column
        in "one pass"; from moments about means ("two pass"); from "power sums" of a sketch; from "moments" that sites
        sent; or by a "refit" of the values that a robust estimator kept. "" if there is no optimum.
    x_min, x_max : ndarray
        Smallest and largest value of the fitted data.
    lmbda0 : ndarray
        In robust fits, the lambda from which reweighting started; otherwise `lmbda`.
    objective : ndarray
        The objective of the estimator at `lmbda0`: see `objective_curve`. NaN for columns that could not be fitted.
    n_kept : ndarray
        Number of values used in the final fit, which have weight 1 (see `weights`). Equals `n_obs` for estimators that
        leave no value out ("mle", "carroll", "ppcc").
    lmbda_error : ndarray
        In robust fits from chunks (`powerkern.sketch.fit_chunks`) and in federated fits (`powerkern.federated`), a
        bound on the difference between `lmbda` and the lambda that a fit of all rows in memory would give; inf if no
        bound is known. Otherwise 0.
    center, divisor : ndarray
        The transform is applied to ``(x - center)/divisor``. These are origin and unit with ``origin="fit"``; a median
        and a MAD in robust and prestandardised Yeo-Johnson fits; -shift and 1 in shifted Box-Cox fits; otherwise 0 and
        1.
    shift : ndarray
        In shifted Box-Cox fits, ``x + shift`` is transformed; otherwise 0.

    Notes
    -----
    Standardised values are computed as ``slope * (psi(x) - psi(ref)) e^-s + intercept`` with a reference `ref` inside
    the data. They are finite and accurate for every value in the fitted range, even where psi itself overflows
    (lambda = -361) or all values of psi agree to 15 digits (years, tight clusters).
    """

    # --- transforms ---------------------------------------------------------------------------------------

    def transform(
        self,
        X: object,
        *,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
        out_of_range: OutOfRange = "raise",
        infinite: Infinite | None = None,
    ) -> Any:
        """Transform every column of `X`.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            NaN stays NaN. Columns that could not be fitted are passed through unchanged. In a data frame the fitted
            columns are selected by name, and other columns are passed through.
        out : ndarray, optional
            Array for the result. It may be `X` itself, which is then overwritten only if every value is in the domain.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        out_of_range : {"raise", "nan", "clip"}, default "raise"
            Treatment of values without a transform. "raise": under Box-Cox, values not above -shift raise an error;
            transforms that overflow are infinite. "nan": both kinds of values become NaN. "clip": all values outside
            the range of the fitted data (`x_min`, `x_max`) are first moved to its nearest end. "nan" and "clip" warn
            once, with the number of such values in each column.
        infinite : {"raise", "missing", "keep"}, optional
            Treatment of infinite values. "raise" raises an error. "missing" turns them into NaN, with a warning that
            counts them. "keep" returns them unchanged. The default is the option of the fit.

        Returns
        -------
        ndarray, or the same type as `X`
            `X` may be a data frame or series of any library that narwhals reads, or an array of PyTorch or JAX.
            float32 for float32 input, otherwise float64; same shape as `X`. Arrays keep the memory order of `X`, by
            rows or by columns. Data frames keep their index, names and order of columns, and missing values of
            nullable columns stay null. Tables that are read in batches are transformed batch by batch when the result
            is read. For a polars lazy frame the result is a lazy frame. For a pyarrow data set, scanner, file or
            RecordBatchReader, a DuckDB relation and an Ibis expression it is a `pyarrow.RecordBatchReader`, which can
            be read once.

        Raises
        ------
        TypeError
            `out` was passed for a table that is read in batches.
        ValueError
            `X` has infinite values, values without a transform, or the wrong shape. The message names column and row.

        Warns
        -----
        UserWarning
            Values became NaN or were clipped.

        Notes
        -----
        "clip" moves all values outside the fitted range and not only those without a transform, so that order is
        preserved. Otherwise, 0 in a Box-Cox column would be mapped above positive values that are smaller than the
        fitted ones. Values are not clipped to the end of the domain, because transforms are infinite there if
        lambda <= 0. A column without fitted values has no range; its values become NaN if they have no transform. Raw
        output (``standardize=False``) that overflows even at the ends of the fitted data becomes the largest finite
        number of its type.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).lognormal(size=(1000, 2))
        >>> Z = pk.fit(X, family="box-cox").transform(X)
        >>> bool(np.allclose(Z.mean(axis=0), 0)), bool(np.allclose(Z.std(axis=0), 1))
        (True, True)
        """
        as_choice("out_of_range", out_of_range, get_args(OutOfRange))
        treatment: Infinite = self._spec.infinite if infinite is None else as_infinite(infinite)
        again = functools.partial(self.transform, n_threads=n_threads, out_of_range=out_of_range, infinite=infinite)
        lazily = batches.apply_lazily(X, again, out)
        if lazily is not None:
            return lazily
        matrix = read_fitted(X, self.column_names, self.n_features)
        result, target = allocate_output(matrix, out)
        threads = thread_count(n_threads, matrix.values.size)
        raises = out_of_range == "raise" or treatment == "raise"
        repair = None
        if not (out_of_range == treatment == "raise"):
            repair = ImageRepair(self._table, out_of_range, treatment, target.dtype)
        values = matrix.values
        if repair is not None and out_of_range == "clip":
            values = repair.clip_matrix(values, threads)

        def apply(to: NDArray[Any] | None, completion: ImageRepair | None) -> None:
            direction = forward_direction(self.standardize)
            without_image = np.flatnonzero(self._table.transform(values, to, direction, threads, completion))
            for j in without_image.tolist():
                error = error_without_image(
                    matrix._replace(values=values),
                    j,
                    self._table,
                    j,
                    infinite=treatment,
                    names=self.column_names,
                )
                if error is not None:
                    raise error

        if out is not None:
            if raises and np.shares_memory(target, matrix.values):  # all or nothing: check before overwriting
                apply(None, repair and ImageRepair(self._table, out_of_range, treatment, target.dtype))
            self._forget_data(target)
        apply(target, repair)
        if repair is not None:
            repair.repair_rounded(values.T, target.T)
            repair.warn(lambda j: column_label(j, self.column_names))
        return result if out is not None else wrap_like_input(matrix, result)

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
            Array for the result; may be `Z` itself.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.
        out_of_range : {"nan", "raise", "clip"}, default "nan"
            Treatment of values without an inverse. A power transform maps onto a half line unless lambda = 0 (Box-Cox)
            or 0 <= lambda <= 2 (Yeo-Johnson), and values beyond the end of the half line have no inverse. "nan": they
            become NaN, with one warning. "raise": they raise a ValueError. "clip": all results outside the range of the
            fitted data (`x_min`, `x_max`) become its nearest end, so that order is preserved.

        Returns
        -------
        ndarray, or the same type as `Z`, as for `transform`
            float32 for float32 input, otherwise float64; same shape as `Z`.

        Warns
        -----
        UserWarning
            Values without an inverse became NaN. Also if the transform is so flat that results have fewer than six
            correct digits (three for float32). This warning covers all columns and says where the loss begins.

        Notes
        -----
        Rounding z changes x by ``eps |z|/z'(x)``, which is large where psi is close to the end of its range. Digits are
        relative to ``|x|``, or under Yeo-Johnson to the standard deviation of x at the centre of the column if that is
        larger. The transforms of `x_min` and `x_max` are inverted exactly.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> fit = pk.fit(X)
        >>> bool(np.allclose(fit.inverse_transform(fit.transform(X)), X))
        True
        """
        return self._invert(Z, out=out, n_threads=n_threads, out_of_range=out_of_range)

    def _invert(
        self,
        Z: object,
        *,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
        out_of_range: OutOfRange = "nan",
        warns_of_digits: bool = True,
    ) -> Any:
        """Implement `inverse_transform`, which describes the arguments.

        With ``warns_of_digits=False`` there is no warning about lost digits.
        """
        as_choice("out_of_range", out_of_range, get_args(OutOfRange))
        again = functools.partial(
            self._invert, n_threads=n_threads, out_of_range=out_of_range, warns_of_digits=warns_of_digits
        )
        lazily = batches.apply_lazily(Z, again, out)
        if lazily is not None:
            return lazily
        matrix = read_fitted(Z, self.column_names, self.n_features)
        result, target = allocate_output(matrix, out)
        direction = inverse_direction(self.standardize)
        keeps_infinite = self._spec.infinite == "keep"
        inversion = Inversion(self._table, self.standardize, out_of_range, target.dtype, keeps_infinite=keeps_infinite)
        threads = thread_count(n_threads, matrix.values.size)

        def apply(to: NDArray[Any] | None) -> None:
            lost = np.flatnonzero(self._table.transform(matrix.values, to, direction, threads, inversion))
            if lost.size:
                if out_of_range == "raise":
                    raise error_without_inverse(
                        matrix, int(lost[0]), self._table, self.standardize, self.column_names, target.dtype
                    )
                warn_about_values_without_inverse(self._list_columns(lost))

        if out is not None:
            if out_of_range == "raise" and np.shares_memory(target, matrix.values):
                apply(None)  # all or nothing: check before overwriting
            self._forget_data(target)
        apply(target)
        if warns_of_digits:
            warn_about_lost_digits(
                inversion.find_lost_digits(), lambda j: column_label(j, self.column_names), target.dtype
            )
        return result if out is not None else wrap_like_input(matrix, result)

    def inverse_mean(self, mean: ArrayLike, sd: ArrayLike, *, n_threads: int | None = None) -> Any:
        """Return the mean of a value whose transform is normal: the bias-corrected inverse of a predicted mean.

        The plain inverse ``psi^-1(mean)`` of a mean on the transformed scale is a median on the scale of the data. The
        mean on the scale of the data is the integral of ``psi^-1(mean + sd t) phi(t)`` over t, with the standard normal
        density phi.

        Parameters
        ----------
        mean, sd : float or array-like
            Mean and standard deviation on the scale of `transform`: standardised, or raw with ``standardize=False``.
            They broadcast, and their last axis runs over the columns of the fit. For a fit to a vector, they may have
            any shape. A standard deviation of 0 means a known value.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `mean` or `sd` if one of them is a data frame or series
            `mean` and `sd` broadcast to the shape of the result, with columns in the order of the fit. Columns that
            could not be fitted contain `mean` itself.

        Raises
        ------
        TypeError
            `mean` or `sd` does not consist of real numbers.
        ValueError
            `sd` is negative or infinite, or the shapes do not broadcast or do not match the columns.

        Notes
        -----
        The range of psi has an end unless lambda = 0 (Box-Cox) or 0 <= lambda <= 2 (Yeo-Johnson). Transformed values
        beyond the end have no inverse, so the mean is conditional on the range. For -1 <= lambda < 0 (lower branch of
        Yeo-Johnson: 2 < lambda <= 3) the integral diverges at the end, no matter how little probability is near it. It
        is then cut at the valley between the bulk and the end, where value times density is smallest. If there is no
        valley, because the end is closer than ``2/sqrt(-lambda)`` standard deviations, the mean is infinite.

        The result is accurate to about 1e-12, by double exponential quadrature between the points at which the
        integrand is not analytic. R's ``forecast::InvBoxCox(biasadj=TRUE)`` uses the first two terms of a series in
        `sd`.

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
        was_vector = self._labels.was_vector
        mean, sd = align_with_fit(mean, sd, self.column_names, was_vector)
        z, scale, shape = standardize_normals(self._table, self.standardize, was_vector, mean, sd)
        return label_like(inverse_means(self._table, z, scale, thread_count(n_threads)).reshape(shape), mean, sd)

    def inverse_quantile(
        self, mean: ArrayLike, sd: ArrayLike, quantile: ArrayLike, *, n_threads: int | None = None
    ) -> Any:
        """Return quantiles of a value whose transform is normal: ``psi^-1(mean + sd Phi^-1(quantile))``.

        Parameters
        ----------
        mean, sd : float or array-like
            As in `inverse_mean`.
        quantile : float or array-like
            Probability between 0 and 1; broadcasts with `mean` and `sd`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        ndarray, or the same type as `mean` or `sd` if one of them is a data frame or series
            The arguments broadcast to the shape of the result, with columns in the order of the fit. Where the
            transformed quantile is outside the range of psi, the result is the end of the domain: -shift (Box-Cox,
            lambda > 0), inf (lambda < 0) or -inf (Yeo-Johnson, lambda > 2).

        Raises
        ------
        TypeError, ValueError
            As for `inverse_mean`; also if `quantile` is not between 0 and 1.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=200)
        >>> fit = pk.fit(x, family="box-cox", lmbda=0.0, standardize=False)
        >>> fit.inverse_quantile(1.0, 0.5, [0.025, 0.5, 0.975]).round(3)
        array([1.02 , 2.718, 7.243])
        """
        score, was_vector = normal_quantiles(quantile), self._labels.was_vector
        mean, sd = align_with_fit(mean, sd, self.column_names, was_vector)
        z, scale, shape = standardize_normals(self._table, self.standardize, was_vector, mean, sd, score.shape)
        z = z + scale * np.broadcast_to(score, shape).reshape(z.shape)
        return label_like(invert(self._table, z, thread_count(n_threads)).reshape(shape), mean, sd)

    # --- some of the columns ------------------------------------------------------------------------------

    def __getitem__(self, column: Any) -> PowerFit:
        """Return the fit of the selected columns, including their data.

        `column` is a label, a position, a slice of positions, or a list of labels and positions.
        """
        if isinstance(column, slice):
            return self._choose(range(len(self))[column], alone=False)
        is_list = hasattr(column, "__len__") and not isinstance(column, str | tuple)
        is_label = not is_list and column in (self.column_names or ())  # a tuple: a label of several levels
        alone = isinstance(column, str | int | np.integer) or is_label
        wanted: Any = [column] if alone else column
        try:
            return self._choose([position_of(one, self.column_names, len(self)) for one in wanted], alone)
        except ValueError as error:
            raise KeyError(str(error)) from None

    def _choose(self, positions: Sequence[int], alone: bool) -> PowerFit:
        """Return the fit of the columns at these positions, including their data; if `alone`, as a fit to a vector."""
        if not positions:
            raise KeyError("no column is selected; select at least one")
        chosen = np.array(positions)
        part = self._take(chosen)
        data = self._data.part(chosen) if isinstance(self._data, FittedData) else None
        return PowerFit(part._spec, replace(part._labels, was_vector=alone), part._table, data)

    # --- JSON ---------------------------------------------------------------------------------------------

    def _to_record(self) -> dict[str, Any]:
        return records.make_record(self._spec, self._labels, self._table)

    @classmethod
    def _from_record(cls, record: Any) -> PowerFit:
        return cls(*records.read_record(record))


def build_power_fit(spec: FitSpec, labels: ColumnLabels, table: ColumnTable, data: KeptData | None = None) -> PowerFit:
    """Build a fit, and issue the warnings about its columns.

    Parameters
    ----------
    spec : FitSpec
        The options of the fit.
    labels : ColumnLabels
        Names of the columns.
    table : ColumnTable
        The results of the columns.
    data : FittedData, PowerSums or MixedSums, optional
        The fitted data or their power sums, if the fit keeps them.
    """
    warn_about_columns(table, lambda positions: column_labels(positions, labels.names), spec.may_overflow)
    return PowerFit(spec, labels, table, data)


def as_power_fit(fit: object, name: str = "fit") -> PowerFit:
    """Return `fit`; raise a TypeError if it is not a `PowerFit`. `name` is the name of the argument in the message."""
    if not isinstance(fit, PowerFit):
        raise TypeError(f"{name} must be a PowerFit, made by fit(X), got {type(fit).__name__}")
    return fit
