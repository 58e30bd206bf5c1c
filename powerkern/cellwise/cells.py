"""Detecting deviating cells: each cell beside what the other cells of its row predict."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, erf

from powerkern._engine import products
from powerkern._engine.by_column import column_figures, for_each_group
from powerkern._engine.threads import progress_bar, thread_count, work_off
from powerkern._input import frames
from powerkern._input.arguments import refuse_infinite
from powerkern._input.arrays import Matrix, as_choice, as_flag, as_matrix, check_n_features, is_real, is_whole
from powerkern._typing import BoolArray, FloatArray, IntArray
from powerkern.cellwise.checking import DataCheck, check_data
from powerkern.cellwise.constants import wrap_constants
from powerkern.cellwise.wrapping import columns_of
from powerkern.kernels.multivariate.cells import (
    deshrink_columns,
    neighbor_slopes,
    one_step_columns,
    pair_correlations,
    predict_columns,
)
from powerkern.kernels.multivariate.wrapping import wrap_columns
from powerkern.kernels.robust.loc_scale import MAD_FACTOR

#: With more columns than this, pairs are not looked at one by one unless that is asked for.
MANY_COLUMNS = 750
_SEARCHES = ("auto", "pairs", "wrapped")
#: Columns that a thread takes at once.
_PART = 4
#: The same where their products with all others are taken.
_PANEL = 64


class Cells(NamedTuple):
    """What `ddc` says of the cells and rows of a matrix; rows and columns are those that were kept."""

    #: What the other columns predict, in the units of the data, (n, p).
    predicted: FloatArray
    #: Standardized residuals of the cells, (n, p); NaN for missing ones.
    residuals: FloatArray
    #: Which cells deviate, (n, p).
    flagged: BoolArray
    #: The data with flagged and missing cells replaced by their predictions; a data frame for a data frame.
    imputed: Any
    #: How outlying rows are as a whole, standardized, (n,).
    row_outlyingness: FloatArray
    #: Which rows deviate as a whole, (n,).
    flagged_rows: BoolArray


class Neighbors(NamedTuple):
    """The columns that predict one column, the most correlated first."""

    #: Positions among the columns that were kept.
    columns: IntArray
    #: Robust correlations with them.
    correlations: FloatArray
    #: Slopes on them, between standardized columns.
    slopes: FloatArray


class _Relations(NamedTuple):
    """The neighbors of all columns, one after another: those of column j are at ``first[j]:first[j + 1]``."""

    first: IntArray
    neighbors: IntArray
    correlations: FloatArray
    slopes: FloatArray


class _Rule(NamedTuple):
    """All that judges a row."""

    loc: FloatArray
    scale: FloatArray
    relations: _Relations
    deshrinkage: FloatArray
    residual_scale: FloatArray
    row_center: float
    row_scale: float
    cutoff: float


@dataclass(frozen=True, eq=False)
class DDCFit:
    """Deviating cells of a matrix, and all that is needed to judge new rows; by `ddc`.

    Attributes
    ----------
    cells : Cells
        The cells and rows of the data fitted.
    check : DataCheck
        Which columns and rows were kept, and why others were not.
    search : {"pairs", "wrapped"}
        How correlated columns were found.
    include_self : bool
        Whether cells take part in their own predictions.
    """

    cells: Cells
    check: DataCheck
    search: str
    include_self: bool
    _rule: _Rule

    @property
    def remaining_columns(self) -> IntArray:
        """Positions of the columns that were kept."""
        return self.check.columns

    @property
    def remaining_rows(self) -> IntArray:
        """Positions of the rows that were kept."""
        return self.check.rows

    @property
    def column_names(self) -> list[str] | None:
        """Names of the columns that were kept."""
        return self.check.column_names

    @property
    def residuals(self) -> FloatArray:
        """Standardized residuals of the cells, (n, p)."""
        return self.cells.residuals

    @property
    def flagged(self) -> BoolArray:
        """Which cells deviate, (n, p)."""
        return self.cells.flagged

    @property
    def imputed(self) -> Any:
        """The data with flagged and missing cells replaced by their predictions."""
        return self.cells.imputed

    @property
    def flagged_rows(self) -> BoolArray:
        """Which rows deviate as a whole, (n,)."""
        return self.cells.flagged_rows

    @property
    def loc(self) -> FloatArray:
        """Robust location of each column, (p,)."""
        return self._rule.loc

    @property
    def scale(self) -> FloatArray:
        """Robust scale of each column, (p,)."""
        return self._rule.scale

    @property
    def deshrinkage(self) -> FloatArray:
        """What predictions are multiplied by, (p,)."""
        return self._rule.deshrinkage

    @property
    def residual_scale(self) -> FloatArray:
        """Scale of the residuals of each column, in units of `scale`, (p,)."""
        return self._rule.residual_scale

    @property
    def cutoff(self) -> float:
        """Where a standardized residual is flagged."""
        return self._rule.cutoff

    @property
    def connected(self) -> BoolArray:
        """Which columns have others that predict them; the rest are judged by themselves."""
        return np.asarray(np.diff(self._rule.relations.first) > 0)

    def neighbors(self, column: int | str) -> Neighbors:
        """The columns that predict one of those that were kept, given by its position among them or its name."""
        names = self.column_names or []
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"there is no column {column!r} among those that were kept")
            column = names.index(column)
        p, column = self.loc.size, operator.index(column)
        if not -p <= column < p:
            raise ValueError(f"there is no column {column}; {p} were kept")
        first, others, correlations, slopes = self._rule.relations
        j = column % p
        part = slice(first[j] + (self.include_self and self.connected[j]), first[j + 1])
        return Neighbors(others[part], correlations[part], slopes[part])

    def predict(self, X: object, *, n_threads: int | None = None) -> Cells:
        """Judge the cells of new rows by what was fitted.

        Parameters
        ----------
        X : (n, p) array-like
            Rows with all columns of the data fitted; of a data frame, those that were kept are enough.
        n_threads : int, optional
            Threads to use; default: all CPUs of this process.

        Returns
        -------
        Cells
            For all of the rows, and the columns that were kept.

        Raises
        ------
        TypeError, ValueError
            The columns are not those of the fit, or there are infinite values.
        """
        part, matrix = self._kept(X)
        threads = thread_count(n_threads)
        z = _standardized(matrix.values, self.loc, self.scale, threads)
        predicted = _predictions(_without_outliers(z, self.cutoff), self._rule.relations, threads)
        return _judged(part, z, predicted, self._rule)

    def _kept(self, X: Any) -> tuple[Any, Matrix]:
        """The columns that were kept, as they are, and as a matrix."""
        part = frames.columns_named(X, self.column_names)
        if part is X and not (self.column_names and frames.names_of(X) == self.column_names):
            matrix = as_matrix(X)
            check_n_features(matrix.values, self.check.n_columns, matrix.names, self.check.names)
            part = X if self.loc.size == self.check.n_columns else frames.taken(X, None, self.check.columns)
        matrix = as_matrix(part)
        refuse_infinite(matrix)
        return part, matrix


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
    """Detect deviating cells (DDC) [1]_: those that are far from what the other cells of their row predict.

    Parameters
    ----------
    X : (n, p) array-like
        Array or data frame; NaN is missing. Columns and rows that cannot be used are left out, see `check_data`.
    quantile : float, default 0.99
        Share of regular cells that are not flagged: with it, ``cutoff = sqrt(chi2_1^-1(quantile))``.
    min_correlation : float, default 0.5
        Columns whose robust correlation is, in absolute value, at least so large predict each other.
    include_self : bool, default True
        Whether a cell takes part in its own prediction, with weight 1, unless it is an outlier of its column.
    search : {"auto", "pairs", "wrapped"}, default "auto"
        How correlated columns are found: robustly, pair by pair; or as the products of wrapped columns [2]_, which is
        much faster for many columns. "auto" takes pairs up to 750 columns.
    n_neighbors : int, default 100
        Largest number of columns that predict one, with the wrapped search.
    max_missing, max_discrete, min_scale
        As in `check_data`.
    n_threads : int, optional
        Threads to use; default: all CPUs of this process. Results do not depend on it.
    progress : bool, default False
        Show a progress bar over the pairs (needs tqdm).

    Returns
    -------
    DDCFit
        With ``residuals``, ``flagged``, ``imputed``, ``flagged_rows``, ``neighbors(column)``, and ``predict`` for new
        rows.

    Raises
    ------
    TypeError
        X does not hold real numbers, or an option is of the wrong type.
    ValueError
        Infinite values, an option out of range, or no column or row that can be used.

    See Also
    --------
    powerkern.plot.cell_map : draws what was found.
    powerkern.cellwise.DDC : the same for pipelines of scikit-learn.

    Notes
    -----
    The steps, with c the cutoff, and ``scale(x) = s sqrt(mean min((x/s)**2, 2.5**2)/0.8445)``, s the median of ``|x|``:

    1. ``z = (x - loc)/scale(x - loc)``, loc the mean with weights ``(1 - (t/3)**2)**2`` on ``|t| <= 3``, t = (x -
       median)/MAD.
    2. u is z where ``|z| <= c``, else missing.
    3. Correlation of each pair of columns: the product-moment correlation of the points of u in the ellipse that holds
       `quantile` of a normal distribution with unit variances and the correlation ``(scale(u_j + u_h)**2 - scale(u_j -
       u_h)**2)/4``, this between -0.99 and 0.99. For pairs with at least `min_correlation`, slopes through the origin:
       least squares on the points whose residual from the slope ``median(u_j/u_h)`` is at most c times its scale.
    4. Prediction of a cell: the mean of ``slope u_h`` over the correlated columns that have a value in its row, with
       the absolute correlations as weights; 0 where there is none, and in columns that are correlated with no other.
    5. Predictions are multiplied by the robust slope of z on them: they have shrunk.
    6. Residuals of z over their scale; beyond c a cell is flagged. Flagged and missing cells are imputed.
    7. A row is flagged where the mean over its cells of ``F(residual**2)``, F the distribution function of chi-square
       with one degree of freedom, exceeds the median over all rows by more than c normalized MAD.

    With the wrapped search, step 3 takes the product-moment correlation of the wrapped z, over the rows where both have
    a value, and the least-squares slope of these. A column is predicted by at most `n_neighbors` others.

    Residuals are judged no more finely than to 1e-12 of the column's scale. Results are the same bits for any number of
    threads, any memory order, and any order of the columns.

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
    _check_options(quantile, min_correlation, n_neighbors)
    as_choice("search", search, _SEARCHES)
    threads = thread_count(n_threads)
    check = check_data(
        X, max_missing=max_missing, max_discrete=max_discrete, min_scale=min_scale, n_threads=n_threads
    )  # fmt: skip
    if check.values.size == 0:
        raise ValueError("check_data leaves no column, or no row, of X: " + " ".join(check.messages[:10]))
    cutoff = math.sqrt(chdtri(1, 1.0 - quantile))
    loc, scale = one_step(check.values, threads)
    z = _standardized(check.values, loc, scale, threads)
    u = _without_outliers(z, cutoff)
    least, own = float(min_correlation), as_flag("include_self", include_self)
    found = search
    if search == "auto":
        found = "pairs" if loc.size <= MANY_COLUMNS else "wrapped"
    if found == "pairs":
        relations = _by_pairs(u, float(quantile), least, own, threads, progress)
    else:
        relations = _by_wrapping(z, least, int(n_neighbors), own, threads, progress)
    predicted = _predictions(u, relations, threads)
    deshrinkage, residual_scale = _deshrinkage(z, predicted, cutoff, threads)
    rule = _Rule(loc, scale, relations, deshrinkage, residual_scale, 0.0, 1.0, cutoff)
    cells = _judged(check.part, z, predicted, rule)
    rule = _with_rows(rule, cells.row_outlyingness)
    return DDCFit(_judged_rows(cells, rule), check, found, own, rule)


