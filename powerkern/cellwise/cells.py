"""Detect deviating cells (DDC): compare each cell with its prediction from the other cells of the row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, erf

from powerkern._engine.by_column import measure_columns
from powerkern._engine.threads import thread_count
from powerkern._input import frames
from powerkern._input.arguments import as_number, as_whole, refuse_infinite
from powerkern._input.arrays import as_choice, as_flag, as_matrix, check_n_features, position_of
from powerkern._results.display import SHOWN, html_page, label_cells
from powerkern._typing import BoolArray, FloatArray
from powerkern.cellwise.checking import DataCheck, check_data
from powerkern.cellwise.neighbors import Neighbors, Relations, relate_by_pairs, relate_by_wrapping, run_in_parts
from powerkern.cellwise.wrapping import map_columns
from powerkern.kernels.location.loc_scale import MAD_FACTOR
from powerkern.kernels.multivariate.cells import deshrink_columns, one_step_columns, predict_columns

#: Largest number of columns for which search="auto" correlates the columns pair by pair.
MANY_COLUMNS = 750
_SEARCHES = ("auto", "pairs", "wrapped")


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Predictions, residuals and flags of the cells in the columns that `check_data` keeps, and flags of the rows.

    `DDCFit` describes the attributes.
    """

    predicted: Any
    residuals: Any
    flagged: Any
    imputed: Any
    row_outlyingness: Any
    flagged_rows: Any

    def __repr__(self) -> str:
        n, p = self.flagged.shape
        cells, rows = (int(np.count_nonzero(flags)) for flags in (self.flagged, self.flagged_rows))
        return f"{type(self).__name__}({n} rows, {p} columns; flagged: {cells} cells, {rows} rows)"

    def _repr_html_(self) -> str:
        """Return a table of the columns with the most flagged cells as HTML, for notebooks."""
        counts = np.array([np.count_nonzero(column) for column in as_matrix(self.flagged).values.T])
        order = np.argsort(-counts, kind="stable")[: min(SHOWN, np.count_nonzero(counts))]
        if not order.size:
            return html_page(repr(self))
        labels = label_cells(self._labels() or range(counts.size))
        left = np.count_nonzero(counts) - order.size
        notes = [f"... and {left} more columns with flagged cells: see flagged"] if left else []
        return html_page(repr(self), [[("column", labels[order]), ("flagged cells", counts[order])]], notes)

    def _labels(self) -> list[Any] | None:
        """Return the names of the columns, or None if they have none."""
        return frames.names_of(self.flagged)


class _FlagRule(NamedTuple):
    """The estimates by which cells and rows are flagged; see `DDCFit`.

    `row_center` and `row_scale` standardize the outlyingness of rows.
    """

    loc: FloatArray
    scale: FloatArray
    relations: Relations
    deshrinkage: FloatArray
    residual_scale: FloatArray
    row_center: float
    row_scale: float
    cutoff: float


