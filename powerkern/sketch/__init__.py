"""Fits of data that are never in one place: chunks are summarised, summaries merged, and the sum fitted.

Two passes over the data, in any order and anywhere::

    grid = reduce(merge, (range_of(chunk) for chunk in chunks)).grid()
    total = reduce(merge, (sketch(chunk, grid) for chunk in chunks))  # some 10 kB per column, however long it is
    fit = finish(total)                                               # the PowerFit that powerkern.fit would give

`fit_chunks` does this for chunks that one process can read, `fit_with` for chunks that some engine reads; both refine
grids where that is needed. One pass, if the data come as a stream: ``total = extend(total, chunk)``, starting from
None; then ``finish(total)``.
"""

from powerkern._input.arrays import naming
from powerkern.sketch.chunks import fit_chunks, location_chunks
from powerkern.sketch.columns import Column, columns_to_read
from powerkern.sketch.driver import fit_with
from powerkern.sketch.location import location_with
from powerkern.sketch.merging import extend, finish, finish_results, merge, range_of, sketch
from powerkern.sketch.outcomes import Outcome, merged_outcome, outcome_of
from powerkern.sketch.passes import MapReduce, Pass
from powerkern.sketch.summaries import (
    BYTES_VERSION,
    EMPTY_RANGE,
    Grid,
    Mergeable,
    Range,
    Sketch,
    beside,
    checked_bounds,
    replaced,
    resolved,
    unresolved,
)

__all__ = [
    "BYTES_VERSION",
    "EMPTY_RANGE",
    "Column",
    "Grid",
    "MapReduce",
    "Mergeable",
    "Outcome",
    "Pass",
    "Range",
    "Sketch",
    "beside",
    "checked_bounds",
    "columns_to_read",
    "extend",
    "finish",
    "finish_results",
    "fit_chunks",
    "fit_with",
    "location_chunks",
    "location_with",
    "merge",
    "merged_outcome",
    "naming",
    "outcome_of",
    "range_of",
    "replaced",
    "resolved",
    "sketch",
    "unresolved",
]
