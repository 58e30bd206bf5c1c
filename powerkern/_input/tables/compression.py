"""Files of bytes, compressed or not, by their names; "-" is standard input or output."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from powerkern._input.tables.errors import BadInput


def _open_zstandard(path: Path, mode: str) -> Any:
    """By the standard library from Python 3.14 on, before that by pyarrow."""
    if sys.version_info >= (3, 14):
        return importlib.import_module("compression.zstd").open(path, mode)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise BadInput(".zst files need Python 3.14 or pyarrow: pip install 'powerkern[parquet]'") from error
    opened = path.open(mode)
    stream = pa.CompressedInputStream if mode == "rb" else pa.CompressedOutputStream
    return stream(opened, "zstd")


COMPRESSED: dict[str, Callable[[Path, Any], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}


def is_standard(path: Path | None) -> bool:
    """Whether standard input or output is meant."""
    return path is None or str(path) == "-"


def open_bytes(path: Path, mode: str) -> BinaryIO:
    """A file to read ("rb") or to write ("wb")."""
    opener: Callable[[Path, Any], Any] = COMPRESSED.get(path.suffix.lower(), Path.open)
    opened: BinaryIO = opener(path, mode)
    return opened