def _check_options(quantile: object, min_correlation: object, n_neighbors: object) -> None:
    if not (is_real(quantile) and 0.0 < quantile < 1.0):
        raise ValueError(f"quantile must be a number between 0 and 1, got {quantile!r}")
    if not (is_real(min_correlation) and 0.0 < min_correlation <= 1.0):
        raise ValueError(f"min_correlation must be a number above 0, at most 1, got {min_correlation!r}")
    if not (is_whole(n_neighbors) and n_neighbors >= 1):
        raise ValueError(f"n_neighbors must be a whole number, 1 or more, got {n_neighbors!r}")


# --- columns ----------------------------------------------------------------------------------------------


def one_step(values: NDArray[Any], n_threads: int) -> tuple[FloatArray, FloatArray]:
    """Location and scale of each column, in one step from median and MAD."""

    def measure(block: FloatArray, group: slice) -> FloatArray:
        out = np.empty((block.shape[0], 2))
        one_step_columns(block, np.empty(block.shape[1]), out)
        return out

    figures = column_figures(measure, values, 2, n_threads)
    return figures[:, 0].copy(), figures[:, 1].copy()


def _standardized(values: NDArray[Any], loc: FloatArray, scale: FloatArray, n_threads: int) -> FloatArray:
    """The standardized columns as rows, (p, n)."""

    def change(part: FloatArray, group: slice) -> None:
        part -= loc[group, None]
        part /= scale[group, None]

    return columns_of(values, change, n_threads)


