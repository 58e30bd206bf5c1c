"""Methods of `PowerFit` that describe a fit: normality, summary, weights, outliers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.options import checked_cutoff
from powerkern._input.arrays import as_matrix, column_label
from powerkern._input.messages import suggest_in_class
from powerkern._input.reading import labelled, read_fitted
from powerkern._results.central_normality import CentralNormality, measure_central_normality
from powerkern._results.column_warnings import FAR_FROM_ZERO, find_far_from_zero
from powerkern._results.display import SHOWN, format_table, html_page, label_cells
from powerkern._results.fit_inference import FitInference
from powerkern._results.fitted_data import FittedData
from powerkern._results.inference import Interval, Method, refuse_number, wald_interval
from powerkern._results.inversion import note_on_inverse
from powerkern._results.normality import Normality, measure_normality
from powerkern._results.outlier_flags import cutoffs_in_data_units, find_kept, standardized_cutoffs
from powerkern._results.summary import (
    Summary,
    likelihood_entries,
    normality_entries,
    note_on_bootstrap,
    sampled_fraction,
)
from powerkern._status import is_failed
from powerkern._typing import FloatArray


@suggest_in_class
class FitDescription(FitInference):
    """Base class of `PowerFit` with its descriptive methods: normality, summary, weights, outliers."""

    def __repr__(self) -> str:
        """Return a headline about the fit, and a table of lambda and status of the first columns."""
        return "\n".join([self._headline(), format_table(self._first_columns()), *self._note_on_others()])

    def _repr_html_(self) -> str:
        """Return the representation as HTML, for notebooks."""
        return html_page(self._headline(), [self._first_columns().items()], self._note_on_others())

    def _headline(self) -> str:
        """Return a line with the family, the estimator and the number of columns that were fitted."""
        fitted = f"{np.count_nonzero(~is_failed(self.status))} of {self.n_features} columns fitted"
        return f"PowerFit(family={self.family!r}, estimator={self.estimator!r}, {fitted})"

    def _first_columns(self) -> dict[str, NDArray[Any]]:
        """Return name, lambda and status of the first columns; also their families under ``family="best"``."""
        first = self._table if len(self) <= SHOWN else self._table.take(slice(SHOWN))
        names = label_cells(self.column_names[:SHOWN] if self.column_names else range(len(first)))
        families = {"family": np.array(first.families)} if self.family != self.families[0] else {}
        return {"column": names, **families, "lambda": first.lmbda, "status": np.array(first.status_text)}

    def _note_on_others(self) -> list[str]:
        """Return a line with the number of columns that are not shown, or an empty list if all columns are shown."""
        return [f"... and {len(self) - SHOWN} more columns: see lambdas, summary()"] if len(self) > SHOWN else []

    def normality(
        self, X: object = None, *, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
    ) -> Normality:
        """Measure how close to normal each column is before and after its transform.

        Parameters
        ----------
        X : (n, n_features) array-like, optional
            The fitted data, or new data; not needed right after `fit`, see `profile`. NaN is missing.
        sample_weight : (n,) array-like, or str, optional
            Weights of the rows of `X`, or the name of the column of `X` that holds them. They count rows, as in
            `powerkern.fit`.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Normality
            A named tuple of `before` and `after`. Each is a named tuple of arrays with one entry per column; columns
            with fewer than two distinct values have NaN. ``skewness`` is ``m3/m2**1.5`` with central moments ``m``
            (1/n), and ``kurtosis`` is ``m4/m2**2 - 3``. ``ppcc`` is the correlation of the ascending values with normal
            quantiles at Filliben's median ranks; it is 1 if the QQ plot is straight. ``pvalue`` is the p-value of
            D'Agostino and Pearson's test, which combines skewness and kurtosis; it is NaN for fewer than 8 values.
            `scipy.stats` calls these measures `skew`, `kurtosis`, `probplot` and `normaltest`.

        Raises
        ------
        ValueError
            `X` has values outside the domain, or the wrong shape.

        Notes
        -----
        The data are read once: each column is sorted, measured, transformed in place and measured again. Values are
        divided by a power of 2, and moments are taken about the mean, so moments do not overflow, and columns far from
        0 lose no digits. The p-value after a fit is slightly too large, because lambda was chosen to make the column
        normal.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> before, after = pk.fit(np.random.default_rng(0).lognormal(size=200), "box-cox").normality()
        >>> before.skewness.round(2), after.skewness.round(2)
        (array([1.69]), array([-0.01]))
        """
        values, weight = self._read_data(X, sample_weight, n_threads)
        return measure_normality(self._table, values, weight, thread_count(n_threads))

    def central_normality(
        self, X: object = None, *, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
    ) -> CentralNormality:
        """Test whether the central 80 % of each transformed column is normal, regardless of its tails.

        Parameters
        ----------
        X, sample_weight, n_threads
            As in `normality`.

        Returns
        -------
        CentralNormality
            A named tuple of arrays with one entry per column: ``statistic``, the mean distance of the central 80 % of
            the standardised values from normal scores, and ``pvalue``, the probability that a normal sample of the same
            size has at least this statistic, never reported below 0.001. Both are NaN for columns without spread, and
            ``pvalue`` is also NaN for fewer than 6 values.

        Raises
        ------
        ValueError
            `X` has values outside the domain, or the wrong shape.

        Notes
        -----
        The statistic is the mean of ``abs(z_i - Phi^-1(p_i))`` over the values with ``0.1 <= p_i <= 0.9`` [1]_, where
        ``p_i = (i - 1/3)/(n + 1/3)``; ties get the mean of their p. The z are the transformed values, standardised by
        location and scale of Huber's proposal 2 with k = Phi^-1(0.9) and divisor n - 1. P-values are interpolated
        between quantiles of 30,000 normal samples of each of 35 sizes from 6 to 10,000. For larger samples, the
        quantiles are assumed to decrease as 1/sqrt(n). P-values are slightly too large, because lambda was chosen to
        make the column normal.

        References
        ----------
        .. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115,
           2026.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> rng = np.random.default_rng(0)
        >>> two_modes = np.append(rng.normal(-3.0, size=100), rng.normal(3.0, size=100))
        >>> X = np.column_stack([rng.lognormal(size=200), two_modes])
        >>> (pk.fit(X).central_normality().pvalue > 0.05).tolist()
        [True, False]
        """
        values, weight = self._read_data(X, sample_weight, n_threads)
        return measure_central_normality(self._table, values, weight, thread_count(n_threads))

    def summary(
        self,
        X: object = None,
        *,
        level: float = 0.95,
        method: Method | None = None,
        sample: object = None,
        sample_weight: ArrayLike | str | None = None,
        n_threads: int | None = None,
    ) -> Summary:
        """Return a table of the results, which can be printed or converted to arrays or a data frame.

        Parameters
        ----------
        X : (n, n_features) array-like, optional
            The fitted data; not needed right after `fit`, see `profile`.
        level : float, default 0.95
            Confidence level of intervals and rounded powers.
        method : {"profile", "wald"}, optional
            Kind of the intervals, as in `confint`: "profile" (default), or "wald" (default if the fit no longer has its
            data).
        sample : (m, n_features) array-like, optional
            Rows drawn at random from data that are too large to pass as `X`. They are used for `normality` and for the
            bootstrap, whose standard error is rescaled to the weight of all rows. Everything else comes from the fit
            itself.
        sample_weight : (n,) array-like, or str, optional
            Weights of the rows of `X` or of `sample`, or the name of the column that holds them.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Summary
            For each column: `lmbda`, the `rounded` power, standard error `se`, ends `low` and `high` of the
            interval, likelihood ratio tests of lambda = 0 (`lr_0`, p-value `p_0`) and 1 (`lr_1`, `p_1`); skewness,
            kurtosis, ppcc and p-value of normality before and after (see `normality`); n_obs and status. Entries that
            need the data are left out if the fit no longer has its data. For robust fits `se` is the bootstrap
            `standard_error`, `low` and `high` are as in `confint`, and there are no tests or rounded powers. Notes
            below the table list the entries that are left out.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> summary = pk.fit(np.random.default_rng(0).lognormal(size=200), "box-cox").summary()
        >>> for line in str(summary).splitlines()[2:4]:
        ...     print(line)
        column  family      lmbda  rounded        se        low     high    lr_0      p_0    lr_1         p_1
        0       box-cox  0.076378        0  0.066698  -0.053386  0.20824  1.3231  0.25003  164.89  9.6708e-38
        >>> sorted(summary.to_dict())[:5]
        ['column', 'family', 'high', 'kurtosis', 'kurtosis_after']
        """
        refuse_number(X)
        if X is not None and sample is not None:
            raise ValueError("pass the data as X, or rows drawn from them as sample, not both")
        shape, notes_on_shape = self._normality_entries(X, sample, sample_weight, n_threads)
        if self.estimator.has_likelihood:
            weights_of_X = sample_weight if sample is None else None
            found, notes = self._likelihood_entries(level, method, X, weights_of_X, n_threads)
        else:
            found, notes = self._bootstrap_entries(level, X, sample, sample_weight, n_threads)
        notes += notes_on_shape
        far = find_far_from_zero(self._table)
        if far.size:
            notes.append(f"{self._list_columns(far)}: {FAR_FROM_ZERO}")
        notes += note_on_inverse(self._table, self.standardize, lambda j: column_label(j, self.column_names))
        first: dict[str, NDArray[Any]] = {"family": np.array(self.families)}
        last: dict[str, NDArray[Any]] = {"n_obs": self.n_obs, "status": np.array(self.status_text)}
        return Summary(self._headline(), self._label_texts(), [first | found, *shape, last], notes=notes)

    def _likelihood_entries(
        self,
        level: float,
        method: Method | None,
        X: object,
        sample_weight: ArrayLike | str | None,
        n_threads: int | None,
    ) -> tuple[dict[str, FloatArray], list[str]]:
        """Return the summary's entries that are based on the likelihood, and notes on them.

        Arguments are described in `summary`.
        """
        if self._spec.origin is not None:
            found, notes = likelihood_entries(self._optimum(), level, "wald", None)
            return found, [
                notes[0],
                "no tests: the origin was fitted; se, low, high include the uncertainty of origin and unit",
            ]
        likelihood = None
        if X is not None or self._data is not None:
            likelihood = functools.cache(lambda: self._likelihood(X, sample_weight, n_threads))
        return likelihood_entries(self._optimum(), level, method, likelihood)

    def _bootstrap_entries(
        self,
        level: float,
        X: object,
        sample: object,
        sample_weight: ArrayLike | str | None,
        n_threads: int | None,
    ) -> tuple[dict[str, FloatArray], list[str]]:
        """Return the summary's entries for estimators other than maximum likelihood, and notes on them.

        Arguments are described in `summary`. There are no tests, because these estimators have no likelihood.
        """
        notes = [f"no tests: estimator={self.estimator.name!r} is not maximum likelihood"]
        found: dict[str, FloatArray] = {}
        if X is None and sample is None and not isinstance(self._data, FittedData):
            notes.append("no intervals: the fit no longer has its data; pass X")
        else:
            rows = X if sample is None else sample
            se = self.standard_error(rows, sample_weight=sample_weight, n_threads=n_threads)
            if sample is not None:
                se *= np.sqrt(sampled_fraction(self.n_obs, *self._read_data(sample, sample_weight)))
            interval = wald_interval(self.lmbda, se, level)
            found = {"se": se, "low": interval.low, "high": interval.high}
            notes.append(note_on_bootstrap(level))
        return {"lmbda": self.lmbda, **found, "n_kept": self.n_kept}, notes

    def _normality_entries(
        self, X: object, sample: object, sample_weight: ArrayLike | str | None, n_threads: int | None
    ) -> tuple[list[dict[str, FloatArray]], list[str]]:
        """Return the summary's entries on normality, with notes; if there are no entries, a note gives the reason.

        Arguments are described in `summary`.
        """
        if self._table.n_censored.any():
            return [], ["no measures of normality: some cells are only known to lie in an interval"]
        if X is None and sample is None and not isinstance(self._data, FittedData):
            return [], ["no measures of normality: the fit no longer has its data; pass X"]
        rows = X if sample is None else sample
        figures = self.normality(rows, sample_weight=sample_weight, n_threads=n_threads)
        central = self.central_normality(rows, sample_weight=sample_weight, n_threads=n_threads)
        n_drawn = None if sample is None else len(as_matrix(sample).values)
        entries, notes = normality_entries(figures, central, n_drawn)
        return [entries], notes

    def weights(self, X: object) -> Any:
        """Return weight 1 for the values that the fit uses, and 0 for the values that it leaves out as outliers.

        The variants of RewML use the values whose distance from Huber's location is at most the cut-off times Huber's
        scale at the last reweighting step. (In contrast, `outliers` flags values beyond the cut-off at the final
        lambda.) The trimmed likelihood uses a window of order statistics. Other estimators use all values.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            The fitted data, or new data. Missing values have weight 0. In a column that could not be fitted, all other
            values have weight 1.

        Returns
        -------
        ndarray, or a data frame or series like `X`
            0 or 1; same shape as `X`, columns in the order of the fit. For the fitted data, the sum of a column is its
            `n_kept`, or more if values tie with the ends of the window of the trimmed likelihood.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
        >>> int(pk.fit(x, estimator="robust").weights(x)[-1])
        0
        """
        matrix = read_fitted(X, self.column_names, self.n_features)
        kept = ~np.isnan(matrix.values)
        if not self.estimator.keeps_all:
            kept = find_kept(self._table, matrix.values)
        return labelled(matrix, kept.astype(np.float64))

    def outliers(self, X: object, *, cutoff: float | None = None) -> Any:
        """Flag values beyond the cut-off on the standardised scale: ``|psi(x) - loc| > cutoff scale``.

        The cut-off is ``Phi^-1(cutoff)``. For reweighted maximum likelihood it is the quantile of Student's t with
        n_kept/4 degrees of freedom instead, as in the paper on this estimator (see `powerkern.RewML`). In long columns,
        the two quantiles nearly agree. In short columns, Student's t is larger, so that the default `cutoff` flags
        about 1 % of clean values in columns of any length.

        Parameters
        ----------
        X : (n, n_features) array-like, or (n,) where the fit was to one column
            The fitted data, or new data. Missing values, and values of columns that could not be fitted, are not
            flagged.
        cutoff : float, optional
            Quantile of the normal distribution. The default is `cutoff` of the fit, which is 0.995 unless the estimator
            has another value. This flags about 1 % of normal data.

        Returns
        -------
        ndarray of bool, or a data frame or series like `X`
            Same shape as `X`, columns in the order of the fit. ``X[fit.outliers(X).any(axis=1)]`` selects the rows with
            outliers.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.append(np.random.default_rng(0).lognormal(size=99), 1e6)
        >>> bool(pk.fit(x, estimator="robust").outliers(x)[-1])
        True
        """
        matrix = read_fitted(X, self.column_names, self.n_features)
        low, high = self.cutoffs(cutoff=cutoff)
        with np.errstate(invalid="ignore"):
            is_outlier = (matrix.values < low) | (matrix.values > high)
        return labelled(matrix, is_outlier)

    def cutoffs(self, *, cutoff: float | None = None) -> Interval:
        """Return the cut-offs for outliers in the units of the data.

        Parameters
        ----------
        cutoff : float, optional
            Quantile of the normal distribution; default: `cutoff` of the fit.

        Returns
        -------
        Interval
            Arrays `low` and `high`, the values with ``psi = loc -+ cutoff scale`` (see `outliers`). Where
            ``loc -+ cutoff scale`` is outside the range of the transform, `low` is -inf (-shift under Box-Cox) and
            `high` is inf. Columns that could not be fitted have NaN.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> x = np.random.default_rng(0).lognormal(size=1000)
        >>> low, high = pk.fit(x, "box-cox", "robust").cutoffs()
        >>> bool(0.0 < low[0] < 0.2 < 5.0 < high[0])
        True
        """
        return cutoffs_in_data_units(self._table, self.standardized_cutoff(cutoff=cutoff))

    def standardized_cutoff(self, *, cutoff: float | None = None) -> FloatArray:
        """Return the cut-off for outliers of each column on the standardised scale, see `outliers`.

        Weights are counts. If ``sum(w**2)/sum(w) < 1`` the weights are treated as relative: a weight of this size
        counts as one observation. Equal weights that sum to one, for example, change nothing.

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
        >>> [pk.fit(X[:n], estimator="robust").standardized_cutoff().round(1).tolist() for n in (10, 50, 1000)]
        [[7.2], [3.0], [2.6]]
        """
        cutoff = self.cutoff if cutoff is None else checked_cutoff("cutoff", cutoff)
        return standardized_cutoffs(self.estimator, self._table, cutoff)
