"""``convention="cellwise"`` compared with R's cellWise 2.5.3, record by record, and with the paper's values."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import make_cellwise_reference as script
import numpy as np
import oracles
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_files import SHARED, cellwise_vectors, make_again, read_reference
from scipy.special import ndtri

import powerkern as pk
from powerkern import PowerFit, Status

FAMILIES = {"YJ": "yeo-johnson", "BC": "box-cox"}
#: By file of records: the file of the fitted data.
FILES = {
    "synthetic": None,
    "brands": "data_brands.csv",
    "clothes": "data_clothes.csv",
    "philips": "data_philips.csv",
    "topgear_paper": "topgear_paper.csv",
    "glass_part": "data_glass.csv.gz",
}
#: The tolerance of R's optimize().
R_XTOL = 1.3e-4

needs_shared_data = pytest.mark.needs_shared_data
#: Our own vectors, and public data sets, which are not part of the repository.
every_file = pytest.mark.parametrize(
    "file", [name if path is None else pytest.param(name, marks=needs_shared_data) for name, path in FILES.items()]
)


@cache
def data(file: str) -> dict[str, np.ndarray]:
    """Return the columns of a file by name, with NaN for infinite values, which R counts as missing."""
    if FILES[file] is None:
        return cellwise_vectors()
    names = np.genfromtxt(SHARED / "data" / FILES[file], delimiter=",", names=True, deletechars="", replace_space=" ")
    return {name: np.where(np.isinf(names[name]), np.nan, names[name]) for name in names.dtype.names}


@cache
def records(file: str) -> list[dict[str, Any]]:
    """Return R's records of robust, standardised fits, without those that failed."""
    if FILES[file] is None:
        return [r for r in read_reference("cellwise_fits.json")["fits"] if "given_up" not in r]
    read = json.loads((SHARED / f"refs/cellwise/{file}.json").read_text())
    read = read["records"] if isinstance(read, dict) else read
    return [r for r in read if r["robust"] and r["standardize"] and "error" not in r]


@cache
def fit_recorded_columns(file: str, family: str, **options: str) -> dict[str, PowerFit]:
    """Fit every column that has a record for this family in `file`, with options of RewML; return fits by column."""
    columns = {r["column"]: data(file)[r["column"]] for r in records(file) if FAMILIES[r["type"]] == family}
    by_size: dict[int, list[str]] = {}
    for name, x in columns.items():
        by_size.setdefault(x.size, []).append(name)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # searches that end in a widened interval
        for names in by_size.values():
            X = np.column_stack([columns[name] for name in names])
            fit = pk.fit(X, family, pk.RewML(**options))
            found |= {name: fit[j : j + 1] for j, name in enumerate(names)}
    return found


def prestandardized(record: dict[str, Any], x: np.ndarray) -> np.ndarray:
    """Prestandardise a column with the center and the scale that R recorded."""
    return (x.astype(np.longdouble) - record["locx"]) / record["scalex"]


def left_out(fit: PowerFit, x: np.ndarray) -> list[int]:
    return [i for i in np.flatnonzero(fit.weights(x) == 0.0) if not np.isnan(x[i])]


@every_file
def test_excluded_cells_and_lambda_are_those_of_cellwise(file):
    """Excluded cells are equal; lambda agrees within the tolerance of R's search."""
    seen = 0
    for record in records(file):
        x, family = data(file)[record["column"]], FAMILIES[record["type"]]
        fit = fit_recorded_columns(file, family, convention="cellwise")[record["column"]]
        where = (record["column"], family)
        assert left_out(fit, x) == sorted(record["w0"]), where
        assert fit.n_kept[0] == record["n_used"] - len(record["w0"]), where
        assert abs(fit.lmbda[0] - record["lambda"]) <= R_XTOL, where
        assert abs(fit.lmbda0[0] - record["lambda0"]) <= R_XTOL, where
        # values of the objective determine its minimum to about the root of the rounding unit, over the curvature
        assert abs(fit.lmbda[0] - record["lambda_polished"]) <= 2e-5, where
        seen += 1
    assert seen >= 10


