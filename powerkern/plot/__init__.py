"""Plots of fits with matplotlib.

The first argument of each function is the data, the second the fit. Functions draw on the axes passed as `ax`, or on a
new figure, and return the axes. Colors of text, lines and backgrounds follow the style of matplotlib, light or dark.
"""

from powerkern._input.messages import suggest_keywords
from powerkern.plot._cells import cell_map
from powerkern.plot._elbow import elbow_plot
from powerkern.plot._forest import forest_plot
from powerkern.plot._histograms import before_after_plot, histogram_plot
from powerkern.plot._lambda_map import lambda_map
from powerkern.plot._lambdas import objective_plot, profile_plot
from powerkern.plot._outliers import outlier_map, reliability_plot, score_plot
from powerkern.plot._qq import qq_plot, residual_plot

__all__ = [
    "before_after_plot",
    "cell_map",
    "elbow_plot",
    "forest_plot",
    "histogram_plot",
    "lambda_map",
    "objective_plot",
    "outlier_map",
    "profile_plot",
    "qq_plot",
    "reliability_plot",
    "residual_plot",
    "score_plot",
]

suggest_keywords(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
