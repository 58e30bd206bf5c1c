"""What tasks of an engine return: a summary, or the reason why a chunk has none.

Engines run a task that raises again and again, and report its error as a page of traces. A chunk that is refused once
is refused always: the refusal travels as a result, and is raised where the fit was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from powerkern._input.arrays import naming

S = TypeVar("S")


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """A summary, or the error in its place; both None where there were no rows."""

    summary: S | None = None
    error: TypeError | ValueError | None = None

    def value(self) -> S | None:
        """The summary; raises the error, if that is what there is."""
        if self.error is not None:
            raise self.error
        return self.summary


def outcome_of(name: str, function: Callable[..., S], *chunk: object) -> Outcome[S]:
    """``function(*chunk)``; a refusal names the chunk, from whose start it counts rows."""
    try:
        with naming(name):
            return Outcome(function(*chunk))
    except (TypeError, ValueError) as error:
        return Outcome(error=error)


def merged_outcome(merge: Callable[[S, S], S], a: Outcome[S], b: Outcome[S]) -> Outcome[S]:
    """Both summaries merged, or an error of either."""
    if a.error is not None or b.error is not None:
        return a if a.error is not None else b
    if a.summary is None or b.summary is None:
        return b if a.summary is None else a
    try:
        return Outcome(merge(a.summary, b.summary))
    except (TypeError, ValueError) as error:
        return Outcome(error=error)
