"""Table of the estimators: names, classes and options, for fits, the namespace `powerkern` and the command line.

This module imports nothing slow, because the command line and ``import powerkern`` start without the estimators. To add
an estimator, give it a file of its own, and add a row and an import for type checkers here.
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
    """One estimator: its module in this package, the name of its class, and the options of the class."""

    module: str
    kind: str
    options: tuple[str, ...]


#: Options that all variants of RewML have.
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
    """Return the module of each estimator class, relative to `powerkern`, by the name of the class."""
    return {row.kind: f"_estimators.{row.module}" for row in _ROWS.values()}


def class_names() -> dict[str, str]:
    """Return the class names of all estimators, by the names of the estimators."""
    return {name: row.kind for name, row in _ROWS.items()}


def estimators_by_option() -> dict[str, list[str]]:
    """Return, for each option, the names of the estimators that have it."""
    options = dict.fromkeys(option for row in _ROWS.values() for option in row.options)
    return {option: [name for name, row in _ROWS.items() if option in row.options] for option in options}
