"""Pictures of fits, drawn with matplotlib.

Each function draws on the axes given as `ax`, or on those of a new figure, and returns the axes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri, ndtri

from powerkern import _frames
from powerkern._status import is_failed
from powerkern._typing import FloatArray
from powerkern._validate import Matrix, as_matrix, check_n_features, column_label
from powerkern.cellwise import WrappedPCA
from powerkern.fitting import PowerFit, fit
from powerkern.joint import JointFit
from powerkern.outliers import reliability_diagram
from powerkern.outliers.measures import Strategy
from powerkern.regression import RegressionFit, fit_regression

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "cell_map",
    "outlier_map",
    "profile_plot",
    "qq_plot",
    "reliability_plot",
    "residual_plot",
    "search_plot",
    "sensitivity_plot",
]


#: Area of all markers of a reliability diagram together, in square points.
_MARKERS = 600.0


def qq_plot(X: object, fit: PowerFit | JointFit, *, column: int | str = 0, ax: Axes | None = None) -> Axes:
    """Normal QQ plot of one column before and after its transform.

    The sorted values, less their mean and divided by their standard deviation, over the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``. What is normal lies on the diagonal. Values after a fit with
    ``standardize=True`` are drawn as `PowerFit.transform` gives them, so that a robust fit shows outliers as such:
    those that it left out are red, and the band holds what it kept (`PowerFit.weights`).

    Parameters
    ----------
    X : (n, p) array-like, or (n,) where the fit was to one column
        The data; missing values are left out.
    fit : PowerFit or JointFit
        The fit.
    column : int or str, default 0
        Which column, by position or by name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the points before and after; the third one, the values left out, if there are any.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import qq_plot
    >>> x = np.random.default_rng(0).lognormal(size=200)
    >>> ax = qq_plot(x, pk.fit(x, family="box-cox"))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['before', 'after']
    """
    fit = _by_column(fit)
    matrix = _matrix(X, fit)
    j = _position(column, matrix, fit)
    before = np.asarray(matrix.values[:, j], dtype=np.float64)
    after = fit.transform(matrix.values)[:, j].astype(np.float64)
    kept = ~np.isnan(before)
    n = int(kept.sum())
    if n == 0:
        raise ValueError(f"{column_label(j, matrix.names or fit.column_names)} has no values; there is nothing to draw")
    scores = _normal_scores(n)
    ax = _axes(ax)
    ax.plot(scores, np.sort(_standardized(before[kept])), ".", label="before", color="0.6")
    shown = after[kept] if fit.standardize else _standardized(after[kept])
    order = np.argsort(shown)
    shown, left_out = shown[order], fit.weights(matrix.values)[kept, j][order] == 0.0
    ax.plot(scores, shown, ".", label="after", color="C0")
    if left_out.any():
        ax.plot(scores[left_out], shown[left_out], ".", label="left out of the fit", color="C3")
        ax.axhspan(shown[~left_out][0], shown[~left_out][-1], color="C0", alpha=0.1, linewidth=0.0)
    ax.axline((0.0, 0.0), slope=1.0, color="0.2", linewidth=0.8)
    ax.set(xlabel="normal score", ylabel="standardised value", title=_title(j, matrix, fit))
    ax.legend()
    return ax


def profile_plot(
    fit: PowerFit | RegressionFit,
    X: object = None,
    *,
    column: int | str = 0,
    level: float = 0.95,
    lmbdas: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Profile log-likelihood of one column's lambda, with its likelihood interval.

    The horizontal line lies half a chi-square quantile below the maximum; it cuts the curve at the ends of the
    interval that `PowerFit.confint` gives. It is the picture that R's ``MASS::boxcox`` draws.

    Parameters
    ----------
    fit : PowerFit or RegressionFit
        The fit, of columns alone or given covariates.
    X : array-like, optional
        The fitted data, where a `PowerFit` no longer has them; see `PowerFit.profile`. A `RegressionFit` takes none.
    column : int or str, default 0
        Which column, or response, by position or by name.
    level : float, default 0.95
        Confidence level of the interval.
    lmbdas : (k,) array-like, optional
        Where to evaluate; default: 101 points, twice as wide as the interval.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first line is the curve.

    Raises
    ------
    TypeError
        A JointFit, whose likelihood is a function of all lambdas: `JointFit.confint` has its profile intervals.
    ValueError
        The column could not be fitted, or its lambda is not the maximum of the likelihood and `lmbdas` is not given.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import profile_plot
    >>> fit = pk.fit(np.random.default_rng(0).lognormal(size=200), family="box-cox")
    >>> curve = profile_plot(fit).lines[0]
    >>> bool(np.isclose(curve.get_ydata().max(), -fit.nll[0], rtol=1e-4))
    True
    """
    likelihood = _likelihood_of(fit, X)
    power = fit.power_fit if isinstance(fit, RegressionFit) else fit
    j = _position(column, None, power)
    low, high = (float(end[j]) for end in likelihood.confint(level))
    if lmbdas is None:
        if not np.isfinite(high - low):
            label = column_label(j, fit.column_names)
            raise ValueError(f"{label} has no likelihood interval ({fit.status_text[j]}); pass lmbdas")
        lmbdas = np.linspace(low - 0.5 * (high - low), high + 0.5 * (high - low), 101)
    points = np.asarray(lmbdas, dtype=np.float64)
    ax = _axes(ax)
    ax.plot(points, -likelihood.profile(points)[j], color="C0")
    ax.axvline(fit.lmbda[j], color="C1", label=f"lambda = {fit.lmbda[j]:.3g}")
    if np.isfinite(high - low):
        ax.axhline(-fit.nll[j] - 0.5 * chdtri(1, 1.0 - level), color="0.4", linewidth=0.8, linestyle="--")
        ax.axvspan(low, high, color="C1", alpha=0.15, label=f"{level:.0%} interval: {low:.3g} to {high:.3g}")
    ax.locator_params(axis="x", nbins=6)
    ax.set(xlabel="lambda", ylabel="log-likelihood", title=column_label(j, fit.column_names))
    ax.legend()
    return ax


