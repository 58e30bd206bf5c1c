"""Fit data that do not fit in memory: summarise each chunk, merge the summaries, fit the result.

Two passes over the data are enough, on any machines and in any order of the chunks::

    grid = reduce(merge, (range_of(chunk) for chunk in chunks)).grid()
    total = reduce(merge, (summarize_chunk(chunk, grid) for chunk in chunks))  # some 10 kB per column
    fit = finish(total)  # the PowerFit that powerkern.fit would give

`fit_chunks` does this for chunks that one process reads, or that an engine of yours reads (`MapReduce`), and refines
grids if needed. A stream needs one pass: call ``total = extend(total, chunk)`` for each chunk, starting with None, and
then ``finish(total)``.
"""

from powerkern._input.messages import suggest_keywords
from powerkern.sketch.chunks import fit_chunks, location_chunks
from powerkern.sketch.engine import MapReduce
from powerkern.sketch.grids import Range
from powerkern.sketch.sketches import Sketch
from powerkern.sketch.steps import extend, finish, range_of, summarize_chunk
from powerkern.sketch.summary import merge

__all__ = [
    "MapReduce",
    "Range",
    "Sketch",
    "extend",
    "finish",
    "fit_chunks",
    "location_chunks",
    "merge",
    "range_of",
    "summarize_chunk",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
