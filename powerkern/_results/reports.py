"""Methods of a fit that describe it: how normal its columns are, and a summary."""

from __future__ import annotations

import functools
import html
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from powerkern._engine.threads import thread_count
from powerkern._estimators.likelihood import ML
from powerkern._input.arrays import as_matrix, column_label, column_labels
from powerkern._results.central_normality import CentralNormality, central_matrix
from powerkern._results.columns import FAR_FROM_ZERO, FittedColumns
from powerkern._results.data import data_of, likelihood_of
from powerkern._results.inference import Method, refuse_number, wald_interval
from powerkern._results.inversion import note_on_inverse
from powerkern._results.likelihood import optimum, standard_error
from powerkern._results.normality import Normality, moments_matrix, normality_figures
from powerkern._results.summary import Summary, html_table, likelihood_entries, note_on_bootstrap, table_of
from powerkern._status import Status, is_failed
from powerkern._typing import FloatArray

#: Columns of a fit that it shows of itself.
_SHOWN = 8
#: Names of figures in a summary.
_SHORTER = {"pvalue": "p_normal"}


def headline(fit: FittedColumns) -> str:
    """A line on the fit."""
    fitted = f"{np.count_nonzero(~is_failed(fit.status))} of {fit.n_features} columns fitted"
    return f"PowerFit(family={fit.family!r}, estimator={fit.estimator!r}, {fitted})"


def as_text(fit: FittedColumns) -> str:
    """A line on the fit, with lambda and status of the first columns."""
    return "\n".join([headline(fit), table_of(_first_columns(fit)), *_rest(fit)])


def as_html(fit: FittedColumns) -> str:
    """The same as HTML, for notebooks."""
    rest = "".join(f"<p>{line}</p>" for line in _rest(fit))
    return f"<div><p>{html.escape(headline(fit))}</p>{html_table(_first_columns(fit))}{rest}</div>"


def _first_columns(fit: FittedColumns) -> dict[str, NDArray[Any]]:
    """Name, lambda and status of the first columns, and their families where a fit has several."""
    n = min(len(fit), _SHOWN)
    names = fit.column_names[:n] if fit.column_names else [str(j) for j in range(n)]
    families = {"family": np.array(fit.families[:n])} if fit.family != fit.families[0] else {}
    status = np.array([Status(code).sentence for code in fit.status[:n]])
    return {"column": np.array(names), **families, "lambda": fit.lmbda[:n], "status": status}


def _rest(fit: FittedColumns) -> list[str]:
    """A line about the columns that are not shown, if any."""
    return [f"... and {len(fit) - _SHOWN} more columns: see lambdas, summary()"] if len(fit) > _SHOWN else []


def normality(
    fit: FittedColumns, X: object = None, *, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
) -> Normality:
    """How close to normal the columns are before and after their transform.

    Parameters
    ----------
    X : (n, n_features) array-like, optional
        The fitted data, or others; not needed right after `fit`, see `profile`. NaN is missing.
    sample_weight : (n,) array-like, or str, optional
        Weights that go with `X`, or the name of its column that holds them: counts of its rows as in
        `powerkern.fit`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    Normality
        `before` and `after`, each with arrays `skewness`, `kurtosis`, `ppcc` and `pvalue`
        (`scipy.stats.skew`, `kurtosis`, `probplot`, `normaltest`). NaN for columns without two distinct values;
        p-values also for fewer than 8 values.

    Raises
    ------
    ValueError
        Values outside the domain, a wrong shape.

    Notes
    -----
    The data are read once; a column is sorted, measured, transformed in place and measured again. Moments are
    taken about the mean, of values scaled by a power of 2: they neither overflow nor lose digits to an offset.
    The p-value after a fit is slightly too large, as lambda was chosen to make it so.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> before, after = pk.fit(np.random.default_rng(0).lognormal(size=200), "box-cox").normality()
    >>> before.skewness.round(2), after.skewness.round(2)
    (array([1.69]), array([-0.01]))
    """
    values, weight = data_of(fit, X, sample_weight, n_threads)
    raw, threads = fit.columns.raw, thread_count(n_threads)
    found = fit.columns.gathered(
        lambda code, chosen: moments_matrix(values[:, chosen], code, raw[chosen], weight, threads)
    )
    return Normality(normality_figures(found[:, 0]), normality_figures(found[:, 1]))


