"""Detection limits on the command line: limits per column, as options, and limits per cell, such as ``<0.05``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import powerkern as pk
from powerkern._cli.reading import AS_OPTIONS, display_name, find_column, make_estimator
from powerkern._estimators.spec import FitSpec
from powerkern._input.censoring import given_limits
from powerkern._input.tables.numbers import limit_without_number
from powerkern._input.tables.table import BadInput, Block, CensoredCells, FileLayout
from powerkern._typing import FloatArray

#: Options that set limits, and the mark of the cells beyond such a limit.
_OPTIONS = {"below_limit": -1, "above_limit": 1}


def censored_cells_to_fit(args: argparse.Namespace) -> CensoredCells:
    """Return the rules for reading cells with detection limits in a table to be fitted.

    If the requested fit cannot use detection limits, such a cell is an error.
    """
    given = {name: getattr(args, name) for name in ("family", "origin", "criterion")}
    estimator, refusal = make_estimator(args), ""
    try:
        FitSpec.checked(**given, estimator=estimator)
    except (TypeError, ValueError):  # the fit itself raises, with the name of the file
        return CensoredCells("")
    try:
        FitSpec.checked(**given, estimator=estimator, censored=True)
    except ValueError as error:
        refusal = f"; {AS_OPTIONS.reword(str(error))}"
    return CensoredCells(refusal, dict(args.below_limit), dict(args.above_limit))


def censored_cells_of(fit: pk.PowerFit) -> CensoredCells:
    """Return the rules for reading cells with detection limits for a saved fit; ``<LOD`` means the column's limit."""
    limits = fit._spec.limits_of(fit.n_features)
    if limits is None:
        return CensoredCells("")
    names = range(fit.n_features) if fit.column_names is None else fit.column_names
    below, above = ([str(name) for name, has in zip(names, mask, strict=True) if has] for mask in np.isfinite(limits))
    return CensoredCells("", below, above)


def given_column_limits(
    args: argparse.Namespace, layout: FileLayout, known: FloatArray | None = None
) -> tuple[FloatArray, FloatArray] | None:
    """Return the lower and the upper detection limits of the numeric columns, or None if no column has any.

    Parameters
    ----------
    args : Namespace
        The arguments, with the limits that the user gave.
    layout : FileLayout
        The columns of the table.
    known : (2, p) ndarray, optional
        Default lower and upper limits, infinite where there is none. Limits in `args` replace them.

    Returns
    -------
    ((p,) ndarray, (p,) ndarray) or None
        Lower limits (-inf where there is none) and upper limits (inf where there is none).
    """
    names = layout.matrix_names
    limits = np.repeat([[-np.inf], [np.inf]], len(names), axis=1) if known is None else known.copy()
    for end, option in zip(limits, _OPTIONS, strict=True):
        word, seen = f"--{option.replace('_', '-')}", set()
        for name, limit in getattr(args, option):
            find_column(name, layout.names, args.data)
            if name not in names:
                raise BadInput(
                    f"{display_name(args.data)}, column {name!r}: {word} names a column that is not fitted; "
                    "leave the option out, or name the column with --columns"
                )
            if name in seen:
                raise BadInput(f"{word} names column {name!r} twice; give one limit")
            seen.add(name)
            end[names.index(name)] = limit
    wrong = np.flatnonzero(limits[0] >= limits[1])
    if wrong.size:
        low, high = limits[:, wrong[0]]
        raise BadInput(f"column {names[wrong[0]]!r}: --below-limit {low:g} must be less than --above-limit {high:g}")
    return (limits[0], limits[1]) if np.isfinite(limits).any() else None


def as_masks(block: Block) -> dict[str, Any]:
    """Return the keyword arguments `below` and `above` of a fit: masks of the cells that hold a detection limit.

    Masks without any such cell are left out.
    """
    if block.marks is None:
        return {}
    return {name: mask for name, mask in (("below", block.marks < 0), ("above", block.marks > 0)) if mask.any()}


def without_limits(block: Block) -> FloatArray:
    """Return the numbers of a block, with NaN for cells that hold a detection limit."""
    return block.matrix if block.marks is None else np.where(block.marks == 0, block.matrix, np.nan)