@every_file
def test_lambda_is_the_optimum_on_the_same_cells(file):
    """The likelihood score, on the cells that R keeps in its last fit, changes sign within 1e-9 of lambda."""
    for record in records(file):
        x, family = data(file)[record["column"]], FAMILIES[record["type"]]
        kept = ~np.isnan(x)
        kept[record["w0_lastfit"]] = False
        u = prestandardized(record, x)[kept]
        lmbda = np.longdouble(fit_recorded_columns(file, family, convention="cellwise")[record["column"]].lmbda[0])
        below, above = (oracles.longdouble_score(family, lmbda + d, u) for d in (-1e-9, 1e-9))
        assert below < 0 < above, (record["column"], family)


@every_file
def test_standardised_values_are_those_of_cellwise(file):
    """Values are standardised by the mean and standard deviation (divisor n - 1) of the kept cells, as in R."""
    for record in records(file):
        x, family = data(file)[record["column"]], FAMILIES[record["type"]]
        fit = fit_recorded_columns(file, family, convention="cellwise")[record["column"]]
        z = fit.transform(x)
        y = oracles.power_transforms(family, prestandardized(record, x), fit.lmbda[0])
        kept = ~np.isnan(x)
        kept[record["w0"]] = False
        expected = (y - y[kept].mean()) / y[kept].std(ddof=1)
        near = kept & (np.abs(expected) < 5)
        assert_allclose(z[near], expected[near].astype(float), atol=1e-9, err_msg=str(record["column"]))
        if "Y" in record:
            theirs = np.array(record["Y"], dtype=float)
            seen = near[: theirs.size]
            assert_allclose(z[: theirs.size][seen], theirs[seen], atol=2e-3)


@every_file
def test_global_search_is_never_worse_than_the_path_of_r(file):
    for record in records(file):
        x, family = data(file)[record["column"]], FAMILIES[record["type"]]
        fit = fit_recorded_columns(file, family, convention="cellwise", search="global")[record["column"]]
        u = np.sort(prestandardized(record, x[~np.isnan(x)]))
        scores = ndtri((np.arange(1, u.size + 1) - 1 / 3) / (u.size + 1 / 3))
        ours, theirs = (
            oracles.qq_objective(family, u, lmbda, "cellwise", scores) for lmbda in (fit.lmbda0[0], record["lambda0"])
        )
        assert ours <= theirs + 1e-7, (record["column"], family)


@every_file
def test_global_search_is_never_worse_than_one_run_of_brents_method(file):
    """Compare the paper's objective at the starts that the global search and one run of Brent's method find."""
    for record in records(file):
        x, family = data(file)[record["column"]], FAMILIES[record["type"]]
        u, _, _, power = oracles.prestandardized(family, np.sort(x[~np.isnan(x)]), "mad")
        scores = ndtri((np.arange(1, u.size + 1) - 1 / 3) / (u.size + 1 / 3))
        ours, alone = (
            oracles.qq_objective(
                family,
                u,
                fit_recorded_columns(file, family, search=search)[record["column"]].lmbda0[0] * power,
                "paper",
                scores,
            )
            for search in ("global", "brent")
        )
        assert ours <= alone + 1e-7, (record["column"], family)


def test_columns_on_which_r_fails_have_a_status():
    read = read_reference("cellwise_fits.json")["fits"]
    given_up = {(r["column"], FAMILIES[r["type"]]) for r in read if "given_up" in r}
    assert given_up
    for column, family in given_up:
        x = data("synthetic")[column]
        with pytest.warns(UserWarning, match="not fitted robustly"):
            fit = pk.fit(x, family, pk.RewML(convention="cellwise"))
        assert fit.status[0] == Status.NO_SPREAD
        assert_array_equal(fit.transform(x), x)


