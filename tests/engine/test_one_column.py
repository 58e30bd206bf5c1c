"""The recipe of docs/contributing/layout: trace a single column through every route, as plain Python."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from processes import run

import powerkern as pk
from powerkern._engine.one_column import fit_vector_robustly
from powerkern._estimators import power_sums as _power_sums
from powerkern._estimators.estimators import ESTIMATORS
from powerkern._estimators.routes import fit_vector
from powerkern.kernels.transforms.family import FAMILIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contributing" / "layout.rst"

#: Run before the page's code: notes which functions of powerkern are entered from then on, and between which names.
WATCH = """
import json, sys
def watch(frame, event, argument):
    name = frame.f_code.co_filename.replace("\\\\", "/")
    if "/powerkern/" in name:
        seen.add(name.rsplit("/powerkern/", 1)[1] + ": " + frame.f_code.co_name)
"""


def traced() -> dict[str, tuple[float, set[str]]]:
    """Run the recipe's code; return for each route its lambda and the names of the Python functions that it called."""
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("How to trace one column") :]
    code = textwrap.dedent(re.search(r"code-block:: python\n\n((?:   .*\n|\n)+)", section)[1])
    lines = [WATCH, "seen, routes = set(), {}"]
    for line in code.splitlines():
        if route := re.match(r"(\w+) = .*fit_vector", line):
            lines += ["seen.clear(); sys.settrace(watch)", line, "sys.settrace(None)"]
            lines += [f"routes[{route[1]!r}] = ({route[1]}.lmbda, sorted(seen))"]
        else:
            lines.append(line)
    lines.append("print(json.dumps(routes))")
    found = json.loads(run("\n".join(lines), NUMBA_DISABLE_JIT="1"))
    return {route: (lmbda, set(functions)) for route, (lmbda, functions) in found.items()}


@pytest.mark.slow
def test_the_page_traces_every_route():
    routes = traced()
    assert set(routes) == {"lockstep", "one_pass", "two_pass", "sketched", "robust"}
    (one, in_one), (two, in_two) = routes["one_pass"], routes["two_pass"]
    (sketched, in_sketched), (robust, in_robust) = routes["sketched"], routes["robust"]
    x = np.random.default_rng(0).lognormal(size=400)[:30]
    assert abs(two - fit_vector(x, FAMILIES["box-cox"]).lmbda) < 1e-9
    assert abs(sketched - one) < 1e-12
    assert 1e-3 < abs(robust - one) < 0.2
    two_passes, sums = (
        "kernels/likelihood/two_pass.py: two_pass_optimum",
        "kernels/likelihood/one_pass_sums.py: add_sums",
    )
    assert sums in in_one
    assert two_passes not in in_one
    assert two_passes in in_two
    assert sums not in in_two
    assert {two_passes, "kernels/power_sums/fit.py: fit_sums"} <= in_sketched
    assert "kernels/robust/adaptive_rewml.py: initial_lambda" in in_robust
    in_lockstep = routes["lockstep"][1]
    assert "kernels/likelihood/lockstep.py: fit_in_lockstep" in in_lockstep
    assert not {sums, two_passes} & in_lockstep
    assert "kernels/likelihood/mle.py: one_pass_column" in in_one
    assert "kernels/likelihood/mle.py: two_pass_column" in in_two
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"``(kernels/[\w/]+\.py: \w+)``", page[page.index("How to trace") :])
    assert len(set(named)) >= 5
    assert set(named) <= in_lockstep | in_one | in_two | in_sketched | in_robust


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [2, 30, 400])
def test_one_column_alone_is_fitted_as_in_a_matrix(family, n):
    x = np.random.default_rng(n).lognormal(size=n)
    code = FAMILIES[family]
    assert fit_vector(x, code).lmbda == pk.fit(x, family).lmbda[0]
    assert fit_vector(x, code, 0.5).loc == pk.fit(x, family, lmbda=0.5).loc[0]
    weight = np.arange(n) % 3 + 1.0
    assert fit_vector(x, code, weight=weight).nll == pytest.approx(
        pk.fit(x, family, sample_weight=weight).nll[0] / weight.sum(), rel=1e-14
    )
    assert _power_sums.fit_vector(x, code).lmbda == pytest.approx(pk.fit(x, family).lmbda[0], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    "name", ["robust", *(pytest.param(n, marks=pytest.mark.slow) for n in ("rewml-nr", "carroll", "mtl"))]
)
def test_one_column_alone_is_fitted_robustly_as_in_a_matrix(name):
    estimator = ESTIMATORS[name]()
    x = np.random.default_rng(1).normal(size=60)
    x[::20] += 9.0
    fit = pk.fit(x, estimator=name)
    found = fit_vector_robustly(x, FAMILIES["yeo-johnson"], estimator.entries, estimator.kernel_options)
    assert (found.lmbda, found.lmbda0, found.center) == (fit.lmbda[0], fit.lmbda0[0], fit.center[0])
    assert (x == np.random.default_rng(1).normal(size=60)).sum() == 57  # not sorted in place
