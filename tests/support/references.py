"""Optima computed with many digits: a small set of our own, and the large one beside the repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from pages import ROOT

DBL_MAX = float(np.finfo(np.float64).max)
FAMILIES = {"boxcox": "box-cox", "yeojohnson": "yeo-johnson"}
SHARED = ROOT.parent / "shared" / "refs"
#: Columns whose standardised values are compared one by one: those on which other implementations overflow or guess.
HARDEST = ("table1_", "tight_", "mix", "range_", "denorm", "below1_")


class Case(NamedTuple):
    """A column with its optimum; decimal numbers are text of more digits than a float has."""

    name: str
    family: str
    kind: str
    x: np.ndarray
    weight: np.ndarray | None
    lmbda: str
    nll: str
    sensitivity: float
    bounded: dict[float, str]


def own_cases() -> list[Case]:
    records = json.loads((ROOT / "tests" / "data" / "mle.json").read_text())["cases"]
    return [
        Case(
            name=r["name"],
            family=r["family"],
            kind="well" if r["sensitivity"] <= 1e-12 else "ill",
            x=np.array(r["x"]),
            weight=np.array(r["weight"]) if "weight" in r else None,
            lmbda=r["lmbda"],
            nll=r["nll"],
            sensitivity=r["sensitivity"],
            bounded={b["ymax"]: b["lmbda"] for b in r.get("bounded", [])},
        )
        for r in records
    ]


def shared_cases() -> list[Case]:
    return [shared_case(r) for path in sorted(SHARED.glob("mle_reference*.json")) for r in read(path)]


def read(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text())["cases"]


def shared_case(r: dict[str, Any]) -> Case:
    bounds = {"lambda_bounded_dblmax": DBL_MAX, "lambda_bounded_dblmax_over_1e4": DBL_MAX / 1e4}
    return Case(
        name=r["name"],
        family=FAMILIES[r["transform"]],
        kind=r["class"],
        x=np.array([float(v) for v in r["data"]]),
        weight=None,
        lmbda=r["lambda_star"],
        nll=r.get("nll", ""),
        sensitivity=float(r.get("half_ulp_sensitivity", 0.0)),
        bounded={ymax: r[key] for key, ymax in bounds.items() if key in r},
    )


def parameters(cases: list[Case], reason: str) -> Any:
    """Make one test per case; without cases, make one skipped test that states the reason."""
    if not cases:
        return pytest.mark.parametrize("case", [pytest.param(None, marks=pytest.mark.skip(reason=reason))])
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


ABSENT = f"no reference values at {SHARED}"
OWN = own_cases()
THEIRS = shared_cases()
FITTED = [case for case in OWN + THEIRS if case.kind in ("well", "ill", "flat")]
HARD = OWN + [case for case in FITTED if case.name.startswith(HARDEST) and case.x.size <= 60]


def relative_error(value: float, exact: str, unit: float = 1.0) -> float:
    """Return |value - exact| over max(unit, |exact|)."""
    with mpmath.workdps(30):
        return float(abs(mpmath.mpf(value) - mpmath.mpf(exact)) / max(unit, abs(mpmath.mpf(exact))))


def lambda_tolerance(case: Case) -> float:
    return 1e-12 if case.kind == "well" else 10.0 * case.sensitivity
