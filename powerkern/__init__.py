"""powerkern: exact, fast power transforms for wide numeric tables."""

from typing import TYPE_CHECKING, Any

from powerkern._estimators.names import class_homes
from powerkern._input.importing import import_late

if TYPE_CHECKING:  # `as` says to type checkers that a name is public
    from powerkern._estimators.names import *  # noqa: F403
    from powerkern._fit.fit import fit as fit
    from powerkern._results.grouped_fit import GroupedFit as GroupedFit
    from powerkern._results.power_fit import PowerFit as PowerFit
    from powerkern._results.stored_fit import load as load
    from powerkern._status import Status as Status

#: The public names and the modules that define them. They are imported at first use, because the command line needs
#: none.
_HOMES = class_homes() | {
    "fit": "_fit.fit",
    "GroupedFit": "_results.grouped_fit",
    "load": "_results.stored_fit",
    "PowerFit": "_results.power_fit",
    "Status": "_status",
}
_FUNCTIONS = ("fit", "load")

#: The public modules, imported when first used. Some need other libraries.
_MODULES = (
    *("cellwise", "completion", "dask", "federated", "joint", "kernels", "location", "onnx", "outliers", "plot", "ray"),
    *("regression", "results", "sketch", "sklearn", "spark", "stats", "xarray"),
)

__all__ = ["__version__", *_HOMES]  # noqa: F405


def __getattr__(name: str) -> Any:
    """Return the version, or import and return a public function, class or module."""
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
    """Import a public module. If a library that it needs is missing, raise AttributeError with the reason."""
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
