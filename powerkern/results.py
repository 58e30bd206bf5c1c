"""Classes of results that methods and functions return, for annotations and for the documentation.

Users need not create them: `PowerFit.confint` returns an `Interval`, `PowerFit.summary` a `Summary`, and so on. Results
that are plain named tuples are not listed here; the functions that return them describe their fields.
"""

from powerkern._results.inference import Interval
from powerkern._results.summary import Summary
from powerkern.cellwise.checking import DataCheck
from powerkern.cellwise.wrapping import Wrapped
from powerkern.completion.ratings import FoldedRow

__all__ = ["DataCheck", "FoldedRow", "Interval", "Summary", "Wrapped"]


def __dir__() -> list[str]:
    return sorted(__all__)
