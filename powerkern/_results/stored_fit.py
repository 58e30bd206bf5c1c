"""Fits stored as JSON, in text or files, and read back bit for bit; NaN is stored as null, infinity as a word."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from powerkern._input.messages import shown
from powerkern._input.writing import replacing
from powerkern._results.storage import Format, parse_record

if TYPE_CHECKING:  # tools that collect the modules of an application see imports, not the names in _HOMES
    import powerkern.joint
    import powerkern.regression  # noqa: F401

#: Version of the text.
VERSION = 1
#: The classes of fits that `load` reads, and the modules that export them.
_HOMES = {
    "PowerFit": "powerkern",
    "GroupedFit": "powerkern",
    "RegressionFit": "powerkern.regression",
    "JointFit": "powerkern.joint",
}


class StoredFit(ABC):
    """Base class of fits: read-only attributes, and storage as JSON. Constructors fill ``vars(self)``."""

    @property
    def column_names(self) -> list[Any] | None:
        """The labels of the fitted columns, or None; a new list each time, suitable for ``df[fit.column_names]``."""
        names: list[Any] | None = vars(self)["column_names"]
        return None if names is None else list(names)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: a fit holds the results of its data; fit again with other "
            "arguments (lmbda= fixes lambdas)"
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted; a fit holds the results of its data")

    @abstractmethod
    def _to_record(self) -> dict[str, Any]:
        """Return the entries for JSON: words, numbers, arrays, and lists and objects of these."""

    @classmethod
    @abstractmethod
    def _from_record(cls, record: Any) -> Self:
        """Return the fit with these entries; raise ValueError if they cannot come from a fit."""

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the fit as JSON to a file that `powerkern.load` reads back bit for bit.

        Parameters
        ----------
        path : str or path-like
            The file. An existing file is replaced when the new one is complete, and is kept if writing fails.

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
        return _format_for(type(self).__name__).to_text(self._to_record())

    @classmethod
    def from_json(cls, text: str | os.PathLike[str], *, check: bool = True) -> Self:
        """Read the text that `to_json` wrote, or the file that `save` wrote.

        Parameters
        ----------
        text : str or path-like
            The text, in any layout, or the path of a file that holds it.
        check : bool, default True
            Refuse a text that was changed since it was written, according to its digest. False reads a text that was
            edited on purpose.

        Raises
        ------
        ValueError
            The text is not JSON, not such a fit, of another version, was changed, or holds results that no fit can
            produce.
        """
        record = parse_record(_read_text(text))
        return cls._from_record(_format_for(cls.__name__).check_text(record, check=check))


def load(path: str | os.PathLike[str], *, check: bool = True) -> Any:
    """Read a fit of any kind from the file that its method `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    check : bool, default True
        Refuse a file that was changed since it was written, according to its digest. False reads a file that was
        edited on purpose.

    Returns
    -------
    PowerFit, GroupedFit, RegressionFit or JointFit
        The fit, without the data that it was fitted to.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        The file is not JSON, not a fit, of another version, was changed, or holds results that no fit can produce.

    Examples
    --------
    >>> import tempfile, numpy as np, powerkern as pk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pk.fit(np.arange(10.0)).save(f"{folder}/fit.json")
    ...     pk.load(f"{folder}/fit.json").n_features
    1
    """
    record = parse_record(_read_file(path))
    kind = str(record.get("format")).removeprefix("powerkern.")
    if kind not in _HOMES:
        raise ValueError(f"not a fit: the JSON text in {os.fspath(path)} was not written by the save method of a fit")
    home = getattr(importlib.import_module(_HOMES[kind]), kind)
    return home._from_record(_format_for(kind).check_text(record, check=check))


def _format_for(kind: str) -> Format:
    """Return the format of the fits of a class."""
    return Format(f"powerkern.{kind}", VERSION, "a fit")


def _read_text(text: str | os.PathLike[str]) -> str:
    """Return the text itself, or the content of the file that it names; text that begins with a brace is JSON."""
    if isinstance(text, os.PathLike):
        return _read_file(text)
    if isinstance(text, str) and not text.lstrip().startswith(("{", "[")):
        if not os.path.isfile(text):
            raise ValueError(f"not a fit: {text[:60]!r} is neither JSON text nor a file")
        return _read_file(text)
    return text


def _read_file(path: str | os.PathLike[str]) -> str:
    """Return the text in a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"not a fit: {os.fspath(path)} holds no text") from None