@pytest.mark.parametrize(
    "family, lmbda, n_left_out", [("yeo-johnson", -0.15725974932912573, 21), ("box-cox", 0.022198853407665062, 295)]
)
def test_thirty_thousand_values_agree_with_cellwise(family, lmbda, n_left_out):
    """Compare with cellWise 2.5.3 in R 4.2.2, applied to exp(qnorm(ppoints(30000))).

    R estimates location and scale from 25,000 random values, so the results agree only approximately.
    """
    x = np.exp(ndtri((np.arange(1, 30001) - 0.5) / 30000))
    fit = pk.fit(x, family, pk.RewML(convention="cellwise"))
    assert fit.lmbda[0] == pytest.approx(lmbda, abs=5e-4)
    assert 30000 - fit.n_kept[0] == pytest.approx(n_left_out, rel=0.05)


#: The paper's rule with R's first weights.
FIXED = pk.AdaptiveRewML(n_reweight=2, adaptive_cutoff=False, rectify="one")


@needs_shared_data
def test_top_gear_as_published():
    """Box-Cox fits of MPG and Weight have the lambdas of section 4.2 of the paper, robust and by maximum likelihood."""
    columns = data("topgear_paper")
    X = np.column_stack([columns["MPG"], columns["Weight"]])
    assert pk.fit(X, "box-cox").lmbda.round(2).tolist() == [-0.11, 0.83]
    assert pk.fit(X, "box-cox", pk.RewML(convention="cellwise")).lmbda.round(2).tolist() == [0.84, 0.09]
    # the rule as printed keeps some other cells
    assert_allclose(pk.fit(X, "box-cox", FIXED).lmbda, [0.84, 0.09], atol=0.06)
    assert pk.fit(X, "box-cox", pk.RewML()).lmbda.round(2).tolist() == [0.84, 0.09]
    # the default leaves out an error of the table, and keeps four light cars
    default = pk.fit(X, "box-cox", "robust")
    assert default.lmbda.round(2).tolist() == [0.84, 0.64]
    weight = X[:, 1]
    assert weight[(default.weights(X)[:, 1] == 0.0) & ~np.isnan(weight)].tolist() == [210.0]
    assert sorted(weight[default.outliers(X)[:, 1]]) == [210.0, 450.0, 490.0, 550.0, 575.0]


def test_sensitivity_curves_agree_with_cellwise():
    """Compare curves of section 2.6 of the paper with R: 100 times the change of lambda by an additional value."""
    base = ndtri(np.arange(1, 100) / 100)
    seen = 0
    for curve in read_reference("cellwise_fits.json")["sensitivity"]:
        if curve["method"] == "ML" and curve["standardize"]:  # R standardises by mean and sd then
            continue
        family, z = FAMILIES[curve["type"]], np.array(curve["z"], dtype=float)
        X = np.vstack([np.repeat(base[:, None], z.size, axis=1), z])
        X, x = (np.exp(X), np.exp(base)) if family == "box-cox" else (X, base)
        estimator = pk.ML()
        if curve["method"] != "ML":
            kind = pk.RewMLNR if curve["method"] == "RewMLnr" else pk.RewML
            estimator = FIXED if curve["method"] == "RewML_paperQ" else kind(convention="cellwise")
            estimator = replace(estimator, prestandardize="mad" if curve["standardize"] else "none")
        found = 100 * (pk.fit(X, family, estimator).lmbda - pk.fit(x, family, estimator).lmbda)
        assert_allclose(found, np.array(curve["SC"], dtype=float), atol=0.005, err_msg=str(estimator))
        seen += 1
    assert seen >= 12


@needs_shared_data
def test_the_script_still_writes_its_files():
    assert make_again(script.fits()) == read_reference("cellwise_fits.json")["fits"]
    assert make_again(script.curves()) == read_reference("cellwise_fits.json")["sensitivity"]
    steps = make_again(script.steps())
    assert all(steps[key] == read_reference("cellwise_steps.json")[key] for key in steps)
