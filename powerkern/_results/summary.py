"""Summary of a fit: a table with a row for each column, which can be printed or converted to arrays or a data frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._results.central_normality import CentralNormality
from powerkern._results.display import SHOWN, Entries, format_table, html_page, label_cells
from powerkern._results.inference import (
    TESTED,
    Likelihood,
    LikelihoodOptimum,
    LikelihoodRatio,
    Method,
    confidence_interval,
    ratio_test,
)
from powerkern._results.normality import Normality
from powerkern._typing import FloatArray, Weights

#: Largest number of rows in printed text, and in the representation if the fit has more than `SHOWN` columns.
_PRINTED = 30
_REPRESENTED = 15
#: Short names in summaries for measures of normality.
_SHORTER = {"pvalue": "p_normal"}

#: Note that explains the entries of likelihood ratio tests.
_NOTE_ON_TESTS = "lr, p: likelihood ratio tests of lambda = 0 and 1, chi-square with 1 degree of freedom"

#: Note in place of the tests.
_NOTE_WITHOUT_DATA = (
    "no likelihood ratio tests: the fit no longer has its data; call summary(X), or fit a regression again"
)


class Summary:
    """Table of the results of a fit, with a row for each column; ``print(summary)`` shows the first 30.

    Attributes
    ----------
    title : str
        Line above the table.
    names : ndarray of str
        Names of the columns.
    blocks : list of dict of ndarray
        Entries of the table by name, in blocks that are printed one below another.
    tests : dict of LikelihoodRatio
        Tests of all columns together, which joint fits have; printed below the table.
    notes : list of str
        Lines below the table and the tests.

    Examples
    --------
    >>> import numpy as np
    >>> from powerkern._results.summary import Summary
    >>> summary = Summary("Box-Cox, 2 columns", ["a", "b"], [{"lmbda": np.array([0.5, 1 / 3])}], notes=["no status"])
    >>> print(summary)
    Box-Cox, 2 columns
    <BLANKLINE>
    column    lmbda
    a           0.5
    b       0.33333
    <BLANKLINE>
    no status
    >>> summary.to_dict()["column"].tolist(), summary.to_frame().index.tolist()
    (['a', 'b'], ['a', 'b'])
    """

    def __init__(
        self,
        title: str,
        names: Iterable[str],
        blocks: Sequence[Entries],
        *,
        tests: Mapping[str, LikelihoodRatio] | None = None,
        notes: Iterable[str] = (),
    ) -> None:
        self.title = title
        self.names = np.array(list(names), dtype=np.str_)
        self.blocks = [{name: np.asarray(entry) for name, entry in block.items()} for block in blocks]
        self.tests = dict(tests or {})
        self.notes = list(notes)

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """Return all entries of the table as arrays by name; the entry "column" holds the names of the columns."""
        entries = {"column": self.names}
        for block in self.blocks:
            entries.update(block)
        return entries

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, indexed by the names of the columns.

        Raises
        ------
        ImportError
            If pandas is not installed; `to_dict` does not need it.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas; to_dict needs no pandas") from None
        entries = self.to_dict()
        index = pd.Index(entries.pop("column").tolist(), name="column")
        return pd.DataFrame(entries, index=index)

    def to_text(self, max_rows: int | None = _PRINTED) -> str:
        """Return the table as text, with at most `max_rows` rows; None includes all rows."""
        parts = [self.title, *map(format_table, self._visible_blocks(max_rows)), *self._note_on_rest(max_rows)]
        if self.tests:
            parts.append(format_table(_tests_entries(self.tests)))
        if self.notes:
            parts.append("\n".join(self.notes))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks, in blocks that scroll rather than wrap."""
        tests = [_tests_entries(self.tests)] if self.tests else []
        tables = [table.items() for table in (*self._visible_blocks(_PRINTED), *tests)]
        return html_page(self.title, tables, [*self._note_on_rest(_PRINTED), *self.notes])

    def _visible_blocks(self, max_rows: int | None) -> list[dict[str, NDArray[Any]]]:
        """Return the first `max_rows` rows of each block, or all rows if `max_rows` is None.

        The first entry of each block is "column", with the names of the fitted columns.
        """
        return [
            {"column": label_cells(self.names[:max_rows]), **{name: entry[:max_rows] for name, entry in block.items()}}
            for block in self.blocks
        ]

    def _note_on_rest(self, max_rows: int | None) -> list[str]:
        """Return a line with the number of fitted columns after the first `max_rows`; no line if all are shown."""
        left = 0 if max_rows is None else len(self.names) - max_rows
        return [f"... and {left} more columns: to_text(None), to_dict() or to_frame()"] if left > 0 else []

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Return the table as text: all rows if there are at most 8, otherwise about 15 lines in all blocks."""
        few = max(_REPRESENTED // max(len(self.blocks), 1), 1)
        return self.to_text(SHOWN if len(self.names) <= SHOWN else few)


def likelihood_entries(
    optimum: LikelihoodOptimum,
    level: float,
    method: Method | None,
    likelihood: Callable[[], Likelihood] | None,
) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the summary entries that all maximum likelihood fits have, and notes that explain them.

    The entries "lr_0" and "p_0" hold the test of lambda = 0 in each column. Without data, there are no tests.
    Joint tests of all columns are not included.

    Parameters
    ----------
    optimum : LikelihoodOptimum
        The fitted lambdas, their standard errors and likelihoods.
    level : float
        Confidence level of the intervals.
    method : {"profile", "wald"} or None
        Kind of the intervals; None: "profile" if there are data, otherwise "wald".
    likelihood : callable or None
        Returns the likelihood of the data; None if there are no data.
    """
    rounded = optimum.rounded(level)
    method = method or ("wald" if likelihood is None else "profile")
    low, high = confidence_interval(optimum, level, method, likelihood or _no_likelihood)
    entries = {"lmbda": optimum.lmbda, "rounded": rounded, "se": optimum.se, "low": low, "high": high}
    kind = "Wald" if method == "wald" else "profile likelihood"
    notes = [f"low, high: {kind} interval of level {level:g}; rounded: a convenient power inside the Wald interval"]
    if likelihood is None:
        return entries, [*notes, _NOTE_WITHOUT_DATA]
    if optimum.nll.ndim == 0:
        return entries, notes
    for at in TESTED:
        test = ratio_test(optimum, at, likelihood)
        entries[f"lr_{at:g}"], entries[f"p_{at:g}"] = test.statistic, test.pvalue
    return entries, [*notes, _NOTE_ON_TESTS]