def central_normality(
    fit: FittedColumns, X: object = None, *, sample_weight: ArrayLike | str | None = None, n_threads: int | None = None
) -> CentralNormality:
    """Test whether the central 80 % of each transformed column is normal, whatever its tails are.

    Parameters
    ----------
    X, sample_weight, n_threads
        As in `normality`.

    Returns
    -------
    CentralNormality
        Arrays `statistic` and `pvalue`; NaN for columns without spread, p-values also for fewer than 6 values.

    Raises
    ------
    ValueError
        Values outside the domain, a wrong shape.

    Notes
    -----
    The mean of ``abs(z_i - Phi^-1(p_i))`` over the values with ``0.1 <= p_i <= 0.9`` [1]_, where ``p_i = (i - 1/3)/(n +
    1/3)``, of equal values the mean; z are the transformed values, less their location, over their scale, by Huber's
    proposal 2 with k = Phi^-1(0.9) and n - 1. P-values are interpolated between quantiles of 30,000 normal samples of
    each of 35 sizes from 6 to 10,000; beyond, the statistic falls as 1/sqrt(n). As lambda was chosen to make the column
    normal, they are slightly too large.

    References
    ----------
    .. [1] A. Zwanenburg and S. Löck, "Location and scale-invariant power transformations", Machine Learning 115, 2026.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.lognormal(size=200), np.append(rng.normal(-3.0, size=100), rng.normal(3.0, size=100))])
    >>> (pk.fit(X).central_normality().pvalue > 0.05).tolist()
    [True, False]
    """
    values, weight = data_of(fit, X, sample_weight, n_threads)
    raw, threads = fit.columns.raw, thread_count(n_threads)
    found = fit.columns.gathered(
        lambda code, at: np.column_stack(central_matrix(values[:, at], code, raw[at], weight, threads))
    )
    return CentralNormality(found[:, 0], found[:, 1])


