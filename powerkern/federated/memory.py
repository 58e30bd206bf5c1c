"""What a client remembers, in files."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, MutableMapping
from pathlib import Path

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class FileMemory(MutableMapping[str, bytes]):
    """A folder as a client's memory: it outlives the process, and the limits of a policy hold as long as it is kept.

    Every key is a file, which its owner alone may read, and which is replaced as a whole or not at all. One process at
    a time may use a folder; whoever can put an older state back can make a site answer again.

    Parameters
    ----------
    folder : str or Path
        Where the files are; made if it is not there. One folder a site, beside its rows.

    See Also
    --------
    Client : its argument `memory`.

    Examples
    --------
    >>> import tempfile
    >>> from powerkern.federated import FileMemory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     FileMemory(folder)["some"] = b"thing"
    ...     FileMemory(folder)["some"]
    b'thing'
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __getitem__(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, value: bytes) -> None:
        path = self._path(key)
        handle, unfinished = tempfile.mkstemp(prefix=".unfinished-", dir=self._folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(value)
                file.flush()
                os.fsync(file.fileno())
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise

    def __delitem__(self, key: str) -> None:
        try:
            self._path(key).unlink()
        except FileNotFoundError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        return (path.name for path in sorted(self._folder.iterdir()) if _KEY.fullmatch(path.name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise KeyError(f"{key!r} is no name of a file: letters, digits, '.', '_' and '-', 64 at most")
        return self._folder / key