def _no_likelihood() -> Likelihood:
    raise ValueError("profile intervals need the data, which the fit no longer has; pass them, or method='wald'")


def note_on_bootstrap(level: float) -> str:
    """Return a note on the standard errors and intervals of robust fits; `level` is the confidence level."""
    return f"se: by a bootstrap; low, high: lambda -+ Phi^-1({0.5 + 0.5 * level:g}) se, of level {level:g}"


def normality_entries(
    figures: Normality, central: CentralNormality, n_drawn: int | None
) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the summary entries on normality, and notes that explain them.

    Parameters
    ----------
    figures : Normality
        Measures of normality before and after the transform.
    central : CentralNormality
        Test of central normality after the transform.
    n_drawn : int or None
        Number of rows of the random sample that was measured; None if all rows were measured.
    """
    entries = {}
    for name, before, after in zip(figures.before._fields, figures.before, figures.after, strict=True):
        short = _SHORTER.get(name, name)
        entries[short], entries[f"{short}_after"] = before, after
    entries["p_central"] = central.pvalue
    notes = [
        "p_normal: D'Agostino and Pearson's test, before and after the transform; p_central: test of the central 80 "
        "%, after"
    ]
    if n_drawn is not None:
        notes.append(f"measures of normality are for {n_drawn} rows, drawn at random")
    return entries, notes


def sampled_fraction(n_obs: FloatArray, values: NDArray[Any], weight: Weights) -> FloatArray:
    """Return the weight of the sampled `values` of each column as a fraction of the total weight `n_obs`.

    The fraction is 0 for a column without values.
    """
    present = ~np.isnan(values)
    drawn: FloatArray = np.count_nonzero(present, axis=0).astype(np.float64) if weight is None else weight @ present
    return np.divide(drawn, n_obs, out=np.zeros_like(drawn), where=n_obs > 0.0)


def _tests_entries(tests: Mapping[str, LikelihoodRatio]) -> Entries:
    """Return the entries of a table with one line for each test of all columns together."""
    found = list(tests.values())
    return {
        "likelihood ratio test": np.array(list(tests)),
        "lr": np.array([float(test.statistic) for test in found]),
        "df": np.array([test.df for test in found]),
        "p": np.array([float(test.pvalue) for test in found]),
    }
