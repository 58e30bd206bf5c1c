"""Which columns of an engine's table a fit reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Column(NamedTuple):
    """A column of a table, by the name of its type."""

    name: str
    kind: str
    is_numeric: bool


def columns_to_read(table: Sequence[Column], columns: Sequence[str] | None, sample_weight: object) -> list[str]:
    """Names of the columns that a fit reads, in order, weights last.

    Parameters
    ----------
    table : sequence of Column
        All columns.
    columns : sequence of str, optional
        Those to fit; default: all of numbers but the weights.
    sample_weight : str, optional
        The column of weights.

    Raises
    ------
    TypeError, ValueError
        Columns that are not there, that hold no numbers, that are named twice, or none at all.
    """
    if not (sample_weight is None or isinstance(sample_weight, str)):
        raise TypeError(f"sample_weight must be the name of a column, got {type(sample_weight).__name__}")
    if isinstance(columns, str):
        raise TypeError(f"columns is one string; pass a list of names, such as [{columns!r}]")
    weights = [] if sample_weight is None else [sample_weight]
    if columns is None:
        columns = [one.name for one in table if one.is_numeric and one.name not in weights]
        if not columns:
            raise TypeError(f"no column of X holds numbers: {', '.join(repr(one.name) for one in table)}")
    names = [*columns, *weights]
    if not columns or len(set(names)) < len(names):
        raise ValueError(
            f"columns must name at least one column, each once, and not that of the weights, got {list(columns)}"
        )
    return _checked(table, names)


def _checked(table: Sequence[Column], names: Sequence[str]) -> list[str]:
    """These names; an error where a column is not there once, or holds no numbers."""
    for name in names:
        found = [one for one in table if one.name == name]
        if len(found) != 1:
            known = ", ".join(repr(one.name) for one in table)
            raise ValueError(f"there is {'more than one' if found else 'no'} column {name!r} among {known}")
        if not found[0].is_numeric:
            kind = found[0].kind
            raise TypeError(f"column {name!r} is of type {kind}, which holds no numbers; convert it or leave it out")
    return list(names)
