"""The power transforms of `scipy.stats` and `scipy.special`: same names, same signatures, exact and fast.

Change one import line, ``from scipy.stats import boxcox`` to ``from powerkern.stats import boxcox``. Errors, warnings
and return types match the installed SciPy, up to 1.18. There are three differences. Lambda is the root of the score to
rounding error, while SciPy's search stops at 1e-8. Nothing overflows. No search for a bracket can fail.

`boxcox_guerrero`, which chooses lambda for a seasonal series, has no counterpart in SciPy.

All functions compute in float64. Results are float32 if SciPy's promotion rules give float32 or float16, otherwise
float64.
"""

from powerkern._input.messages import suggest_keywords
from powerkern.stats._boxcox import boxcox, boxcox_llf, boxcox_normmax, inv_boxcox
from powerkern.stats._boxcox1p import boxcox1p, inv_boxcox1p
from powerkern.stats._guerrero import boxcox_guerrero
from powerkern.stats._normplots import boxcox_normplot, yeojohnson_normplot
from powerkern.stats._yeojohnson import inv_yeojohnson, yeojohnson, yeojohnson_llf, yeojohnson_normmax

__all__ = [
    "boxcox",
    "boxcox1p",
    "boxcox_guerrero",
    "boxcox_llf",
    "boxcox_normmax",
    "boxcox_normplot",
    "inv_boxcox",
    "inv_boxcox1p",
    "inv_yeojohnson",
    "yeojohnson",
    "yeojohnson_llf",
    "yeojohnson_normmax",
    "yeojohnson_normplot",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
