"""Numerical kernels: compiled when Python calls them, inlined when jitted code does."""

from powerkern.kernels.moments import chan_merge, log_mean, log_var, logsumexp, welford_update

__all__ = ["chan_merge", "log_mean", "log_var", "logsumexp", "welford_update"]