class LimitScores:
    """Transform blocks of rows, with expected scores for cells beyond a detection limit, and count these cells.

    Parameters
    ----------
    args : Namespace
        The arguments of the command.
    fit : PowerFit or GroupedFit
        The fit that is applied.
    layout : FileLayout
        The columns of the table.
    """

    def __init__(self, args: argparse.Namespace, fit: pk.PowerFit | pk.GroupedFit, layout: FileLayout) -> None:
        self._args, self._fit, self._layout = args, fit, layout
        spec = (fit if isinstance(fit, pk.PowerFit) else fit[next(iter(fit))])._spec
        known = None if spec.limits is None else given_limits(spec.limits, len(layout.positions))
        self._limits = given_column_limits(args, layout, known)
        #: Number of cells below a limit (row 0) and above one (row 1), by position of the column.
        self._counts = np.zeros((2, len(layout.positions)), dtype=np.int64)

    def transform(self, block: Block, groups: Sequence[object] | None, **options: Any) -> NDArray[Any]:
        """Transform the rows of a block.

        Parameters
        ----------
        block : Block
            The rows.
        groups : sequence or None
            Group label of each row, for a fit by groups.
        **options
            Arguments of the fit's `transform`.
        """
        beyond = self._find_beyond(block)
        if groups is not None:
            options["groups"] = groups
        if beyond is None:
            return np.asarray(self._fit.transform(block.matrix, **options))
        self._counts += [np.count_nonzero(beyond == mark, axis=0) for mark in _OPTIONS.values()]
        censored = beyond != 0
        result = np.asarray(self._fit.transform(np.where(censored, np.nan, block.matrix), **options))
        part = block._replace(matrix=np.where(censored, block.matrix, np.nan))
        for fit, rows in self._fits_of_rows(groups, np.flatnonzero(censored.any(axis=1))):
            marks = None if part.marks is None else part.marks[rows]
            here = part._replace(matrix=part.matrix[rows], marks=marks)
            scores = fit.expected(here.matrix, **as_masks(here), limits=self._limits, n_threads=self._args.n_threads)
            result[rows] = np.where(censored[rows], scores, result[rows])
        return result

    def _fits_of_rows(
        self, groups: Sequence[object] | None, rows: NDArray[np.intp]
    ) -> Iterator[tuple[pk.PowerFit, list[int]]]:
        """Yield each fit that applies to some of `rows`, with the rows to which it applies; skip groups without a fit.

        Parameters
        ----------
        groups : sequence or None
            Group label of each row of the block.
        rows : (k,) ndarray
            Positions of the rows in the block.
        """
        if isinstance(self._fit, pk.PowerFit):
            yield self._fit, rows.tolist()
            return
        assert groups is not None
        of_group: dict[object, list[int]] = {}
        for i in rows.tolist():
            of_group.setdefault(groups[i], []).append(i)
        for label, members in of_group.items():
            fit = self._fit.get(label, self._fit.pooled)
            if fit is not None:
                yield fit, members

    def _find_beyond(self, block: Block) -> NDArray[np.int8] | None:
        """Return an array with -1 for cells below a detection limit, 1 for cells above one, else 0; None if all are 0.

        A cell may state a limit, or its column may have one. Raise for a cell such as ``<LOD`` in a column without a
        limit.
        """
        beyond = np.zeros(block.matrix.shape, np.int8) if block.marks is None else block.marks.copy()
        if self._limits is not None:
            low, high = self._limits
            unmarked = beyond == 0
            beyond[unmarked & np.isfinite(low) & (block.matrix <= low)] = -1
            beyond[unmarked & np.isfinite(high) & (block.matrix >= high)] = 1
        if not beyond.any():
            return None
        has_limit = np.zeros(beyond.shape, bool)
        if self._limits is not None:
            has_limit = np.isfinite(np.where(beyond < 0, *self._limits))
        nowhere = (beyond != 0) & np.isnan(block.matrix) & ~has_limit
        if nowhere.any():
            i, j = np.argwhere(nowhere)[0].tolist()
            reason, remedy = limit_without_number("the cell", self._layout.matrix_names[j], beyond[i, j])
            raise BadInput(f"{display_name(self._args.data)}, {self._layout.place(block, j, i)}: {reason}{remedy}")
        return beyond

    def describe(self) -> str:
        """Return a line that counts the replaced cells by column, or "" if there were none."""
        pairs = zip(self._layout.matrix_names, self._counts.T.tolist(), strict=True)
        counts = {name: (below, above) for name, (below, above) in pairs if below or above}
        return f"cells beyond a limit, replaced by their expected scores: {_list_counts(counts)}" if counts else ""


def describe_limits(n_marked: Mapping[str, tuple[int, int]]) -> str:
    """Return a line that counts the cells read as detection limits, by column, or "" if there were none.

    `n_marked` holds the numbers of cells below and above a limit, by the name of the column.
    """
    return f"cells read as limits: {_list_counts(n_marked)}" if n_marked else ""


def _list_counts(counts: Mapping[str, tuple[int, int]]) -> str:
    """Format the numbers of cells below and above a limit, column by column."""
    parts = []
    for name, (n_below, n_above) in counts.items():
        words = [f"{n} {word}" for n, word in ((n_below, "below"), (n_above, "above")) if n]
        parts.append(f"{name!r} {' and '.join(words)}")
    return ", ".join(parts)