@dataclass(frozen=True, eq=False, repr=False)
class DDCFit(Cells):
    """Deviating cells of the fitted data, and the rule that flags cells of new rows; returned by `ddc`.

    The first six attributes refer to all rows of the data and to the columns that `check_data` keeps. If the data are a
    data frame, these attributes are data frames and series with the same index and column names.

    Attributes
    ----------
    predicted : (n, p) ndarray or data frame
        Predictions from the other columns, in the units of the data.
    residuals : (n, p) ndarray or data frame
        Standardized residuals; NaN for missing cells.
    flagged : (n, p) ndarray or data frame of bool
        The deviating cells.
    imputed : (n, p) ndarray or data frame
        The data with flagged and missing cells replaced by their predictions.
    row_outlyingness : (n,) ndarray or series
        Standardized outlyingness of whole rows.
    flagged_rows : (n,) ndarray or series of bool
        The rows that deviate as a whole.
    check : DataCheck
        The columns and rows that were kept, and the reasons for dropping others.
    search : {"pairs", "wrapped"}
        The search for correlated columns that was used.
    include_self : bool
        Whether a cell contributes to its own prediction.
    loc, scale : (p,) ndarray
        Robust location and scale of each column.
    deshrinkage : (p,) ndarray
        Factor that undoes the shrinkage of the predictions.
    residual_scale : (p,) ndarray
        Scale of the residuals of each column, in units of `scale`.
    cutoff : float
        Absolute standardized residual beyond which a cell is flagged.
    connected : (p,) ndarray of bool
        Columns that are predicted from other columns. In all other columns, the prediction is the location.
    """

    check: DataCheck
    search: str
    include_self: bool
    loc: FloatArray
    scale: FloatArray
    deshrinkage: FloatArray
    residual_scale: FloatArray
    cutoff: float
    connected: BoolArray
    _rule: _FlagRule

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns that were kept."""
        return self.check.column_names

    def _labels(self) -> list[Any]:
        """Return the names of the columns or, if they have none, their positions in the data."""
        return self.column_names or self.check.columns.tolist()

    def neighbors(self, column: int | str) -> Neighbors:
        """Return the columns that predict a column.

        Parameters
        ----------
        column : int or str
            Name of the column, or its position among the columns that were kept.

        Returns
        -------
        Neighbors
            A named tuple of arrays with an entry for each predicting column, in order of decreasing absolute
            correlation: ``columns``, positions among the columns that were kept; ``correlations``, robust correlations
            with the predicted column; and ``slopes``, the slopes of the predicted column on each predicting column,
            after standardization.
        """
        j = position_of(column, self.column_names, self.loc.size)
        first, others, correlations, slopes = self._rule.relations
        part = slice(first[j] + (self.include_self and self.connected[j]), first[j + 1])
        return Neighbors(others[part], correlations[part], slopes[part])

    def predict(self, X: object, *, n_threads: int | None = None) -> Cells:
        """Flag the deviating cells of new rows by the fitted rule.

        Parameters
        ----------
        X : (n, p) array-like
            Rows with all columns of the fitted data; a data frame needs only the columns that were kept. Columns that
            do not match the fitted data, and infinite values, raise an error.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Cells
            The attributes ``predicted``, ``residuals``, ``flagged``, ``imputed``, ``row_outlyingness`` and
            ``flagged_rows`` of the new rows; see `DDCFit`.
        """
        part, threads = self._select_columns(X), thread_count(n_threads)
        matrix = as_matrix(part)
        refuse_infinite(matrix._replace(names=matrix.names or self.column_names))
        z = _standardize_columns(matrix.values, self.loc, self.scale, threads)
        predicted = _predict_cells(_mask_outliers(z, self.cutoff), self._rule.relations, threads)
        return _label_like_input(part, _flag_cells(part, z, predicted, self._rule))

    def _select_columns(self, X: Any) -> Any:
        """Return the columns of `X` that the fit kept; raise if `X` does not have the columns of the fitted data."""
        part = frames.columns_named(X, self.column_names)
        if part is not X or (self.column_names and frames.names_of(X) == self.column_names):
            return part
        matrix = as_matrix(X)
        check_n_features(matrix.values, self.check.n_columns, matrix.names, self.check.names)
        return X if self.loc.size == self.check.n_columns else frames.select(X, None, self.check.columns)


def ddc(
    X: object,
    *,
    quantile: float = 0.99,
    min_correlation: float = 0.5,
    include_self: bool = True,
    search: str = "auto",
    n_neighbors: int = 100,
    max_missing: float = 0.5,
    max_discrete: int = 3,
    min_scale: float = 1e-12,
    n_threads: int | None = None,
    progress: bool = False,
) -> DDCFit:
    """Detect deviating cells (DDC) [1]_: cells that are far from their predictions from the other cells of the row.

    Parameters
    ----------
    X : (n, p) array-like
        Array or data frame; NaN is missing. `check_data` drops the columns and rows that cannot be used.
    quantile : float, default 0.99
        Fraction of regular cells that are not flagged; ``cutoff = sqrt(chi2_1^-1(quantile))``.
    min_correlation : float, default 0.5
        Columns with at least this absolute robust correlation predict each other.
    include_self : bool, default True
        Whether a cell contributes to its own prediction, with weight 1, unless it is an outlier of its column.
    search : {"auto", "pairs", "wrapped"}, default "auto"
        How to compute correlations: "pairs" estimates a robust correlation for each pair of columns; "wrapped" uses the
        correlations of wrapped columns [2]_, which is much faster for many columns. "auto" is "pairs" for up to 750
        columns.
    n_neighbors : int, default 100
        Largest number of columns that predict a column in the wrapped search.
    max_missing, max_discrete, min_scale
        As in `check_data`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.
    progress : bool, default False
        Show a progress bar over the pairs (needs tqdm).

    Returns
    -------
    DDCFit
        The results: ``residuals``, ``flagged``, ``imputed``, ``flagged_rows``, ``neighbors(column)``, and ``predict``
        for new rows.

    Raises
    ------
    TypeError, ValueError
        If `X` has values that are not real numbers or are infinite, if an option is invalid, or if no column or no row
        is usable.

    See Also
    --------
    powerkern.plot.cell_map : draw a map of the cells.
    powerkern.sklearn.DDC : an estimator for pipelines of scikit-learn.

    Notes
    -----
    These are the steps. c is the cutoff, and ``scale(x) = s sqrt(mean min((x/s)**2, 2.5**2)/0.8445)``, where s is the
    median of ``|x|``.

    1. Standardize: ``z = (x - loc)/scale(x - loc)``. loc is the mean with weights ``(1 - (t/3)**2)**2`` for
       ``|t| <= 3``, where t = (x - median)/MAD.
    2. Treat outliers of a column as missing: u is z if ``|z| <= c``, else missing.
    3. Correlate each pair of columns: compute the product-moment correlation of the points of u inside an ellipse. The
       ellipse holds the fraction `quantile` of a normal distribution with unit variances and the correlation
       ``(scale(u_j + u_h)**2 - scale(u_j - u_h)**2)/4``, limited to between -0.99 and 0.99. For pairs with at least
       `min_correlation`, fit a slope through the origin by least squares to the points whose residual from the line
       with slope ``median(u_j/u_h)`` is at most c times the scale of the residuals.
    4. Predict a cell by the mean of ``slope u_h`` over the correlated columns whose cells are present in the row,
       weighted by the absolute correlations; by 0 if there is no such column.
    5. Multiply predictions by the robust slope of z on them, which undoes their shrinkage.
    6. Flag a cell if its residual from the prediction exceeds c times the scale of the residuals of the column. Replace
       flagged and missing cells by predictions.
    7. Flag a row if the mean of ``F(residual**2)`` over its cells exceeds the median of this mean over all rows by more
       than c normalized MAD. F is the distribution function of chi-square with one degree of freedom.

    With the wrapped search, step 3 uses the product-moment correlation and the least-squares slope of the wrapped z in
    the rows in which both values are present, for at most `n_neighbors` other columns.

    Residuals below 1e-12 times the scale of the column count as 0. Results are bit-identical for any number of
    threads, memory order, and order of the columns.

    References
    ----------
    .. [1] P. J. Rousseeuw, W. Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018, 135-145.
    .. [2] J. Raymaekers, P. J. Rousseeuw, "Fast robust correlation for high-dimensional data", Technometrics 63, 2021,
       184-198.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import ddc
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 1)) + 0.3 * rng.normal(size=(100, 4))
    >>> X[7, 2] = X[7, 0] + 3.0
    >>> fit = ddc(X)
    >>> bool(fit.flagged[7, 2]), int(fit.flagged[7].sum())
    (True, 1)
    >>> float(abs(fit.imputed[7, 2] - X[7, 0]).round(1))
    0.0
    """
    quantile, least = as_number("quantile", quantile, "(0, 1)"), as_number("min_correlation", min_correlation, "(0, 1]")
    most, own = as_whole("n_neighbors", n_neighbors), as_flag("include_self", include_self)
    as_choice("search", search, _SEARCHES)
    threads = thread_count(n_threads)
    check = check_data(X, max_missing=max_missing, max_discrete=max_discrete, min_scale=min_scale, n_threads=n_threads)
    if check.values.size == 0:
        raise ValueError("check_data leaves no column, or no row, of X: " + " ".join(check.messages[:2]))
    cutoff = math.sqrt(chdtri(1, 1.0 - quantile))
    loc, scale = one_step(check.values, threads)
    z = _standardize_columns(check.values, loc, scale, threads)
    u = _mask_outliers(z, cutoff)
    found = search
    if search == "auto":
        found = "pairs" if loc.size <= MANY_COLUMNS else "wrapped"
    if found == "pairs":
        relations = relate_by_pairs(u, quantile, least, own, threads, progress)
    else:
        relations = relate_by_wrapping(z, least, most, own, threads, progress)
    predicted = _predict_cells(u, relations, threads)
    deshrinkage, residual_scale = _estimate_deshrinkage(z, predicted, cutoff, threads)
    rule = _FlagRule(loc, scale, relations, deshrinkage, residual_scale, 0.0, 1.0, cutoff)
    cells = _flag_cells(check.part, z, predicted, rule)
    rule = _add_row_scale(rule, cells.row_outlyingness)
    cells = _label_like_input(check.part, _flag_rows(cells, rule))
    return DDCFit(
        **vars(cells), check=check, search=found, include_self=own, loc=loc, scale=scale, deshrinkage=deshrinkage,
        residual_scale=residual_scale, cutoff=cutoff, connected=np.diff(relations.first) > 0, _rule=rule,
    )  # fmt: skip


# --- columns ----------------------------------------------------------------------------------------------


def one_step(values: NDArray[Any], n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Return the location and scale of each column by one M-step from the median and the MAD; see step 1 of `ddc`."""

    def measure(block: FloatArray, group: slice) -> FloatArray:
        out = np.empty((block.shape[0], 2))
        one_step_columns(block, np.empty(block.shape[1]), out)
        return out

    figures = measure_columns(measure, values, 2, n_threads)
    return figures[:, 0].copy(), figures[:, 1].copy()


