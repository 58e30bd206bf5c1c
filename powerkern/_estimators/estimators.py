"""Look up estimators by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from powerkern._estimators.base import Estimator
from powerkern._estimators.names import class_homes, class_names
from powerkern._input.arrays import as_choice
from powerkern._input.importing import import_late


def _import_class(kind: str) -> type[Estimator]:
    found: type[Estimator] = getattr(import_late(f"powerkern.{class_homes()[kind]}"), kind)
    return found


#: The classes of the estimators, by name. As an argument, a name stands for an object with default options.
ESTIMATORS = {name: _import_class(kind) for name, kind in class_names().items()}
#: The estimators with default options. They are frozen, so that all fits can use the same objects.
_WITH_DEFAULTS = {name: kind() for name, kind in ESTIMATORS.items()}


def as_estimator(estimator: object) -> Estimator:
    """Return the estimator that an argument names, or the argument itself if it is an estimator.

    Raises
    ------
    TypeError
        The argument is the class of an estimator, not an object.
    ValueError
        The argument is not the name of an estimator; the message suggests the most similar name.
    """
    if isinstance(estimator, Estimator):  # objects and names are both allowed
        return estimator
    if isinstance(estimator, type) and issubclass(estimator, Estimator):
        raise TypeError(f"estimator is the class {estimator.__name__}; pass an object, {estimator.__name__}()")
    return _WITH_DEFAULTS[as_choice("estimator", estimator, ESTIMATORS)]


def with_options(name: str, options: Mapping[str, Any]) -> Estimator:
    """Return the estimator called `name` with the given options."""
    kind = type(as_estimator(name))
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            has = f"its options are {', '.join(known)}" if known else "it has none"
            raise ValueError(f"estimator {name!r} has no option {option!r}: {has}")
    return kind(**options)


def options_of(estimator: Estimator) -> dict[str, Any]:
    """Return the options of an estimator as a dict, which `with_options` accepts."""
    options: dict[str, Any] = asdict(estimator)  # type: ignore[call-overload]
    return options
