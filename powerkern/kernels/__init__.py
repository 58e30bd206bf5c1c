"""Numerical kernels, compiled when Python calls them and inlined when jitted code calls them."""

from powerkern.kernels.likelihood.nll import boxcox_nll, yeojohnson_nll
from powerkern.kernels.location.huber_location import huber_location, huber_proposal2, huber_scale
from powerkern.kernels.log_moments import log_mean, log_var, logsumexp
from powerkern.kernels.moments import chan_merge, welford_update
from powerkern.kernels.optimize.brent import brent
from powerkern.kernels.optimize.golden_section import golden_section
from powerkern.kernels.optimize.newton import newton_root
from powerkern.kernels.robust.qq import bisquare_objective
from powerkern.kernels.transforms.rectified import (
    inv_rectified_boxcox,
    inv_rectified_yeojohnson,
    rectified_boxcox,
    rectified_yeojohnson,
)

__all__ = [
    "bisquare_objective",
    "boxcox_nll",
    "brent",
    "chan_merge",
    "golden_section",
    "huber_location",
    "huber_proposal2",
    "huber_scale",
    "inv_rectified_boxcox",
    "inv_rectified_yeojohnson",
    "log_mean",
    "log_var",
    "logsumexp",
    "newton_root",
    "rectified_boxcox",
    "rectified_yeojohnson",
    "welford_update",
    "yeojohnson_nll",
]