def residual_plot(Y: object, X: object, fit: RegressionFit, *, column: int | str = 0, ax: Axes | None = None) -> Axes:
    """Normal QQ plot of the residuals of one response, untransformed and transformed.

    The sorted residuals over their standard deviation (``sqrt(RSS/n)``), over the normal scores
    ``Phi^-1((i - 1/3)/(n + 1/3))``: those of the linear model of the response as it is (lambda = 1), and of the fit.

    Parameters
    ----------
    Y : (n, p) or (n,) array-like
        The responses.
    X : (n, k) or (n,) array-like
        The covariates, or the data frame that the fit's formula was evaluated in.
    fit : RegressionFit
        The fit.
    column : int or str, default 0
        Which response, by position or by name.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the residuals before and after.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import residual_plot
    >>> from powerkern.regression import fit_regression
    >>> x = np.arange(50.0)
    >>> y = np.exp(0.1 * x + np.random.default_rng(0).normal(size=50))
    >>> ax = residual_plot(y, x, fit_regression(y, x))
    >>> [line.get_label() for line in ax.lines[:2]]
    ['before', 'after']
    """
    power = fit.power_fit
    matrix = _matrix(Y, power)
    j = _position(column, matrix, power)
    plain = fit_regression(
        matrix.values[:, j], X, fit.families[j], formula=fit.formula,
        intercept=fit.formula is not None or fit.intercept, lmbda=1.0, shift=power.shift[j],
    )  # fmt: skip
    before = plain.residuals(standardized=True)
    after = fit.residuals(Y, X, standardized=True).reshape(len(before), -1)[:, j]
    ax = _axes(ax)
    for residuals, label, color in ((before, "before", "0.6"), (after, "after", "C0")):
        known = np.sort(residuals[~np.isnan(residuals)])
        ax.plot(_normal_scores(known.size), known, ".", label=label, color=color)
    ax.axline((0.0, 0.0), slope=1.0, color="0.2", linewidth=0.8)
    ax.set(xlabel="normal score", ylabel="standardised residual", title=_title(j, matrix, power))
    ax.legend()
    return ax


