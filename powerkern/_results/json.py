"""Fits as JSON, text or files: one codec for all kinds of fits, with a digest that tells a text that was changed.

Numbers are float64 and come back bit for bit: NaN as null, infinity as a word.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from powerkern._input.alignment import labels_from_record
from powerkern._input.messages import shown
from powerkern._input.writing import replacing
from powerkern._typing import FloatArray

if TYPE_CHECKING:  # tools that collect the modules of an application see imports, not the names in _HOMES
    import powerkern.joint
    import powerkern.regression  # noqa: F401

#: Version of the text.
VERSION = 1

_WORDS = {None: math.nan, "inf": math.inf, "-inf": -math.inf}


#: The classes of fits that `load` reads, and the modules that export them.
_HOMES = {
    "PowerFit": "powerkern",
    "GroupedFit": "powerkern",
    "RegressionFit": "powerkern.regression",
    "JointFit": "powerkern.joint",
}


class Recorded(ABC):
    """A fit: its attributes cannot be set, and JSON keeps it. Constructors fill ``vars(self)``."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: a fit holds the results for its data; fit again with other "
            "arguments (lmbda= gives lambdas)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted; a fit holds the results for its data")

    @abstractmethod
    def _to_record(self) -> dict[str, Any]:
        """The entries that JSON keeps: words, numbers, arrays, lists and tables of these."""

    @classmethod
    @abstractmethod
    def _from_record(cls, record: Any) -> Self:
        """The fit with these entries; ValueError where no fit can have them."""

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the fit as JSON to a file that `powerkern.load` reads back bit for bit.

        Parameters
        ----------
        path : str or path-like
            The file. One that exists is replaced when the new one is complete, and stays if writing fails.

        Raises
        ------
        TypeError
            No path.
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import tempfile, numpy as np, powerkern as pk
        >>> fit = pk.fit(np.arange(10.0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit.json")
        ...     again = pk.load(f"{folder}/fit.json")
        >>> bool(again.lmbda == fit.lmbda)
        True
        """
        if not isinstance(path, str | os.PathLike):
            given = "without a path" if path is None else f"with {shown(path)} as its path"
            raise TypeError(f"save was called {given}; pass the name of the file, such as fit.save('fit.json')")
        with replacing(Path(path)) as part:
            part.write_text(self.to_json() + "\n", encoding="utf-8")

    def to_json(self) -> str:
        """Write the fit as JSON text that `from_json` reads back bit for bit.

        Examples
        --------
        >>> import numpy as np, powerkern as pk
        >>> fit = pk.fit(np.arange(10.0))
        >>> bool(pk.PowerFit.from_json(fit.to_json()).lmbda == fit.lmbda)
        True
        """
        head = {"format": f"powerkern.{type(self).__name__}", "version": VERSION}
        text = json.dumps({**head, **_plain(self._to_record())}, allow_nan=False)
        return f'{text[:-1]}, "digest": "{_digest(_parsed(text))}"}}'

    @classmethod
    def from_json(cls, text: str | os.PathLike[str], *, check: bool = True) -> Self:
        """Read the text that `to_json` wrote, or the file that `save` wrote.

        Parameters
        ----------
        text : str or path-like
            The text, in any layout, or the path of a file that holds it.
        check : bool, default True
            Refuse a text whose figures were changed since it was written, by the digest in it. False reads a text that
            was edited on purpose.

        Raises
        ------
        ValueError
            The text is not JSON, not such a fit, of another version, was changed, or holds figures that no fit can
            produce.
        """
        record = _record_in(_text_of(text))
        if record.get("format") != f"powerkern.{cls.__name__}":
            raise ValueError(f"not a fit: the JSON text was not written by {cls.__name__}.to_json")
        return cls._from_record(_checked(record, cls.__name__, check))


def load(path: str | os.PathLike[str], *, check: bool = True) -> Any:
    """Read a fit of any kind from the file that its method `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    check : bool, default True
        Refuse a file whose figures were changed since it was written. False reads a file that was edited on purpose.

    Returns
    -------
    PowerFit, GroupedFit, RegressionFit or JointFit
        The fit, without the data that it was fitted to.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        The file is not JSON, not a fit, of another version, was changed, or holds figures that no fit can produce.

    Examples
    --------
    >>> import tempfile, numpy as np, powerkern as pk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pk.fit(np.arange(10.0)).save(f"{folder}/fit.json")
    ...     pk.load(f"{folder}/fit.json").n_features
    1
    """
    record = _record_in(_content_of(path))
    maker = str(record.get("format")).removeprefix("powerkern.")
    if maker not in _HOMES:
        raise ValueError(f"not a fit: the JSON text in {os.fspath(path)} was not written by the save method of a fit")
    home = getattr(importlib.import_module(_HOMES[maker]), maker)
    return home._from_record(_checked(record, maker, check))


def _text_of(text: str | os.PathLike[str]) -> str:
    """The text itself, or the content of the file that it names; text that begins with a brace is JSON."""
    if isinstance(text, os.PathLike):
        return _content_of(text)
    if isinstance(text, str) and not text.lstrip().startswith(("{", "[")):
        if not os.path.isfile(text):
            raise ValueError(f"not a fit: {text[:60]!r} is neither JSON text nor a file")
        return _content_of(text)
    return text


def _content_of(path: str | os.PathLike[str]) -> str:
    """The text in a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"not a fit: {os.fspath(path)} holds no text") from None


def _record_in(text: str) -> dict[str, Any]:
    """The entries of a text."""
    try:
        record = _parsed(text)
    except (json.JSONDecodeError, RecursionError, TypeError) as error:
        raise ValueError(f"not a fit: the text is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise ValueError("not a fit: the JSON text holds no entries")
    return record


def _checked(record: dict[str, Any], maker: str, check: bool) -> dict[str, Any]:
    """The record, of this version; with `check`, of a text that is unchanged but for its layout."""
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
    """A value as JSON holds it."""
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


def as_record(record: Any) -> dict[str, Any]:
    """A record, which is a table of entries."""
    if not isinstance(record, dict):
        raise damaged("it is not a table")
    return record


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


def names_in(record: dict[str, Any], key: str, n: int) -> list[Any] | None:
    """Return labels of columns, `n` of them, or None."""
    try:
        names = labels_from_record(entry(record, key))
    except (ValueError, OverflowError):
        raise damaged(f"{key} is not a list of names") from None
    if names is None:
        return None
    if len(names) != n:
        raise damaged(f"{key} are not {n} names")
    return names


def level_names_in(record: dict[str, Any]) -> list[Any] | None:
    """Return the names of the levels of column labels, or None, also for records made before there were any."""
    names = record.get("level_names")
    return None if names is None else names_in(record, "level_names", len(names) if isinstance(names, list) else 0)


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
