"""Write tests/data/cellwise_fits.json and cellwise_steps.json: results of R's cellWise for our own vectors.

The vectors were drawn for this purpose. R 4.2.2 with cellWise 2.5.3 fitted them by ``transfo(X, type = "YJ", robust =
TRUE, standardize = TRUE)``, or "BC", and computed the steps of a fit at given lambdas. R's full output lies beside the
repository in shared/refs/cellwise. ``python tests/support/make_cellwise_reference.py`` keeps the figures that the tests
need. It takes a second and needs the full output. The figures cannot be recomputed without R.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from reference_files import SHARED

FOLDER = Path(__file__).parents[1] / "data"
SOURCE = SHARED / "refs" / "cellwise"
ABOUT = "R 4.2.2, cellWise 2.5.3, on vectors of our own. Kept by tests/support/make_cellwise_reference.py. "
ABOUT_FITS = ABOUT + (
    "x: the vectors; null is missing, and so is infinite to R. fits: transfo(x, type, robust = TRUE, standardize = "
    "TRUE). lambda0, lambda: before and after reweighting; lambda_polished: the optimum on the same cells to 1e-12; "
    "w0: cells of weight 0, counted from 0; w0_lastfit: those before the last fit; Y: the first values of the output. "
    "sensitivity: 100 (lambda of 99 quantiles of N(0, 1) and z - lambda of the 99), of their exponentials for BC."
)
ABOUT_STEPS = ABOUT + (
    "huber: location and scale by one step. at_lambda: of a vector of cellwise_fits.json, u = (x - median)/mad (yj) or "
    "x/median (bc), sorted. rows: lambda, change point (null for lambda = 1), location and scale of the plain and of "
    "the rectified transform, objective of both (halved), and both transforms at `positions`. optimize: the points and "
    "values that R's optimize() visits."
)
#: The vectors that are kept: clean, skewed, with outliers on either side, with ties, short, far from 0, given up by R.
NAMES = (
    "lognormal_n100",
    "lognormal_out10_k10",
    "yj_l0.5_e10_k10",
    "yj_l0.5_e15_k6",
    "yj_l1_e05_k10",
    "yj_l1.5_e15_k10",
    "bc_l0_e05_k6",
    "bc_l0_e15_k10",
    "truncnorm_bc_l1_e10_k6",
    "left_skewed",
    "left_skewed_low_outliers",
    "tiny_n10",
    "ties_round1",
    "discrete7",
    "mad0_dropped",
    "lognormal_with_na_inf",
    "offset1000",
    "one_huge_outlier",
    "gauss_5pct_both",
    "negatives",
)
KEYS = ("column", "type", "n_used", "lambda0", "lambda", "lambda_polished", "locx", "scalex", "w0", "w0_lastfit")
PATHS = ("optimize_path_yj", "optimize_path_bc")
#: Largest number of values of R's output that are kept.
N_OUTPUT = 8


def read_source(file: str) -> Any:
    return json.loads((SOURCE / file).read_text(encoding="utf-8"))


def vector(name: str) -> list[float | None]:
    x = np.genfromtxt(SOURCE / "inputs" / f"syn_{name}.csv", skip_header=1)
    return [float(v) if np.isfinite(v) else None for v in x]


def fits() -> list[dict[str, Any]]:
    """Return the robust fits of standardized columns, and the columns on which R fails."""
    kept = []
    for r in read_source("synthetic.json")["records"]:
        if r["column"] in NAMES and r["robust"] and r["standardize"]:
            if "error" in r:
                kept.append({"column": r["column"], "type": r["type"], "given_up": True})
            else:
                output = [None if v is None else round(v, 6) for v in np.array(r["Y"], dtype=object)[:N_OUTPUT]]
                kept.append({key: r[key] for key in KEYS} | {"Y": output})
    return kept


def curves() -> list[dict[str, Any]]:
    kept = []
    for curve in read_source("sensitivity_curves.json")["curves"]:
        pairs = [(z, round(float(sc), 6)) for z, sc in zip(curve["z"], curve["SC"], strict=True)][::5]
        z, sc = zip(*pairs, strict=True)
        kept.append({key: curve[key] for key in ("method", "type", "standardize")} | {"z": z, "SC": sc})
    return kept


def steps_at_lambdas(unit: dict[str, Any]) -> dict[str, Any]:
    """Select R's results for one vector at given lambdas, and a few of its transformed values.

    A result is the change point, then Huber's estimates and the criteria of the plain and the rectified transform.

    Parameters
    ----------
    unit : dict
        A record of ``units.json``: the vector's column, median and mad, and lists of results, "yj" and "bc".
    """
    n = len(unit["yj"][0]["yj"])
    positions = sorted({0, n // 4, n // 2, n - 2, n - 1})
    kept: dict[str, Any] = {
        "column": unit["column"],
        "median": unit["median"],
        "mad": unit["mad"],
        "positions": positions,
    }
    for kind in ("yj", "bc"):
        kept[kind] = [
            [
                r["lambda"],
                None if r["lambda"] == 1.0 else r["chg"],
                r["huber_plain"],
                r["huber_rect"],
                r["crit_plain"],
                r["crit_rect"],
                [r[kind][i] for i in positions],
                [r[f"{kind}r"][i] for i in positions],
            ]
            for r in unit[kind]
        ]
    return kept


def steps() -> dict[str, Any]:
    units = read_source("units.json")
    return {
        "huber": [{key: h[key] for key in ("x", "huber_loc", "huber_scale")} for h in units["huber"]],
        "at_lambda": [steps_at_lambdas(unit) for unit in units["units"] if unit["column"] in NAMES],
        "optimize": [unit[key] for unit in units["units"] for key in PATHS if key in unit],
    }


def write(file: str, about: str, content: dict[str, list[Any] | dict[str, Any]]) -> None:
    """Write a JSON file with one line for each vector or record of `content`; `about` describes the content."""
    parts = [f'"about": {json.dumps(about)}']
    for key, value in content.items():
        if isinstance(value, dict):
            lines = [f"{json.dumps(name)}: {json.dumps(x)}" for name, x in value.items()]
            parts.append(f'"{key}": {{\n' + ",\n".join(lines) + "\n}")
        else:
            parts.append(f'"{key}": [\n' + ",\n".join(map(json.dumps, value)) + "\n]")
    (FOLDER / file).write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def main() -> None:
    x = {name: vector(name) for name in NAMES}
    write("cellwise_fits.json", ABOUT_FITS, {"x": x, "fits": fits(), "sensitivity": curves()})
    write("cellwise_steps.json", ABOUT_STEPS, steps())


if __name__ == "__main__":
    main()
