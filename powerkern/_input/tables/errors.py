"""What is wrong with a file, in one sentence."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class BadInput(Exception):
    """Input that cannot be used; the message is one sentence that says why."""


@contextmanager
def sentences(verb: str, path: Path | str) -> Iterator[None]:
    """Turn the error of a damaged, missing or forbidden file into one sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise BadInput(
            f"cannot {verb} {path}: it is not {error.encoding.upper()} text (--encoding latin-1, say)"
        ) from error
    except UnicodeError as error:
        raise BadInput(f"cannot {verb} {path}: {error}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise BadInput(f"cannot {verb} {path}: the file is damaged ({error})") from error
    except OSError as error:
        raise BadInput(f"cannot {verb} {path}: {error.strerror or error}") from error


def check_folder(path: Path | None) -> None:
    """Raise now, before any work is done, if a file could not be written."""
    if path is None:
        return
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder")
    if not path.parent.is_dir():
        raise BadInput(f"cannot write {path}: the folder {path.parent} does not exist")
