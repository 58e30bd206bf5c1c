"""Read and check entries of the JSON record of a fit."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from powerkern._input.alignment import labels_from_record
from powerkern._typing import FloatArray

_WORDS = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


def damaged(what: str) -> ValueError:
    """Return the error for a record that no fit can have written; `what` says what is wrong, for the message."""
    return ValueError(f"not a fit: the JSON text is damaged ({what})")


def entry(record: dict[str, Any], key: str) -> Any:
    """Return the entry of a record with this key; raise a ValueError if it is missing."""
    if key not in record:
        raise damaged(f"{key} is missing")
    return record[key]


def read_choice(record: dict[str, Any], key: str, known: tuple[Any, ...]) -> Any:
    """Return ``record[key]``; raise a ValueError unless it equals one of the `known` values and has the same type."""
    value = entry(record, key)
    if not any(type(value) is type(one) and value == one for one in known):
        raise damaged(f"{key} is not one of {', '.join(map(repr, known))}")
    return value


def read_names(record: dict[str, Any], key: str, n: int) -> list[Any] | None:
    """Return ``record[key]``, a list of `n` column labels or None; raise a ValueError for anything else."""
    try:
        names = labels_from_record(entry(record, key))
    except (ValueError, OverflowError):
        raise damaged(f"{key} is not a list of names") from None
    if names is None:
        return None
    if len(names) != n:
        raise damaged(f"{key} are not {n} names")
    return names


def read_level_names(record: dict[str, Any]) -> list[Any] | None:
    """Return the names of the levels of column labels; None if there are none, or if an old record lacks the entry."""
    names = record.get("level_names")
    return None if names is None else read_names(record, "level_names", len(names) if isinstance(names, list) else 0)


def read_whole(record: dict[str, Any], key: str, largest: int = 2**53) -> int:
    """Return ``record[key]``; raise a ValueError unless it is a whole number from 0 to `largest`."""
    value = entry(record, key)
    if not isinstance(value, float) or not value.is_integer() or not 0 <= value <= largest:
        raise damaged(f"{key} is not a whole number up to {largest}")
    return int(value)


def read_numbers(record: dict[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """Return ``record[key]`` as an array; raise a ValueError unless it holds numbers, NaN or infinity in this shape."""
    cells = np.empty((0, 0, 0), dtype=object)
    with contextlib.suppress(ValueError):  # ragged
        cells = np.array(entry(record, key), dtype=object)
    if cells.shape != shape:
        raise damaged(f"{key} is not an array of numbers of shape {shape}")
    for k, value in enumerate(cells.flat):
        if not isinstance(value, float):
            if not (value is None or isinstance(value, str)) or value not in _WORDS:
                where = f" of column {k}" if len(shape) == 1 else ""
                raise damaged(f"{key}{where} is not a number")
            cells.flat[k] = _WORDS[value]
    return cells.astype(np.float64)


def read_finite(record: dict[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """Return ``record[key]`` as an array; raise a ValueError unless it holds finite numbers in this shape."""
    numbers = read_numbers(record, key, shape)
    if not np.isfinite(numbers).all():
        raise damaged(f"{key} is not finite")
    return numbers


def read_covariance(record: dict[str, Any], key: str, p: int) -> FloatArray:
    """Return ``record[key]`` as a (p, p) matrix; raise a ValueError unless it is symmetric with a positive diagonal."""
    matrix = read_finite(record, key, (p, p))
    if not (np.allclose(matrix, matrix.T, atol=0.0) and (np.diag(matrix) > 0.0).all()):
        raise damaged(f"{key} is not a covariance matrix")
    return matrix
