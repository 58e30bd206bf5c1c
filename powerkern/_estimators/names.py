"""The table of estimators: their names, classes and options, for fits, `powerkern` and the command line.

The command line and ``import powerkern`` start without importing estimators: this module imports nothing slow. A new
estimator takes its own file, and here a row and its import for type checkers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # the public classes, which `powerkern` re-exports
    from powerkern._estimators.adaptive_rewml import AdaptiveRewML
    from powerkern._estimators.carroll import Carroll
    from powerkern._estimators.central_ml import CentralML
    from powerkern._estimators.ml import ML
    from powerkern._estimators.mtl import MTL
    from powerkern._estimators.ppcc import PPCC
    from powerkern._estimators.rewml import RewML, RewMLNR

    __all__ = ["ML", "MTL", "PPCC", "AdaptiveRewML", "Carroll", "CentralML", "RewML", "RewMLNR"]


class _Row(NamedTuple):
    """An estimator: its module in this package, its class there, and the options of that class."""

    module: str
    kind: str
    options: tuple[str, ...]


#: Options of all forms of RewML.
_REWEIGHTED = ("cutoff", "n_reweight", "prestandardize", "search", "search_range", "c")

#: The estimators by name; their options are the fields of their classes.
_ROWS = {
    "mle": _Row("ml", "ML", ("prestandardize",)),
    "central-mle": _Row("central_ml", "CentralML", ("cutoff",)),
    "robust": _Row(
        "adaptive_rewml",
        "AdaptiveRewML",
        ("adaptive_cutoff", *_REWEIGHTED, "change_points", "rectify", "first_weights"),
    ),
    "rewml": _Row("rewml", "RewML", ("convention", *_REWEIGHTED, "change_points", "first_weights")),
    "rewml-nr": _Row("rewml", "RewMLNR", ("convention", *_REWEIGHTED)),
    "carroll": _Row("carroll", "Carroll", ("cutoff", "prestandardize", "search_range")),
    "mtl": _Row("mtl", "MTL", ("cutoff", "prestandardize", "search_range", "h")),
    "ppcc": _Row("ppcc", "PPCC", ("cutoff",)),
}


def class_homes() -> dict[str, str]:
    """Return the module of each class of an estimator, within `powerkern`."""
    return {row.kind: f"_estimators.{row.module}" for row in _ROWS.values()}


def class_names() -> dict[str, str]:
    """Return the name of the class of each estimator, by the estimator's name."""
    return {name: row.kind for name, row in _ROWS.items()}


def estimators_by_option() -> dict[str, list[str]]:
    """Return which estimators have each option, options in the order in which they appear first."""
    options = dict.fromkeys(option for row in _ROWS.values() for option in row.options)
    return {option: [name for name, row in _ROWS.items() if option in row.options] for option in options}
