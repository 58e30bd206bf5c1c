"""The summary of a fit: a table with a row for each column, to print, or as arrays, or as a data frame."""

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

#: Rows that are printed, and those that the representation has if the table has more than `SHOWN` columns of the data.
_PRINTED = 30
_REPRESENTED = 15
#: Names of figures of normality that a summary shortens.
_SHORTER = {"pvalue": "p_normal"}

#: Descriptions of the tests among the entries of a likelihood.
_NOTE_ON_TESTS = "lr, p: likelihood ratio tests of lambda = 0 and 1, chi-square with 1 degree of freedom"

#: Instead of them.
_NOTE_WITHOUT_DATA = "no likelihood ratio tests: the fit no longer has its data"


class Summary:
    """The results of a fit, with a row for each column; ``print(summary)`` shows 30 of them.

    Attributes
    ----------
    title : str
        The line above the table.
    names : ndarray of str
        The columns.
    blocks : list of dict of ndarray
        The entries of the table, in groups that are printed one below another.
    tests : dict of LikelihoodRatio
        Tests of all columns together, of joint fits, printed below the table.
    notes : list of str
        Lines at the end.

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
        """Return all entries of the table by name, an array each; "column" has the names of the columns."""
        entries = {"column": self.names}
        for block in self.blocks:
            entries.update(block)
        return entries

    def to_frame(self) -> Any:
        """Return the table as a pandas data frame, with the columns' names as its index.

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
        """Return the table as text, with at most `max_rows` columns of the data; None for all of them."""
        parts = [self.title, *map(format_table, self._visible_blocks(max_rows)), *self._note_on_rest(max_rows)]
        if self.tests:
            parts.append(format_table(_tests_entries(self.tests)))
        if self.notes:
            parts.append("\n".join(self.notes))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        """Return the table for notebooks, in blocks that scroll rather than wrap."""
        tests = [_tests_entries(self.tests)] if self.tests else []
        tables = [table.items() for table in (*self._visible_blocks(_PRINTED), *tests)]
        return html_page(self.title, tables, [*self._note_on_rest(_PRINTED), *self.notes])

    def _visible_blocks(self, max_rows: int | None) -> list[dict[str, NDArray[Any]]]:
        """Return the blocks with the names of the columns, at most `max_rows` of these."""
        return [
            {"column": label_cells(self.names[:max_rows]), **{name: entry[:max_rows] for name, entry in block.items()}}
            for block in self.blocks
        ]

    def _note_on_rest(self, max_rows: int | None) -> list[str]:
        """Return a line about the columns that are not shown, if any."""
        left = 0 if max_rows is None else len(self.names) - max_rows
        return [f"... and {left} more columns: to_text(None), to_dict() or to_frame()"] if left > 0 else []

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        """Return the text of the first columns, or of all if they are few."""
        few = max(_REPRESENTED // max(len(self.blocks), 1), 1)
        return self.to_text(SHOWN if len(self.names) <= SHOWN else few)


def likelihood_entries(
    optimum: LikelihoodOptimum,
    level: float,
    method: Method | None,
    likelihood: Callable[[], Likelihood] | None,
) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the entries common to all maximum likelihood fits, and notes on them; without data there are no tests.

    "lr_0" and "p_0" are the test of lambda = 0 of each column; tests of all columns together are not entries.

    Parameters
    ----------
    optimum : LikelihoodOptimum
        The fitted lambdas, their standard errors and likelihoods.
    level : float
        Confidence level of the intervals.
    method : {"profile", "wald"} or None
        Kind of the intervals; None: "profile" if there are data.
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
    """Return a note on the intervals of robust fits."""
    return f"se: by a bootstrap; low, high: lambda -+ Phi^-1({0.5 + 0.5 * level:g}) se, of level {level:g}"


def normality_entries(
    figures: Normality, central: CentralNormality, n_drawn: int | None
) -> tuple[dict[str, FloatArray], list[str]]:
    """Return the entries on normality, and notes on them; `n_drawn` is the number of sampled rows, if any."""
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
    """Return the sampled fraction of the weight `n_obs` of each column; 0 for a column without values."""
    present = ~np.isnan(values)
    drawn: FloatArray = np.count_nonzero(present, axis=0).astype(np.float64) if weight is None else weight @ present
    return np.divide(drawn, n_obs, out=np.zeros_like(drawn), where=n_obs > 0.0)


def _tests_entries(tests: Mapping[str, LikelihoodRatio]) -> Entries:
    """Return tests of all columns together as entries, one per line."""
    found = list(tests.values())
    return {
        "likelihood ratio test": np.array(list(tests)),
        "lr": np.array([float(test.statistic) for test in found]),
        "df": np.array([test.df for test in found]),
        "p": np.array([float(test.pvalue) for test in found]),
    }
