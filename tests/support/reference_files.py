"""The reference values of tests/data, and the folder of public data beside the repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from pages import ROOT

#: Public data sets and R's results on them. They belong to others, so that they are not part of the repository; a test
#: that reads them is marked `needs_shared_data` and is skipped without them.
SHARED = ROOT.parent / "shared"


@cache
def read_reference(file: str) -> Any:
    """Read a file of tests/data."""
    return json.loads((ROOT / "tests" / "data" / file).read_text(encoding="utf-8"))


def make_again(record: object) -> Any:
    """Convert a record to JSON and back, so that it equals a record read from a file."""
    return json.loads(json.dumps(record))


def cellwise_vectors() -> dict[str, np.ndarray]:
    """Return the vectors of cellwise_fits.json by name, NaN where a value is missing."""
    return {name: np.array(x, dtype=float) for name, x in read_reference("cellwise_fits.json")["x"].items()}


class CellwiseStep(NamedTuple):
    """Results of R's cellWise for a prestandardized, sorted vector at one lambda."""

    family: str
    u: np.ndarray
    lmbda: float
    #: Change point; None for lambda = 1.
    change: float | None
    #: Location and scale of the plain and of the rectified transform.
    huber_plain: list[float]
    huber_rectified: list[float]
    #: Objective of the plain and of the rectified transform, halved.
    objective_plain: float | None
    objective_rectified: float | None
    #: Indices of the values whose transforms are `plain` and `rectified`.
    positions: list[int]
    plain: list[float]
    rectified: list[float]


def cellwise_steps() -> Iterator[CellwiseStep]:
    """Yield R's results at given lambdas, from cellwise_steps.json, as `CellwiseStep`."""
    for unit in read_reference("cellwise_steps.json")["at_lambda"]:
        x = np.sort(cellwise_vectors()[unit["column"]])
        columns = {"yj": ("yeo-johnson", (x - unit["median"]) / unit["mad"]), "bc": ("box-cox", x / unit["median"])}
        for kind, (family, u) in columns.items():
            for *figures, plain, rectified in unit[kind]:
                yield CellwiseStep(family, u, *figures, unit["positions"], plain, rectified)
