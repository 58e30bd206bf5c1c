"""Numerical kernels: compiled when Python calls them, inlined when jitted code does."""

from powerkern.kernels.location import huber_location, huber_proposal2, huber_scale
from powerkern.kernels.minimize import brent, golden_section, newton_root
from powerkern.kernels.moments import chan_merge, log_mean, log_var, logsumexp, welford_update

__all__ = [
    "brent",
    "chan_merge",
    "golden_section",
    "huber_location",
    "huber_proposal2",
    "huber_scale",
    "log_mean",
    "log_var",
    "logsumexp",
    "newton_root",
    "welford_update",
]