def _standardize_columns(values: NDArray[Any], loc: FloatArray, scale: FloatArray, n_threads: int) -> FloatArray:
    """Return the standardized columns as rows, (p, n).

    Parameters
    ----------
    values : (n, p) ndarray
        The data; NaN is missing.
    loc, scale : (p,) ndarray
        Location and scale of each column, in units of the column.
    n_threads : int
        Maximum number of threads.
    """

    def change(part: FloatArray, group: slice) -> None:
        with np.errstate(over="ignore"):  # infinite values are outliers, too
            part -= loc[group, None]
            part /= scale[group, None]

    return map_columns(values, change, n_threads)


def _mask_outliers(z: FloatArray, cutoff: float) -> FloatArray:
    """Replace standardized values beyond `cutoff` by NaN."""
    return np.where(np.abs(z) <= cutoff, z, np.nan)


# --- predictions ------------------------------------------------------------------------------------------


def _predict_cells(u: FloatArray, relations: Relations, n_threads: int) -> FloatArray:
    """Predict standardized cells from the neighbors of their column, without undoing the shrinkage, (p, n).

    `u`, (p, n), holds the standardized columns as rows, without outliers. Cells of columns without neighbors are
    predicted as 0.
    """
    predicted = np.empty(u.shape)
    weights = np.abs(relations.correlations)
    first = np.require(relations.first, requirements="W")  # kernels require it
    others = np.require(relations.neighbors, requirements="W")
    slopes = np.require(relations.slopes, requirements="W")

    def predict(part: slice) -> None:
        work = np.empty(u.shape[1])
        predict_columns(u, part.start, part.stop, first, others, weights, slopes, work, predicted[part])

    run_in_parts(predict, u.shape, n_threads)
    return predicted


