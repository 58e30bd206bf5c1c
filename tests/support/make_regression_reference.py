"""Write tests/data/regression.json: results of R's car and MASS, without third-party data sets.

The results are those of R 4.2.2 with car 3.1.1 and MASS 7.3.58. The functions are ``powerTransform(lm(y ~ ...), family
= "bcPower")``, or "yjPower", with ``summary`` and ``testTransform``, for one or several responses, and
``MASS::boxcox``. Their full output lies beside the repository in shared/refs. ``python
tests/support/make_regression_reference.py`` keeps some of the figures. It takes a second and needs the full output. The
figures cannot be recomputed without R.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reference_files import SHARED

SOURCE = SHARED / "refs" / "regression_reference.json"
TARGET = Path(__file__).parents[1] / "data" / "regression.json"
ABOUT = (
    "R 4.2.2, car 3.1.1, MASS 7.3.58. univariate: powerTransform of a response given covariates, likelihood ratio "
    "tests of 0 and 1 (lr0, lr1), coefficients and residual sum of squares at lambda; lambda_exact, llf_exact: by "
    "bisection, to 1e-7; mass_llf: MASS::boxcox at mass_lambda. multivariate: of columns at once. y and X: only of "
    "data that were simulated for this purpose. Kept by tests/support/make_regression_reference.py."
)
#: MASS computes the profile at -3, -2.95, ..., 3; whole numbers are kept.
PROFILE_STEP = 20


def read_source() -> dict[str, list[dict[str, Any]]]:
    return json.loads(SOURCE.read_text(encoding="utf-8"))


def keep_univariate(r: dict[str, Any]) -> dict[str, Any]:
    data = ("y", "X") if r["name"].startswith("sim") else ()
    keys = ("name", "family", "lambda", "se", "rounded", "wald_low", "wald_high", "lr0", "lr1", "coef", "rss")
    kept = {key: r[key] for key in (*keys, *data, "lambda_exact", "llf_exact") if key in r}
    if "mass_llf" in r:
        kept |= {key: r[key][::PROFILE_STEP] for key in ("mass_lambda", "mass_llf")}
    return kept


def keep_multivariate(r: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "family", "lambda", "se", "rounded", "llik", "wald", "lr0", "lr1", "invHess")
    return {key: r[key] for key in keys}


def keep() -> dict[str, Any]:
    source = read_source()
    return {
        "univariate": [keep_univariate(r) for r in source["univariate"]],
        "multivariate": [keep_multivariate(r) for r in source["multivariate"]],
    }


def main() -> None:
    parts = [f'"about": {json.dumps(ABOUT)}']
    parts += [f'"{key}": [\n' + ",\n".join(map(json.dumps, value)) + "\n]" for key, value in keep().items()]
    TARGET.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
