"""Convert ranges, grids and sketches to bytes: powerkern's header, a description of the columns in JSON, and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerkern._estimators.shift import given_shift
from powerkern._input.alignment import labels_from_record, labels_to_record
from powerkern._input.censoring import given_limits
from powerkern._results.storage import Format
from powerkern._typing import FloatArray
from powerkern.kernels.transforms.family import FAMILIES

RANGE = Format("powerkern.sketch.Range", 5, "a range")
GRID = Format("powerkern.sketch.Grid", 5, "a grid")
SKETCH = Format("powerkern.sketch.Sketch", 5, "a sketch")
#: Entries of a description that have a label for each column, or are None.
_NAMES = ("column_names", "labels")


def pack(kind: Format, description: dict[str, Any], *arrays: NDArray[Any]) -> bytes:
    """Pack a description of columns and arrays into bytes.

    Parameters
    ----------
    kind : Format
        RANGE, GRID or SKETCH.
    description : dict
        The description: "family", "columns" (their number), "column_names", "labels", "vector", and optionally "shift"
        and "limits".
    *arrays : ndarray
        Arrays whose elements have eight bytes.
    """
    names = {which: labels_to_record(description[which]) for which in _NAMES}
    parts = [np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes() for array in arrays]
    return kind.pack({**description, **names}, b"".join(parts))


def unpack(data: bytes, kind: Format) -> tuple[dict[str, Any], bytes]:
    """Return the description and the bytes of the arrays; raise ValueError for bytes that `pack` did not write."""
    head, payload = kind.unpack(data)
    try:
        head |= {which: labels_from_record(head[which]) for which in _NAMES}
        is_sound = (
            head["family"] in FAMILIES
            and type(head["columns"]) is int  # and not bool
            and head["columns"] > 0
            and isinstance(head["vector"], bool)
            and read_shift(head).shape == (head["columns"],)
            and read_limits(head).shape == (2, head["columns"])
            and all(head[which] is None or len(head[which]) == head["columns"] for which in _NAMES)
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        is_sound = False
    if not is_sound:
        raise kind.damaged()
    return head, payload


def read_shift(head: dict[str, Any]) -> FloatArray:
    """Return the shift of each column in a description, or zeros; raise ValueError if no fit can have this shift."""
    p = head["columns"]
    return given_shift(head["shift"], head["family"], p) if "shift" in head else np.zeros(p)


def no_limits(p: int) -> FloatArray:
    """Return infinite limits for p columns without detection limits, (2, p)."""
    limits = np.full((2, p), np.inf)
    limits[0] = -np.inf
    return limits


def limits_to_record(limits: FloatArray) -> list[list[float | None]]:
    """Return limits, (2, p), as two lists for a description, with None for infinite limits."""
    return [[float(end) if np.isfinite(end) else None for end in ends] for ends in limits]


def read_limits(head: dict[str, Any]) -> FloatArray:
    """Return the limits in a description, (2, p); raise ValueError or TypeError if no fit can have these limits."""
    p = head["columns"]
    if "limits" not in head:
        return no_limits(p)
    lower, upper = head["limits"]
    if not (isinstance(lower, list) and isinstance(upper, list) and len(lower) == len(upper) == p):
        raise ValueError("limits are not two lists with an entry for each column")
    ends = ([wide if end is None else end for end in own] for own, wide in ((lower, -np.inf), (upper, np.inf)))
    return given_limits(tuple(np.array(own, dtype=np.float64) for own in ends), p)


def read_array(payload: bytes, shape: tuple[int, int], dtype: str, kind: Format) -> NDArray[Any]:
    """Convert bytes to an array; raise ValueError if the number of bytes does not match the shape.

    Parameters
    ----------
    payload : bytes
        The bytes.
    shape : (int, int)
        Shape of the array.
    dtype : str
        Type of the elements, which have eight bytes.
    kind : Format
        RANGE, GRID or SKETCH, for messages.
    """
    if len(payload) != 8 * shape[0] * shape[1]:
        raise kind.damaged()
    return np.frombuffer(payload, dtype).reshape(shape).astype(dtype[1:])
