"""powerkern: exact, fast power transforms for wide numeric tables."""

from typing import TYPE_CHECKING, Any

from powerkern._input.importing import import_late

if TYPE_CHECKING:
    from powerkern._estimators.carroll import Carroll
    from powerkern._estimators.likelihood import ML
    from powerkern._estimators.mtl import MTL
    from powerkern._estimators.normality import KS, PPCC
    from powerkern._estimators.origin import CentralML
    from powerkern._estimators.rewml import RewML, RewMLNR
    from powerkern._fit.fit import GroupedFit, fit, inverse_transform, transform
    from powerkern._results.central_normality import CentralNormality
    from powerkern._results.inference import Interval, LikelihoodRatio
    from powerkern._results.json import load
    from powerkern._results.normality import Normality, NormalityFigures
    from powerkern._results.power_fit import PowerFit
    from powerkern._results.summary import Summary
    from powerkern._status import Route, Status

#: Where each public name is defined; it is imported when it is first used, as the command line needs none of them.
_HOMES = {
    "KS": "_estimators.normality",
    "ML": "_estimators.likelihood",
    "MTL": "_estimators.mtl",
    "PPCC": "_estimators.normality",
    "Carroll": "_estimators.carroll",
    "CentralML": "_estimators.origin",
    "CentralNormality": "_results.central_normality",
    "GroupedFit": "_fit.fit",
    "Interval": "_results.inference",
    "LikelihoodRatio": "_results.inference",
    "Normality": "_results.normality",
    "NormalityFigures": "_results.normality",
    "PowerFit": "_results.power_fit",
    "RewML": "_estimators.rewml",
    "RewMLNR": "_estimators.rewml",
    "Route": "_status",
    "Status": "_status",
    "Summary": "_results.summary",
    "fit": "_fit.fit",
    "inverse_transform": "_fit.fit",
    "load": "_results.json",
    "transform": "_fit.fit",
}

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


def __getattr__(name: str) -> Any:
    """A public name, imported now, or the version."""
    if name == "__version__":
        return _version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_late(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("powerkern")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"
