"""Result types of methods and functions, for annotations and for the documentation.

Nobody needs to make one: `PowerFit.confint` returns an `Interval`, `powerkern.cellwise.ddc` has `Cells`, and so on.
"""

from powerkern._results.central_normality import CentralNormality
from powerkern._results.inference import Interval, LikelihoodRatio
from powerkern._results.normality import Normality, NormalityFigures
from powerkern._results.summary import Summary
from powerkern.cellwise.cells import Cells
from powerkern.cellwise.checking import DataCheck
from powerkern.cellwise.constants import WrapConstants
from powerkern.cellwise.neighbors import Neighbors
from powerkern.cellwise.wrapping import Wrapped
from powerkern.completion.ratings import FoldedRow
from powerkern.outliers.measures import ReliabilityDiagram

__all__ = [
    "Cells",
    "CentralNormality",
    "DataCheck",
    "FoldedRow",
    "Interval",
    "LikelihoodRatio",
    "Neighbors",
    "Normality",
    "NormalityFigures",
    "ReliabilityDiagram",
    "Summary",
    "WrapConstants",
    "Wrapped",
]
