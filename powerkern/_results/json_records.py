"""The JSON text of fits of several columns: read, its numbers checked; what JSON has no number for."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from powerkern._input.arrays import is_whole
from powerkern._typing import FloatArray


def loaded(text: str, kind: str, maker: str, version: int) -> dict[str, Any]:
    """The record that the `to_json` of the class `maker` wrote; a `kind` is what messages call such a fit."""
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"not a {kind}: the text is not JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") != f"powerkern.{maker}":
        raise ValueError(f"not a {kind}: the JSON text was not written by {maker}.to_json")
    if record.get("version") != version:
        raise ValueError(f"the {kind} has version {record.get('version')!r}, this powerkern reads version {version}")
    return record


def written(value: float) -> float | str | None:
    """A number as JSON takes it: None for NaN, a word for an infinite one."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else repr(value)


def damaged(what: str) -> ValueError:
    """The error for a text that says so, but is no joint fit."""
    return ValueError(f"not a joint fit: the JSON text is damaged ({what})")


def count_in(record: dict[str, Any], key: str, largest: int = 2**53) -> int:
    """A whole number of at least 0."""
    value = record.get(key)
    if not is_whole(value) or not 0 <= value <= largest:
        raise damaged(f"{key} is not a whole number up to {largest}")
    return int(value)


def numbers_in(record: dict[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """Finite numbers, in an array of this shape."""
    try:
        numbers = np.array(record.get(key), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise damaged(f"{key} does not hold numbers") from None
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise damaged(f"{key} is not of shape {shape}, or not finite")
    return numbers


def covariance_in(record: dict[str, Any], key: str, p: int) -> FloatArray:
    """A symmetric (p, p) matrix with a positive diagonal."""
    matrix = numbers_in(record, key, (p, p))
    if not (np.allclose(matrix, matrix.T, atol=0.0) and (np.diag(matrix) > 0.0).all()):
        raise damaged(f"{key} is not a covariance matrix")
    return matrix
