"""Outlier maps of principal components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from powerkern._typing import FloatArray
from powerkern.cellwise import WrappedPCA
from powerkern.plot._drawing import axes_of, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def outlier_map(fit: WrappedPCA, X: object = None, *, labels: Sequence[str] | int = 0, ax: Axes | None = None) -> Axes:
    """Outlier map of robust principal components: orthogonal distances over score distances.

    The lines are the cut-offs. Regular rows lie to the lower left of both; good leverage points to the right,
    orthogonal outliers above, bad leverage points beyond both [1]_.

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
    TypeError
        `fit` is no WrappedPCA.
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
    if not isinstance(fit, WrappedPCA):
        raise TypeError(f"fit must be a WrappedPCA, by powerkern.cellwise.wrapped_pca, got {type(fit).__name__}")
    inside, outside = map(
        np.asarray, (fit.score_distances, fit.orthogonal_distances) if X is None else fit.distances(X)
    )
    beyond = np.fmax(inside / fit.score_cutoff, outside / (fit.orthogonal_cutoff or np.inf))
    texts, chosen = _row_labels(labels, beyond)
    ax = axes_of(ax)
    far = beyond > 1.0
    for rows, label, color in ((~far, "regular", "0.5"), (far, "outlying", "C3")):
        ax.plot(inside[rows], outside[rows], ".", label=label, color=color)
    for i in chosen:
        ax.annotate(texts[i], (inside[i], outside[i]), xytext=(3.0, 3.0), textcoords="offset points", fontsize="small")
    ax.axvline(fit.score_cutoff, color=ink(ax), linewidth=0.8)
    ax.axhline(fit.orthogonal_cutoff, color=ink(ax), linewidth=0.8)
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
