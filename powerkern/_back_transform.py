"""From predictions on the transformed scale to the scale of the data: medians, means and quantiles."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from powerkern._engine.apply import transform_matrix
from powerkern._power_fit import PowerFit
from powerkern._typing import FloatArray
from powerkern._validate import as_choice, is_real
from powerkern.kernels import columnwise
from powerkern.kernels.family import FAMILIES, is_mirrored

Kind = Literal["median", "mean", "quantile"]

#: Nodes of the quadrature for means.
_NODES = 32


def back_transformed(
    power: PowerFit, z: FloatArray, sd: float | FloatArray, kind: str, quantile: float, n_threads: int
) -> FloatArray:
    """Medians, means or quantiles of values whose standardised transforms are normal about `z`, (m, p), with `sd`."""
    as_choice("kind", kind, get_args(Kind))
    if kind == "quantile":
        z = z + sd * _normal_quantile(quantile)
    found = _means(power, z, sd, n_threads) if kind == "mean" else _inverse(power, z, n_threads)
    return np.where(np.isnan(found) & ~np.isnan(z), _end_of_domain(power), found)


def _means(power: PowerFit, z: FloatArray, sd: float | FloatArray, n_threads: int) -> FloatArray:
    """Means by Gauss and Hermite's rule, given that values are in the range of psi; NaN where no node is."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    total, mass = np.zeros_like(z), np.zeros_like(z)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        values = _inverse(power, z + sd * node, n_threads)
        inside = np.isfinite(values)
        total += np.where(inside, weight * values, 0.0)
        mass += np.where(inside, weight, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / mass)


def _inverse(power: PowerFit, z: FloatArray, n_threads: int) -> FloatArray:
    """The values whose standardised transforms are `z`; NaN beyond the range of psi."""
    out = np.empty_like(z)
    transform_matrix(z, out, power._families, columnwise.INVERSE_STANDARDIZED, power._results, n_threads)
    return out


def _end_of_domain(power: PowerFit) -> FloatArray:
    """What the end of the range of psi is the image of."""
    mirrored = np.array([is_mirrored(FAMILIES[name]) for name in power.families])
    return np.where(power.lmbda < 0.0, np.inf, np.where(mirrored, -np.inf, -power.shift))


def _normal_quantile(quantile: float) -> float:
    if not is_real(quantile) or not 0.0 < quantile < 1.0:
        raise ValueError(f"quantile must be between 0 and 1, got {quantile!r}")
    from scipy.special import ndtri  # costs a third of the time to import powerkern

    return float(ndtri(quantile))