def _without_outliers(z: FloatArray, cutoff: float) -> FloatArray:
    return np.where(np.abs(z) <= cutoff, z, np.nan)


def _in_parts(
    job: Callable[[slice], None], shape: tuple[int, int], n_threads: int, step: int = _PART, progress: bool = False
) -> None:
    """Call `job` for a few of (p, n) columns at a time, the last ones first, each of which costs as much as p do."""
    p, n = shape
    parts = [(slice(start, min(start + step, p)),) for start in range(0, p, step)][::-1]
    with progress_bar(p, " columns", progress) as bar:
        work_off(job, parts, (n, p * p), n_threads, bar)


# --- correlated columns -----------------------------------------------------------------------------------


def _by_pairs(u: FloatArray, quantile: float, least: float, own: bool, n_threads: int, progress: bool) -> _Relations:
    """The columns that are correlated with each, and slopes on them, pair by pair."""
    p, n = u.shape
    correlation = np.zeros((p, p))
    limit, cutoff = float(chdtri(2, 1.0 - quantile)), math.sqrt(chdtri(1, 1.0 - quantile))

    def correlate(part: slice) -> None:
        rows = np.zeros((part.stop - part.start, p))
        pair_correlations(u, part.start, part.stop, limit, np.empty((3, n)), rows)
        correlation[part] = rows

    _in_parts(correlate, u.shape, n_threads, progress=progress)
    correlation += correlation.T
    chosen = [_ordered(row, least) for row in correlation]
    relations = _joined(chosen, [row[one] for row, one in zip(correlation, chosen, strict=True)], None, own)

    def regress(part: slice) -> None:
        first, others, _, slopes = relations
        neighbor_slopes(u, part.start, part.stop, first, others, cutoff, np.empty((2, n)), slopes)

    _in_parts(regress, u.shape, n_threads)
    if own:
        relations.slopes[relations.first[:-1][np.diff(relations.first) > 0]] = 1.0
    return relations