def cell_map(
    X: object,
    fit: PowerFit | JointFit,
    *,
    cutoff: float | None = None,
    max_shape: tuple[int, int] = (200, 100),
    ax: Axes | None = None,
) -> Axes:
    """Map of the cells of a matrix on the transformed, standardised scale: outlying ones are coloured.

    A cell is yellow up to the cutoff, then red (high) or blue (low), the darker the further out; missing cells are
    blank. Of a large matrix each block of cells is drawn in the mean of its colours.

    Parameters
    ----------
    X : (n, p) array-like
        The data.
    fit : PowerFit or JointFit
        The fit; made with ``standardize=True``, and preferably robust (``estimator="rewml"``), since outliers
        in a maximum likelihood fit hide themselves.
    cutoff : float, optional
        How far out is outlying; default: that of the fit, 2.576 unless a `quantile` was given to it, beyond which lies
        one normal value in a hundred.
    max_shape : (int, int), default (200, 100)
        Largest number of rows and columns to draw; more are drawn as blocks.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first image holds a number for each cell or block: 0 up to the cutoff, 1 (-1) from twice the cutoff on.

    References
    ----------
    .. [1] P. J. Rousseeuw and W. Van den Bossche, "Detecting deviating data cells", Technometrics 60, 2018, 135-145.

    Examples
    --------
    >>> import numpy as np, powerkern as pk
    >>> from powerkern.plot import cell_map
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> fit = pk.fit(X)
    >>> X[3, 2] = 40.0
    >>> float(cell_map(X, fit).images[0].get_array()[3, 2])
    1.0
    """
    fit = _by_column(fit)
    if not fit.standardize:
        raise ValueError("a cell map needs standardised values: fit with standardize=True")
    cutoff = float(ndtri(fit.quantile)) if cutoff is None else float(cutoff)
    if not cutoff > 0.0:
        raise ValueError(f"cutoff must be a positive number, got {cutoff}")
    if not (isinstance(max_shape, Sequence) and len(max_shape) == 2 and min(max_shape) >= 1):
        raise ValueError(f"max_shape must be two numbers of at least 1, rows and columns, got {max_shape!r}")
    matrix = _matrix(X, fit)
    z = fit.transform(matrix.values).astype(np.float64)
    z[:, is_failed(fit.status)] = np.nan  # not on a standardised scale
    excess = np.clip((np.abs(z) - cutoff) / cutoff, 0.0, 1.0) * np.sign(z)
    rows, columns = (-(-size // limit) for size, limit in zip(excess.shape, max_shape, strict=True))
    ax = _axes(ax)
    image = ax.imshow(
        _block_means(excess, rows, columns),
        cmap=_cell_colours(),
        vmin=-1.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, matrix.values.shape[1] - 0.5, matrix.values.shape[0] - 0.5, -0.5),
    )
    bar = ax.figure.colorbar(image, ax=ax, ticks=[-1.0, 0.0, 1.0])
    bar.ax.set_yticklabels([f"≤ -{2 * cutoff:.1f}", f"within ±{cutoff:.1f}", f"≥ {2 * cutoff:.1f}"])
    names = matrix.names or fit.column_names
    if names is not None and len(names) <= 40:
        ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set(xlabel="" if names else "column", ylabel="row")
    return ax


def outlier_map(fit: WrappedPCA, X: object = None, *, labels: Sequence[str] | int = 0, ax: Axes | None = None) -> Axes:
    """Outlier map of robust principal components: orthogonal distances over score distances.

    The lines are the cut-offs. Regular rows lie to the lower left of both; good leverage points to the right, orthogonal
    outliers above, bad leverage points beyond both [1]_.

    Parameters
    ----------
    fit : WrappedPCA
        The components, by `powerkern.cellwise.wrapped_pca`.
    X : (n, p) array-like, optional
        Rows to draw in place of those that were fitted.
    labels : int or sequence of str, default 0
        How many of the most distant outliers to label by the number of their row; or a label for every row, with which
        all outliers are labelled.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the regular rows and the outliers, as points.

    Raises
    ------
    ValueError
        The columns of `X` are not those of the fit, or there is not one label a row.

    References
    ----------
    .. [1] M. Hubert, P. J. Rousseeuw, K. Vanden Branden, "ROBPCA: a new approach to robust principal component
       analysis", Technometrics 47, 2005, 64-79.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.cellwise import wrapped_pca
    >>> from powerkern.plot import outlier_map
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(100, 5))
    >>> X[7] = 9.0
    >>> ax = outlier_map(wrapped_pca(X, 2), labels=1)
    >>> [text.get_text() for text in ax.texts]
    ['7']
    """
    inside, outside = (fit.score_distances, fit.orthogonal_distances) if X is None else fit.distances(X)
    beyond = np.fmax(inside / fit.score_cutoff, outside / (fit.orthogonal_cutoff or np.inf))
    texts, chosen = _row_labels(labels, beyond)
    ax = _axes(ax)
    far = beyond > 1.0
    for rows, label, color in ((~far, "regular", "0.5"), (far, "outlying", "C3")):
        ax.plot(inside[rows], outside[rows], ".", label=label, color=color)
    for i in chosen:
        ax.annotate(texts[i], (inside[i], outside[i]), xytext=(3.0, 3.0), textcoords="offset points", fontsize="small")
    ax.axvline(fit.score_cutoff, color="0.2", linewidth=0.8)
    ax.axhline(fit.orthogonal_cutoff, color="0.2", linewidth=0.8)
    ax.set(xlabel=f"score distance ({fit.eigenvalues.size} components)", ylabel="orthogonal distance")
    ax.set(xlim=(0.0, None), ylim=(0.0, None))
    return ax


def _row_labels(labels: Sequence[str] | int, beyond: FloatArray) -> tuple[Sequence[str], NDArray[np.intp]]:
    """A label a row, and the rows to label."""
    far = np.flatnonzero(beyond > 1.0)
    if isinstance(labels, int | np.integer):
        return [str(i) for i in range(beyond.size)], far[np.argsort(-beyond[far], kind="stable")][:labels]
    if len(labels) != beyond.size:
        raise ValueError(f"labels has {len(labels)} entries, there are {beyond.size} rows; pass one label per row")
    return [str(label) for label in labels], far


def sensitivity_plot(
    x: ArrayLike,
    points: ArrayLike,
    *,
    family: str = "yeo-johnson",
    estimators: Sequence[str] = ("mle", "rewml"),
    ax: Axes | None = None,
) -> Axes:
    """Sensitivity curves of lambda: what one more value does, depending on where it lies.

    ``SC(z) = (n + 1) (lambda(x_1, ..., x_n, z) - lambda(x_1, ..., x_n))``: bounded for a robust estimator, unbounded
    for maximum likelihood.

    Parameters
    ----------
    x : (n,) array-like
        The sample; missing values are left out.
    points : (k,) array-like
        Values of z.
    family : {"yeo-johnson", "box-cox"}, default "yeo-johnson"
        The transform.
    estimators : sequence of str, default ("mle", "rewml")
        Estimators to compare, as for `powerkern.fit`.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        One line for each estimator.

    References
    ----------
    .. [1] J. Raymaekers and P. J. Rousseeuw, "Transforming variables to central normality", Machine Learning 113, 2024,
       4953-4975, Section 2.6.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.plot import sensitivity_plot
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> ax = sensitivity_plot(x, np.linspace(-8.0, 8.0, 33))
    >>> for line in ax.lines[:2]:
    ...     print(line.get_label(), abs(line.get_ydata()[-1]).round())
    mle 42.0
    rewml 0.0
    """
    sample, z = np.asarray(x, dtype=np.float64), np.asarray(points, dtype=np.float64)
    if sample.ndim != 1 or z.ndim != 1:
        raise ValueError(f"x and points must be one-dimensional, got shapes {sample.shape} and {z.shape}")
    sample = sample[~np.isnan(sample)]
    contaminated = np.vstack([np.broadcast_to(sample[:, None], (sample.size, z.size)), z])
    ax = _axes(ax)
    for estimator in estimators:
        base = fit(sample, family, estimator).lmbda
        ax.plot(z, (sample.size + 1) * (fit(contaminated, family, estimator).lmbda - base), label=estimator)
    ax.axhline(0.0, color="0.4", linewidth=0.8)
    ax.set(xlabel="added value z", ylabel="sensitivity of lambda")
    ax.legend()
    return ax


def reliability_plot(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    strategy: Strategy = "equal-area",
    n_bins: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Reliability diagram of outlier probabilities: fraction of outliers against mean probability, bin by bin.

    Parameters
    ----------
    y_true, y_prob, strategy, n_bins
        As in `powerkern.outliers.reliability_diagram`.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        A marker for each bin, its area proportional to the number of scores; on the dashed diagonal, probabilities are
        frequencies.

    Examples
    --------
    >>> from powerkern.plot import reliability_plot
    >>> ax = reliability_plot([0, 1, 0, 1], [0.1, 0.2, 0.8, 0.9], n_bins=2)
    >>> ax.get_ylabel()
    'fraction of outliers'
    """
    diagram = reliability_diagram(y_true, y_prob, strategy=strategy, n_bins=n_bins)
    ax = _axes(ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.4", linewidth=0.8, linestyle="--")
    full = diagram.n_scores > 0.0
    x, y = diagram.mean_prob[full], diagram.frequency[full]
    line = ax.plot(x, y)[0]
    ax.scatter(x, y, s=_MARKERS * diagram.n_scores[full] / diagram.n_scores.sum(), color=line.get_color())
    ax.set(xlabel="mean probability", ylabel="fraction of outliers")
    return ax


def search_plot(scores: ArrayLike, *, ax: Axes | None = None) -> Axes:
    """History of a search: the score of every trial, and the best one so far.

    Parameters
    ----------
    scores : (k,) array-like
        Scores in the order of the trials, greater being better; NaN for trials that failed.
    ax : matplotlib Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    matplotlib Axes
        Its first two lines are the trials and the best so far.

    Examples
    --------
    >>> from powerkern.plot import search_plot
    >>> search_plot([0.7, 0.6, 0.9, 0.8]).lines[1].get_ydata().tolist()
    [0.7, 0.7, 0.9, 0.9]
    """
    history = np.asarray(scores, dtype=np.float64)
    if history.ndim != 1 or history.size == 0:
        raise ValueError(f"scores must be a one-dimensional array of at least one score, got shape {history.shape}")
    trials = np.arange(1, history.size + 1)
    ax = _axes(ax)
    ax.plot(trials, history, ".", color="0.6", label="trial")
    ax.plot(trials, np.fmax.accumulate(history), color="C0", drawstyle="steps-post", label="best so far")
    ax.set(xlabel="trial", ylabel="score")
    ax.legend()
    return ax


# --- parts --------------------------------------------------------------------------------------------


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("powerkern.plot needs matplotlib: pip install 'powerkern[plot]'") from None
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def _by_column(fit: PowerFit | JointFit) -> PowerFit:
    """The transforms of single columns."""
    return fit.columns if isinstance(fit, JointFit) else fit


def _normal_scores(n: int) -> FloatArray:
    """Approximate medians of the order statistics of n normal values."""
    return np.asarray(ndtri((np.arange(1, n + 1) - 1.0 / 3.0) / (n + 1.0 / 3.0)))


class _Likelihood(NamedTuple):
    """The functions of a fit that a picture of its likelihood needs."""

    confint: Callable[[float], tuple[FloatArray, FloatArray]]
    profile: Callable[[FloatArray], FloatArray]


def _likelihood_of(fit: PowerFit | RegressionFit | JointFit, X: object) -> _Likelihood:
    if isinstance(fit, JointFit):
        raise TypeError(
            "profile_plot takes a PowerFit or a RegressionFit; of a JointFit, whose likelihood is a function of all "
            "lambdas, confint has the profile intervals"
        )
    if not isinstance(fit, RegressionFit):
        values = None if X is None else _matrix(X, fit).values
        return _Likelihood(lambda level: fit.confint(level, values), lambda lmbdas: fit.profile(lmbdas, values))
    if X is not None:
        raise ValueError("X goes with a PowerFit; a RegressionFit has its data, or is to be fitted again")
    return _Likelihood(lambda level: fit.confint(level), lambda lmbdas: fit.profile(lmbdas))


def _matrix(X: object, fit: PowerFit) -> Matrix:
    """X, checked to have the columns of the fit."""
    matrix = as_matrix(_frames.columns_named(X, fit.column_names))
    check_n_features(matrix.values, fit.n_features, matrix.names, fit.column_names)
    return matrix


def _position(column: int | str, matrix: Matrix | None, fit: PowerFit) -> int:
    """Where a column stands."""
    if isinstance(column, str):
        names = (matrix.names if matrix is not None else None) or fit.column_names or []
        if column not in names:
            raise ValueError(
                f"there is no column {column!r}; the columns are {', '.join(map(repr, names)) or 'unnamed'}"
            )
        return names.index(column)
    j = operator.index(column)
    if not -fit.n_features <= j < fit.n_features:
        raise ValueError(f"there is no column {j}; the fit has {fit.n_features}")
    return j % fit.n_features


def _title(j: int, matrix: Matrix, fit: PowerFit) -> str:
    return f"{column_label(j, matrix.names or fit.column_names)}, lambda = {fit.lmbda[j]:.3g}"


def _standardized(values: FloatArray) -> FloatArray:
    spread = float(values.std())
    standardized: FloatArray = (values - values.mean()) / (spread or 1.0)
    return standardized


def _block_means(values: FloatArray, rows: int, columns: int) -> FloatArray:
    """Means of blocks of cells, NaN left out; the last blocks may be smaller."""
    row_starts, column_starts = np.arange(0, values.shape[0], rows), np.arange(0, values.shape[1], columns)

    def sums(of: NDArray[Any]) -> FloatArray:
        by_row: FloatArray = np.add.reduceat(of, row_starts, axis=0, dtype=np.float64)
        return np.asarray(np.add.reduceat(by_row, column_starts, axis=1))

    seen = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums(np.where(seen, values, 0.0)) / sums(seen))


def _cell_colours() -> Any:
    """Blue, yellow, red; missing cells are left blank."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["midnightblue", "dodgerblue", "lightyellow", "orangered", "darkred"]
    return LinearSegmentedColormap.from_list("cells", colours)
