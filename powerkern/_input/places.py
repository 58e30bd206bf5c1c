"""Errors of values outside the domain, which carry their location."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from powerkern._input.arrays import column_label


class Place(NamedTuple):
    """The location of the offending value of a domain error, and the reason."""

    #: Counted from 0; None where the input is one-dimensional.
    column: int | None
    row: int
    #: The message without the location.
    reason: str


def domain_error(
    kind: str, j: int | None, i: int, value: float, names: Sequence[str] | None, shift: float = 0.0
) -> ValueError:
    """The error for a value outside the domain, for a reason in `_DOMAIN_REMEDIES`; j is None for 1-D input."""
    place = f"row {i}" if j is None else f"{column_label(j, names)}, row {i}"
    reason = f"the value is {float(value)}{_DOMAIN_REMEDIES[kind].format(shift=shift, end=-shift)}"
    error = ValueError(f"{place}: {reason}")
    vars(error)["place"] = Place(j, i, reason)
    return error


def place_of(error: Exception) -> Place | None:
    """The arguments of `domain_error`, for callers who know the location by another name; None for other errors."""
    return vars(error).get("place")


_DOMAIN_REMEDIES = {
    "overflow": ", which plus shift = {shift} overflows float64; divide both by the largest value",
    "not above": " and not above -shift = {end}, beyond which the shifted Box-Cox transformation is defined; fit with "
    "a larger shift, drop the row, or use family='yeo-johnson'",
    "infinite": "; replace infinite values, or mark them missing with NaN",
    "not positive": ", and the Box-Cox transformation can only be applied to strictly positive data; shift or drop the "
    "column, or use family='yeo-johnson'",
}