def _estimate_deshrinkage(
    z: FloatArray, predicted: FloatArray, cutoff: float, n_threads: int
) -> tuple[FloatArray, FloatArray]:
    """Estimate the factors of step 5 of `ddc`, and the scales of the residuals of step 6.

    Parameters
    ----------
    z : (p, n) ndarray
        Standardized columns, as rows.
    predicted : (p, n) ndarray
        Shrunken predictions of `z`.
    cutoff : float
        Largest absolute standardized residual of a regular cell.
    n_threads : int
        Maximum number of threads.

    Returns
    -------
    deshrinkage : (p,) ndarray
        Factor that undoes the shrinkage of the predictions of each column.
    residual_scale : (p,) ndarray
        Scale of the residuals of each column after deshrinkage, in units of the scale of the column.
    """
    figures = np.empty((z.shape[0], 2))

    def measure(part: slice) -> None:
        deshrink_columns(z[part], predicted[part], cutoff, np.empty((2, z.shape[1])), figures[part])

    run_in_parts(measure, z.shape, n_threads)
    return figures[:, 0].copy(), figures[:, 1].copy()


# --- cells and rows ---------------------------------------------------------------------------------------


def _flag_cells(part: Any, z: FloatArray, shrunken: FloatArray, rule: _FlagRule) -> Cells:
    """Predict the cells of some rows, and flag cells and rows.

    Parameters
    ----------
    part : (n, p) ndarray or data frame
        The data, in the form in which the user passed them.
    z : (p, n) ndarray
        The standardized columns, as rows.
    shrunken : (p, n) ndarray
        Shrunken predictions of `z`.
    rule : _FlagRule
        The fitted rule.
    """
    predicted = shrunken * rule.deshrinkage[:, None]
    residuals = np.ascontiguousarray(((z - predicted) / rule.residual_scale[:, None]).T)
    expected = rule.loc + rule.scale * predicted.T
    flagged = np.abs(residuals) > rule.cutoff
    matrix = as_matrix(part)
    imputed = np.where(flagged | np.isnan(residuals), expected, matrix.values)
    if matrix.was_vector:
        imputed = imputed[:, 0]
    unjudged = np.zeros(len(residuals), dtype=bool)
    cells = Cells(
        expected,
        residuals,
        flagged,
        frames.replace_columns(part, part, imputed),
        _row_outlyingness(residuals),
        unjudged,
    )
    return _flag_rows(cells, rule)


