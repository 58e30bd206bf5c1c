"""Store fits as JSON, in text or files, and read them back bit for bit; NaN is stored as null, infinity as a string."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from powerkern._input.messages import shown
from powerkern._input.writing import replacing
from powerkern._results.storage import Format, parse_record

if TYPE_CHECKING:  # for tools that bundle applications: they see imports, but not the module names in _HOMES
    import powerkern.joint
    import powerkern.regression  # noqa: F401

#: Version of the JSON format.
VERSION = 1
#: The classes of fits that `load` reads, and the modules that export them.
_HOMES = {
    "PowerFit": "powerkern",
    "GroupedFit": "powerkern",
    "RegressionFit": "powerkern.regression",
    "JointFit": "powerkern.joint",
}


class StoredFit(ABC):
    """Base class of fits, with read-only attributes and storage as JSON; constructors fill ``vars(self)``."""

    @property
    def column_names(self) -> list[Any] | None:
        """Labels of the fitted columns as a new list, suitable for ``df[fit.column_names]``; None without labels."""
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
        """Return the JSON entries of the fit: strings, numbers, arrays, and lists and dictionaries of these."""

    @classmethod
    @abstractmethod
    def _from_record(cls, record: Any) -> Self:
        """Rebuild a fit from its JSON entries; raise a ValueError if no fit can have these entries."""

    def save(self, path: str | os.PathLike[str] | None = None) -> None:
        """Write the fit as JSON to a file that `powerkern.load` reads back bit for bit.

        Parameters
        ----------
        path : str or path-like
            The file. An existing file is replaced once the new one is complete, and stays unchanged if writing fails.

        Raises
        ------
        TypeError
            `path` is missing or not a path.
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
        """Read a fit from the text that `to_json` returned, or from the file that `save` wrote.

        Parameters
        ----------
        text : str or path-like
            The text, with any whitespace and order of entries, or the path of a file that holds it.
        check : bool, default True
            Reject a text whose digest shows that it was changed after it was written. Pass False to read a text that
            you edited on purpose.

        Raises
        ------
        ValueError
            The text is not JSON, is not a fit of this class or version, was changed, or holds results that no fit can
            produce.
        """
        record = parse_record(_read_text(text))
        return cls._from_record(_format_for(cls.__name__).check_text(record, check=check))


def load(path: str | os.PathLike[str], *, check: bool = True) -> Any:
    """Read a fit of any class from a file that its `save` method wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    check : bool, default True
        Reject a file whose digest shows that it was changed after it was written. Pass False to read a file that you
        edited on purpose.

    Returns
    -------
    PowerFit, GroupedFit, RegressionFit or JointFit
        The fit, without the fitted data.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        The file is not JSON, is not a fit of this version, was changed, or holds results that no fit can produce.

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
    """Return the storage format of the fits of the class named `kind`."""
    return Format(f"powerkern.{kind}", VERSION, "a fit")


def _read_text(text: str | os.PathLike[str]) -> str:
    """Return JSON text unchanged, or read the file at a path; a string that starts with a brace or bracket is JSON."""
    if isinstance(text, os.PathLike):
        return _read_file(text)
    if isinstance(text, str) and not text.lstrip().startswith(("{", "[")):
        if not os.path.isfile(text):
            raise ValueError(f"not a fit: {text[:60]!r} is neither JSON text nor a file")
        return _read_file(text)
    return text


def _read_file(path: str | os.PathLike[str]) -> str:
    """Return the text in a file; raise a ValueError if it is not UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"not a fit: {os.fspath(path)} is not a text file in UTF-8") from None
