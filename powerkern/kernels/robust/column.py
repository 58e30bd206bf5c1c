"""One column of a robust fit: as given, prestandardised, and the end of a search of lambda."""

from __future__ import annotations

from typing import Any, NamedTuple

from powerkern._typing import FloatArray
from powerkern.kernels.location.weights import FrequencyWeights
from powerkern.kernels.transforms.rectified import SortedColumn


class Prestandardized(NamedTuple):
    """A prestandardised column, the target of the objective, and room for the transform.

    The type of `counts`, weights or None, says which code is compiled.
    """

    column: SortedColumn
    counts: FrequencyWeights | None
    target: Any  #: normal scores, with weights their nodes; for Carroll's objective the mean log
    y: FloatArray  #: as long as the arrays of `column`


class Prescaling(NamedTuple):
    """Prestandardisation: ``(x - center)/divisor`` (Yeo-Johnson), ``(x/divisor)**(1/power)`` (Box-Cox)."""

    center: float
    divisor: float
    power: float
    status: int


class Column(NamedTuple):
    """A sorted column of a fit, in its own units and prestandardised for the search."""

    x: FloatArray
    family: int
    prescaling: Prescaling
    standardized: Prestandardized


class SearchResult(NamedTuple):
    """Result of a search."""

    lmbda: float
    n_eval: int
    n_rivals: int
    inside: bool
    value: float  #: of the objective
