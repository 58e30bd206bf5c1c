"""Methods compared over many cases: mean ranks, and which of them differ."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from powerkern._typing import FloatArray


class RankComparison(NamedTuple):
    """Ranks of methods over cases, and tests of their differences."""

    #: Mean rank of each method over the cases, (k,); 1 is best.
    mean_ranks: FloatArray
    #: For each pair of methods, p-value of Wilcoxon's signed-rank test, adjusted by Holm's procedure, (k, k).
    p_values: FloatArray
    #: p-value of Friedman's test that no method differs; of two methods, that of their pair.
    friedman: float

    def groups(self, alpha: float = 0.05) -> list[tuple[int, ...]]:
        """Methods that are next to each other by mean rank and of which no pair differs.

        Parameters
        ----------
        alpha : float, default 0.05
            Level of all tests together.

        Returns
        -------
        list of tuple of int
            The largest such groups of at least two, from the best mean rank; each in order of mean rank.
        """
        order = np.argsort(self.mean_ranks, kind="stable")
        alike = self.p_values[np.ix_(order, order)] >= alpha
        found: list[tuple[int, ...]] = []
        end = 0  # of the last group
        for i in range(order.size):
            j = i + 1
            while j < order.size and alike[i : j + 1, i : j + 1].all():
                j += 1
            if j - i > 1 and j > end:
                found.append(tuple(order[i:j].tolist()))
                end = j
        return found


def compare_ranks(errors: ArrayLike) -> RankComparison:
    """Mean ranks of methods over cases, with the tests that say which of them differ.

    As in diagrams of critical differences [1]_, with Wilcoxon's signed-rank test for every pair in place of Nemenyi's,
    whose outcome depends on the other methods [2]_, and Holm's adjustment for their number.

    Parameters
    ----------
    errors : (n, k) array-like
        A row for each case (data set and detector), a column for each method; lower is better. Of scores such as
        `skill_score`, pass the negative.

    Returns
    -------
    RankComparison

    Raises
    ------
    ValueError
        Not a matrix of at least two rows and columns, or NaN.

    Notes
    -----
    Ties share their mean rank. Wilcoxon's test leaves out cases in which two methods are equal; where they always are,
    the p-value is 1.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006, 1-30.
    .. [2] A. Benavoli, G. Corani, F. Mangili, "Should we really use post-hoc tests based on mean-ranks?", JMLR 17,
       2016, 1-10.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern.outliers import compare_ranks
    >>> errors = np.random.default_rng(0).uniform(size=(30, 3)) + [0.0, 0.0, 0.5]
    >>> compare_ranks(errors).mean_ranks
    array([1.63333333, 1.6 , 2.76666667])
    >>> compare_ranks(errors).groups()
    [(1, 0)]
    """
    from scipy import stats  # costs more time than to import powerkern

    table = np.asarray(errors, dtype=np.float64)
    if table.ndim != 2 or min(table.shape) < 2 or np.isnan(table).any():
        raise ValueError(
            f"errors must be at least two rows (cases) of at least two columns (methods) without NaN, got {table.shape}"
        )
    k = table.shape[1]
    pairs = list(combinations(range(k), 2))
    adjusted = _holm(np.array([_wilcoxon(table[:, i], table[:, j]) for i, j in pairs]))
    p_values = np.eye(k)
    for (i, j), p in zip(pairs, adjusted, strict=True):
        p_values[i, j] = p_values[j, i] = p
    return RankComparison(stats.rankdata(table, axis=1).mean(axis=0), p_values, _friedman(table, adjusted))


def _friedman(table: FloatArray, p_values: FloatArray) -> float:
    """p-value of Friedman's test, or of the only pair."""
    from scipy import stats

    if table.shape[1] == 2:
        return float(p_values[0])
    if (table == table[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*table.T).pvalue)


def _wilcoxon(a: FloatArray, b: FloatArray) -> float:
    from scipy import stats

    differ = a != b
    return float(stats.wilcoxon(a[differ] - b[differ]).pvalue) if differ.any() else 1.0


def _holm(p: FloatArray) -> FloatArray:
    """Adjusted p-values: the smallest times their number, the next times one less, and none below one before."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)), 1.0)
    return adjusted