def summary(
    fit: FittedColumns,
    X: object = None,
    *,
    level: float = 0.95,
    method: Method | None = None,
    sample: object = None,
    sample_weight: ArrayLike | str | None = None,
    n_threads: int | None = None,
) -> Summary:
    """A table of results, to print or as arrays or a data frame.

    Parameters
    ----------
    X : (n, n_features) array-like, optional
        The fitted data; not needed right after `fit`, see `profile`.
    level : float, default 0.95
        Confidence level of intervals and rounded powers.
    method : {"profile", "wald"}, optional
        Of the intervals, as in `confint`: "profile" (default), or "wald" (default where the fit no longer has its
        data).
    sample : (n, n_features) array-like, optional
        In place of `X`, rows drawn at random from data that are too many: `normality` is of these, and so are the
        replicates of the bootstrap, whose spread is rescaled to the weight of all rows. Everything else comes from
        the fit itself.
    sample_weight : (n,) array-like, or str, optional
        Weights that go with `X` or with the sample, or the name of its column that holds them.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process.

    Returns
    -------
    Summary
        For each column: `lmbda`, the `rounded` power, standard error `se`, ends `low` and `high` of the
        interval, likelihood ratio tests of lambda = 0 (`lr_0`, p-value `p_0`) and 1 (`lr_1`, `p_1`); skewness,
        kurtosis, ppcc and p-value of normality before and after (see `normality`); n_obs and status. Entries that
        need the data are left out where the fit no longer has them. For robust fits `se` is the bootstrap
        `standard_error`, `low` and `high` are as in `confint`, and there are no tests or rounded powers. Notes say so.

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
    shape, note = _shape_entries(fit, X, sample, sample_weight, n_threads)
    far = fit.columns.far_from_zero
    if far.size:
        note.append(f"{column_labels(far, fit.column_names)}: {FAR_FROM_ZERO}")
    note += note_on_inverse(fit.columns, fit.standardize, lambda j: column_label(j, fit.column_names))
    first: dict[str, NDArray[Any]] = {"family": np.array(fit.families)}
    last: dict[str, NDArray[Any]] = {"n_obs": fit.n_obs, "status": np.array(fit.status_text)}
    if isinstance(fit.estimator, ML):
        found, notes = _estimates(fit, level, method, X, sample_weight if sample is None else None, n_threads)
    else:
        found, notes = _robust_estimates(fit, level, X, sample, sample_weight, n_threads)
    return Summary(
        headline(fit), fit.labels.texts(fit.n_features), [first | found, *shape, last], notes=[*notes, *note]
    )


def _estimates(
    fit: FittedColumns,
    level: float,
    method: Method | None,
    X: object,
    sample_weight: ArrayLike | str | None,
    n_threads: int | None,
) -> tuple[dict[str, FloatArray], list[str]]:
    """The entries of a summary that follow from the likelihood, and notes on them."""
    if fit.spec.origin is not None:
        found, notes = likelihood_entries(optimum(fit), level, "wald", None)
        return found, [notes[0], "no tests: the origin was fitted; se, low, high let origin and unit follow lambda"]
    has_data = X is not None or not fit.source.is_empty
    likelihood = functools.cache(lambda: likelihood_of(fit, X, sample_weight, n_threads)) if has_data else None
    return likelihood_entries(optimum(fit), level, method, likelihood)


def _robust_estimates(
    fit: FittedColumns,
    level: float,
    X: object,
    sample: object,
    sample_weight: ArrayLike | str | None,
    n_threads: int | None,
) -> tuple[dict[str, FloatArray], list[str]]:
    """The entries for estimators other than maximum likelihood, which have no tests, and notes on them."""
    notes = [f"no tests: estimator={fit.estimator.name!r} is not maximum likelihood"]
    if X is None and sample is None and fit.source.data is None:
        found, which = {}, "no intervals: the fit no longer has its data; pass X"
    else:
        rows = X if sample is None else sample
        se = standard_error(fit, rows, sample_weight=sample_weight, n_threads=n_threads)
        if sample is not None:
            se *= np.sqrt(_share_of(fit, sample, sample_weight))
        interval = wald_interval(fit.lmbda, se, level)
        found, which = {"se": se, "low": interval.low, "high": interval.high}, note_on_bootstrap(level)
    return {"lmbda": fit.lmbda, **found, "n_kept": fit.n_kept}, [*notes, which]


def _share_of(fit: FittedColumns, sample: object, sample_weight: ArrayLike | str | None) -> FloatArray:
    """The share of the weight of each column that a sample has; 0 of a column without values."""
    values, weight = data_of(fit, sample, sample_weight)
    there = ~np.isnan(values)
    drawn: FloatArray = weight @ there if weight.size else np.count_nonzero(there, axis=0).astype(np.float64)
    return np.divide(drawn, fit.n_obs, out=np.zeros_like(drawn), where=fit.n_obs > 0.0)


def _shape_entries(
    fit: FittedColumns, X: object, sample: object, sample_weight: ArrayLike | str | None, n_threads: int | None
) -> tuple[list[dict[str, FloatArray]], list[str]]:
    """The entries of a summary on the normality of columns, or the reason why there are none."""
    if X is None and sample is None and fit.source.data is None:
        return [], ["no figures of normality: the fit no longer has its data; pass X"]
    rows = X if sample is None else sample
    before, after = normality(fit, rows, sample_weight=sample_weight, n_threads=n_threads)
    entries = {}
    for name, x, z in zip(before._fields, before, after, strict=True):
        short = _SHORTER.get(name, name)
        entries[short], entries[f"{short}_after"] = x, z
    entries["p_central"] = central_normality(fit, rows, sample_weight=sample_weight, n_threads=n_threads).pvalue
    notes = [
        "p_normal: D'Agostino and Pearson's test, before and after the transform; p_central: of its central 80 %, after"
    ]
    if sample is not None:
        notes.append(f"figures of normality are of {len(as_matrix(sample).values)} rows, drawn at random")
    return [entries], notes
