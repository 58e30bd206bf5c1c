"""Records for one column of a robust fit: the data, their prestandardisation, and the result of a search."""

from __future__ import annotations

from typing import Any, NamedTuple

from powerkern._typing import FloatArray
from powerkern.kernels.location.weights import FrequencyWeights
from powerkern.kernels.transforms.rectified import SortedColumn


class Prestandardized(NamedTuple):
    """A prestandardised column, the target with which the objective compares it, and room for its transform."""

    column: SortedColumn
    counts: FrequencyWeights | None  #: weights; numba compiles separate code for None
    target: Any  #: normal scores, or with weights the nodes of the scores; for Carroll's objective the mean log
    y: FloatArray  #: receives transformed values; as long as the arrays of `column`


class Prescaling(NamedTuple):
    """The constants with which a column was prestandardised, and whether that succeeded.

    The prestandardised column is ``(x - center)/divisor`` for Yeo-Johnson and ``(x/divisor)**(1/power)`` for Box-Cox.
    """

    center: float
    divisor: float
    power: float
    status: int  #: OK, or the status of a column without scale


class Column(NamedTuple):
    """A sorted column, both in the units of the data and prestandardised."""

    x: FloatArray
    family: int
    prescaling: Prescaling
    standardized: Prestandardized


class SearchResult(NamedTuple):
    """Result of a search for the lambda that minimises an objective."""

    lmbda: float
    n_eval: int
    n_rivals: int  #: number of other minima that are nearly as low
    inside: bool  #: whether lambda is inside the interval searched
    value: float  #: the objective at lambda
