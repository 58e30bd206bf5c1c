"""powerkern: exact, fast power transforms for wide numeric tables."""

from powerkern._estimators.carroll import Carroll
from powerkern._estimators.likelihood import ML
from powerkern._estimators.mtl import MTL
from powerkern._estimators.normality import KS, PPCC
from powerkern._estimators.origin import CentralML
from powerkern._estimators.rewml import RewML, RewMLNR
from powerkern._fit.fit import (
    CentralNormality,
    GroupedFit,
    Interval,
    LikelihoodRatio,
    Normality,
    NormalityFigures,
    PowerFit,
    Summary,
    fit,
    inverse_transform,
    transform,
)
from powerkern._results.json import load
from powerkern._status import Route, Status

__all__ = [
    "KS",
    "ML",
    "MTL",
    "PPCC",
    "Carroll",
    "CentralML",
    "CentralNormality",
    "GroupedFit",
    "Interval",
    "LikelihoodRatio",
    "Normality",
    "NormalityFigures",
    "PowerFit",
    "RewML",
    "RewMLNR",
    "Route",
    "Status",
    "Summary",
    "__version__",
    "fit",
    "inverse_transform",
    "load",
    "transform",
]


def __getattr__(name: str) -> str:
    """`__version__`, looked up when asked for: it would cost every import 30 ms."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("powerkern")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"