def _by_wrapping(z: FloatArray, least: float, most: int, own: bool, n_threads: int, progress: bool) -> _Relations:
    """The same from products of the wrapped columns."""
    p = z.shape[0]
    w, present = _wrapped_rows(z, n_threads)
    squares = w * w
    totals = squares.sum(axis=1)
    chosen: list[Any] = [None] * p
    correlations, slopes = list(chosen), list(chosen)

    def correlate(part: slice) -> None:
        product = products.cross_rows(w, part, w)
        theirs = np.broadcast_to(totals, product.shape)
        ours = np.broadcast_to(totals[part, None], product.shape)
        if present is not None:  # over the rows where both have a value
            theirs, ours = products.cross_rows(present, part, squares), products.cross_rows(squares, part, present)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.nan_to_num(product / np.sqrt(theirs * ours))
            slope = product / theirs
        for row, j in enumerate(range(part.start, part.stop)):
            correlation[row, j] = 0.0
            chosen[j] = _ordered(correlation[row], least)[:most]
            correlations[j], slopes[j] = correlation[row, chosen[j]], slope[row, chosen[j]]

    _in_parts(correlate, z.shape, n_threads, _PANEL, progress)
    return _joined(chosen, correlations, slopes, own)


def _wrapped_rows(z: FloatArray, n_threads: int) -> tuple[FloatArray, FloatArray | None]:
    """psi of the standardized columns, less their means, 0 where missing; and where values are, unless everywhere."""
    w = z.copy()
    constants = wrap_constants().array

    def job(group: slice) -> None:
        zeros, ones = np.zeros(w[group].shape[0]), np.ones(w[group].shape[0])
        wrap_columns(w[group], zeros, ones, zeros, ones, constants)

    for_each_group(job, (z.shape[1], z.shape[0]), n_threads)
    missing = np.isnan(z)
    w[missing] = 0.0
    w -= w.sum(axis=1, keepdims=True) / np.maximum((~missing).sum(axis=1, keepdims=True), 1)
    w[missing] = 0.0
    return w, (~missing).astype(np.float64) if missing.any() else None


def _ordered(correlation: FloatArray, least: float) -> IntArray:
    """Positions of those that are large enough, the largest first."""
    size = np.abs(correlation)
    large = np.flatnonzero(size >= least)
    return large[np.argsort(-size[large], kind="stable")]


