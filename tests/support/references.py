"""Multiprecision optima, in tests/data/mle.json and mle_hard.json (written by make_reference.py)."""

from __future__ import annotations

from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from reference_files import read_reference

DBL_MAX = float(np.finfo(np.float64).max)


class Case(NamedTuple):
    """A column with its optimum; numbers are decimal text with more digits than a float has.

    `kind` is "well" or "ill" (conditioned), or "flat" if the likelihood hardly depends on lambda. Columns without an
    optimum are "degenerate" (constant) or "unrepresentable".
    """

    name: str
    family: str
    kind: str
    x: np.ndarray
    weight: np.ndarray | None
    lmbda: str
    nll: str
    sensitivity: float
    bounded: dict[float, str]


def read_cases(file: str) -> list[Case]:
    """Read the cases of a file of tests/data."""
    return [case_from_record(record) for record in read_reference(file)["cases"]]


def case_from_record(record: dict[str, Any]) -> Case:
    x = np.array(record["x"])
    sensitivity = record.get("sensitivity", 0.0)
    return Case(
        name=record["name"],
        family=record["family"],
        kind=record.get("kind", "well" if sensitivity <= 1e-12 else "ill"),
        x=np.repeat(x, record["repeat"]) if "repeat" in record else x,
        weight=np.array(record["weight"]) if "weight" in record else None,
        lmbda=record.get("lmbda", ""),
        nll=record.get("nll", ""),
        sensitivity=sensitivity,
        bounded={b["ymax"]: b["lmbda"] for b in record.get("bounded", [])},
    )


def each_case(cases: list[Case]) -> Any:
    """Parametrize a test by cases; the ids are their names."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


CASES = read_cases("mle.json") + read_cases("mle_hard.json")
FITTED = [case for case in CASES if case.kind in ("well", "ill", "flat")]
WITHOUT_OPTIMUM = [case for case in CASES if case.kind in ("degenerate", "unrepresentable")]
#: Short enough that every standardized value is compared with a multiprecision one.
SHORT = [case for case in FITTED if case.x.size <= 60]


def relative_error(value: float, exact: str, unit: float = 1.0) -> float:
    """Return |value - exact| divided by max(unit, |exact|); `exact` is a decimal."""
    with mpmath.workdps(30):
        return float(abs(mpmath.mpf(value) - mpmath.mpf(exact)) / max(unit, abs(mpmath.mpf(exact))))


def lambda_tolerance(case: Case) -> float:
    return 1e-12 if case.kind == "well" else 10.0 * case.sensitivity
