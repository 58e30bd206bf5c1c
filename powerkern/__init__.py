"""powerkern: exact, fast power transforms for wide numeric tables."""

from typing import TYPE_CHECKING, Any

from powerkern._input.importing import import_late

if TYPE_CHECKING:  # `as` says to type checkers that a name is public
    from powerkern._estimators.adaptive_rewml import AdaptiveRewML as AdaptiveRewML
    from powerkern._estimators.carroll import Carroll as Carroll
    from powerkern._estimators.central_ml import CentralML as CentralML
    from powerkern._estimators.ml import ML as ML
    from powerkern._estimators.mtl import MTL as MTL
    from powerkern._estimators.ppcc import PPCC as PPCC
    from powerkern._estimators.rewml import RewML as RewML
    from powerkern._estimators.rewml import RewMLNR as RewMLNR
    from powerkern._fit.fit import fit as fit
    from powerkern._results.grouped_fit import GroupedFit as GroupedFit
    from powerkern._results.power_fit import PowerFit as PowerFit
    from powerkern._results.stored_fit import load as load
    from powerkern._status import Status as Status

#: The public names by the modules that define them; they are imported when first used: the command line needs none.
_NAMES = {
    "_estimators.carroll": ("Carroll",),
    "_estimators.ml": ("ML",),
    "_estimators.mtl": ("MTL",),
    "_estimators.ppcc": ("PPCC",),
    "_estimators.central_ml": ("CentralML",),
    "_estimators.adaptive_rewml": ("AdaptiveRewML",),
    "_estimators.rewml": ("RewML", "RewMLNR"),
    "_fit.fit": ("fit",),
    "_results.grouped_fit": ("GroupedFit",),
    "_results.stored_fit": ("load",),
    "_results.power_fit": ("PowerFit",),
    "_status": ("Status",),
}
_FUNCTIONS = ("fit", "load")
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

#: The public modules, imported when first used. Some need other libraries.
_MODULES = (
    *("cellwise", "completion", "dask", "federated", "joint", "kernels", "location", "onnx", "outliers", "plot", "ray"),
    *("regression", "results", "sketch", "sklearn", "spark", "stats", "xarray"),
)

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Return the version, or a public name or module, which is imported now."""
    if name == "__version__":
        return _version()
    if name in _MODULES:
        return _module(name)
    if name not in _HOMES:
        from powerkern._input.messages import did_you_mean

        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{did_you_mean(name, (*__all__, *_MODULES))}"
        )
    value = getattr(import_late(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    if name in _FUNCTIONS or isinstance(value, type):
        import_late(f"{__name__}._input.messages").suggest_keywords(globals(), (*_FUNCTIONS, name))
    return globals()[name]


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])


def _module(name: str) -> Any:
    """Import a public module; if a library that it needs is missing, it counts as absent, and the error says why."""
    try:
        return import_late(f"{__name__}.{name}")
    except ImportError as error:
        raise AttributeError(f"powerkern.{name} cannot be imported: {error}") from error


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("powerkern")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "0+unknown"