def _joined(chosen: list[Any], correlations: list[Any], slopes: list[Any] | None, own: bool) -> _Relations:
    """The lists of all columns in one, those that are not empty with the column itself in front if it takes part."""
    p = len(chosen)
    if own:
        chosen = [np.append(j, one) if len(one) else one for j, one in enumerate(chosen)]
        correlations = [np.append(1.0, one) if len(one) else one for one in correlations]
        slopes = None if slopes is None else [np.append(1.0, one) if len(one) else one for one in slopes]
    first = np.zeros(p + 1, dtype=np.int64)
    np.cumsum([len(one) for one in chosen], out=first[1:])
    joined = np.concatenate(correlations)
    known = np.empty(joined.size) if slopes is None else np.concatenate(slopes)
    return _Relations(first, np.concatenate(chosen).astype(np.int64), joined, known)


# --- predictions ------------------------------------------------------------------------------------------


def _predictions(u: FloatArray, relations: _Relations, n_threads: int) -> FloatArray:
    """What the neighbors of each column predict, before it is deshrunk, (p, n); 0 for columns that have none."""
    predicted = np.empty(u.shape)
    weights = np.abs(relations.correlations)
    first = np.require(relations.first, requirements="W")  # as kernels take them
    others = np.require(relations.neighbors, requirements="W")
    slopes = np.require(relations.slopes, requirements="W")

    def predict(part: slice) -> None:
        work = np.empty(u.shape[1])
        predict_columns(u, part.start, part.stop, first, others, weights, slopes, work, predicted[part])

    _in_parts(predict, u.shape, n_threads)
    return predicted


def _deshrinkage(z: FloatArray, predicted: FloatArray, cutoff: float, n_threads: int) -> tuple[FloatArray, FloatArray]:
    """What predictions are to be multiplied by, and the scale of the residuals then."""
    figures = np.empty((z.shape[0], 2))

    def measure(part: slice) -> None:
        deshrink_columns(z[part], predicted[part], cutoff, np.empty((2, z.shape[1])), figures[part])

    _in_parts(measure, z.shape, n_threads)
    return figures[:, 0].copy(), figures[:, 1].copy()


# --- cells and rows ---------------------------------------------------------------------------------------


def _judged(part: Any, z: FloatArray, shrunken: FloatArray, rule: _Rule) -> Cells:
    """The cells of a matrix `part`, from its standardized columns and what is predicted for them."""
    predicted = shrunken * rule.deshrinkage[:, None]
    residuals = np.ascontiguousarray(((z - predicted) / rule.residual_scale[:, None]).T)
    expected = rule.loc + rule.scale * predicted.T
    flagged = np.abs(residuals) > rule.cutoff
    matrix = as_matrix(part)
    imputed = np.where(flagged | np.isnan(residuals), expected, matrix.values)
    if matrix.was_vector:
        imputed = imputed[:, 0]
    unjudged = np.zeros(len(residuals), dtype=bool)
    cells = Cells(expected, residuals, flagged, frames.restored(part, part, imputed), _outlying(residuals), unjudged)
    return _judged_rows(cells, rule)


def _outlying(residuals: FloatArray) -> FloatArray:
    """Mean over the cells of each row of the distribution function of their squared residuals; NaN without cells."""
    probability = np.sort(erf(np.abs(residuals) * math.sqrt(0.5)), axis=1)  # the sum is the same in any order
    n = (~np.isnan(probability)).sum(axis=1)
    return np.asarray(np.where(n > 0, np.nansum(probability, axis=1), np.nan) / np.maximum(n, 1))


def _with_rows(rule: _Rule, outlying: FloatArray) -> _Rule:
    """The rule with median and normalized MAD of the rows' outlyingness; no row deviates where the latter is 0."""
    known = outlying[~np.isnan(outlying)]
    center = float(np.median(known))
    spread = MAD_FACTOR * float(np.median(np.abs(known - center)))
    return rule._replace(row_center=center, row_scale=spread if spread > 0.0 else math.inf)


def _judged_rows(cells: Cells, rule: _Rule) -> Cells:
    """With the outlyingness of rows standardized, and flagged where it is large."""
    outlying = (cells.row_outlyingness - rule.row_center) / rule.row_scale
    return cells._replace(row_outlyingness=outlying, flagged_rows=outlying > rule.cutoff)