def _row_outlyingness(residuals: FloatArray) -> FloatArray:
    """Return the mean of F(residual**2) over the observed cells of each row, (n,); NaN for rows without such cells.

    F is as in the Notes of `ddc`.
    """
    probability = np.sort(
        erf(np.abs(residuals) * math.sqrt(0.5)), axis=1
    )  # sorted: the sum does not depend on the order of columns
    n = (~np.isnan(probability)).sum(axis=1)
    return np.asarray(np.where(n > 0, np.nansum(probability, axis=1), np.nan) / np.maximum(n, 1))


def _add_row_scale(rule: _FlagRule, outlying: FloatArray) -> _FlagRule:
    """Return the rule with row center and row scale set to the median and the normalized MAD of `outlying`, (n,).

    If the MAD is 0, the scale is infinite, so that no row is flagged.
    """
    known = outlying[~np.isnan(outlying)]
    center = float(np.median(known))
    spread = MAD_FACTOR * float(np.median(np.abs(known - center)))
    return rule._replace(row_center=center, row_scale=spread if spread > 0.0 else math.inf)


def _flag_rows(cells: Cells, rule: _FlagRule) -> Cells:
    """Standardize the outlyingness of the rows of `cells` by the rule, and flag outlying rows."""
    outlying = (cells.row_outlyingness - rule.row_center) / rule.row_scale
    return replace(cells, row_outlyingness=outlying, flagged_rows=outlying > rule.cutoff)


def _label_like_input(part: Any, cells: Cells) -> Cells:
    """Give all results the index and column names of `part`, if it is a data frame."""
    figures = {name: frames.labelled(part, values) for name, values in vars(cells).items() if name != "imputed"}
    return replace(cells, **figures)  # `imputed` has its labels already
