"""Fits as JSON text: one codec for all kinds of fits, with a digest that tells a text that was changed.

Numbers are float64 and come back bit for bit: NaN as null, infinity as a word.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from typing import Any

import numpy as np

from powerkern._typing import FloatArray

#: Version of the text.
VERSION = 1

_WORDS = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


def write(maker: str, record: dict[str, Any]) -> str:
    """The text of a record of the class `maker`: entries are words, numbers, arrays, lists and tables of these."""
    text = json.dumps({"format": f"powerkern.{maker}", "version": VERSION, **_plain(record)}, allow_nan=False)
    return f'{text[:-1]}, "digest": "{_digest(_parsed(text))}"}}'


def read(maker: str, text: str, check: bool = True) -> dict[str, Any]:
    """The record that `write` wrote; with `check`, of texts that are unchanged but for their layout.

    Raises
    ------
    ValueError
        The text is not JSON, not of this class, of another version, or was changed.
    """
    try:
        record = _parsed(text)
    except (json.JSONDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"not a fit: the text is not JSON ({error})") from None
    if not isinstance(record, dict) or record.get("format") != f"powerkern.{maker}":
        raise ValueError(f"not a fit: the JSON text was not written by {maker}.to_json")
    if record.get("version") != VERSION:
        raise ValueError(f"the fit has version {record.get('version')!r}, this powerkern reads version {VERSION}")
    digest = record.pop("digest", None)
    if check and digest != _digest(record):
        raise ValueError(
            "not a fit: the JSON text was changed since it was written (its digest is another); read what was edited "
            f"on purpose by {maker}.from_json(text, check=False)"
        )
    return record


def _parsed(text: str) -> Any:
    # every number is a float64: an integer beyond its range becomes infinite, and is refused as such
    return json.loads(text, parse_int=float)


def _digest(record: dict[str, Any]) -> str:
    """A digest of all entries, whatever their order."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value


# --- entries of a record ------------------------------------------------------------------------------


def damaged(what: str) -> ValueError:
    """The error for a record that no fit can have written."""
    return ValueError(f"not a fit: the JSON text is damaged ({what})")


def entry(record: dict[str, Any], key: str) -> Any:
    """An entry that must be there."""
    if key not in record:
        raise damaged(f"{key} is missing")
    return record[key]


def one_of(record: dict[str, Any], key: str, known: tuple[Any, ...]) -> Any:
    """An entry that is one of the known ones, and of its type."""
    value = entry(record, key)
    if not any(type(value) is type(one) and value == one for one in known):
        raise damaged(f"{key} is none of {', '.join(map(repr, known))}")
    return value


def names_in(record: dict[str, Any], key: str, n: int) -> list[str] | None:
    """Different names, `n` of them, or none at all."""
    names = entry(record, key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise damaged(f"{key} is not a list of names")
    if not len(set(names)) == len(names) == n:
        raise damaged(f"{key} are not {n} different names")
    return names


def whole_in(record: dict[str, Any], key: str, largest: int = 2**53) -> int:
    """A whole number of at least 0."""
    value = entry(record, key)
    if not isinstance(value, float) or not value.is_integer() or not 0 <= value <= largest:
        raise damaged(f"{key} is not a whole number up to {largest}")
    return int(value)


def numbers_in(record: dict[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """Numbers in an array of this shape, NaN and infinite ones among them."""
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


def finite_in(record: dict[str, Any], key: str, shape: tuple[int, ...]) -> FloatArray:
    """The same, all finite."""
    numbers = numbers_in(record, key, shape)
    if not np.isfinite(numbers).all():
        raise damaged(f"{key} is not finite")
    return numbers


def covariance_in(record: dict[str, Any], key: str, p: int) -> FloatArray:
    """A symmetric (p, p) matrix with a positive diagonal."""
    matrix = finite_in(record, key, (p, p))
    if not (np.allclose(matrix, matrix.T, atol=0.0) and (np.diag(matrix) > 0.0).all()):
        raise damaged(f"{key} is not a covariance matrix")
    return matrix
