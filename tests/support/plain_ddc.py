"""Detecting deviating cells in plain numpy, cell by cell, as the paper describes it; imports nothing from powerkern."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

#: E min(Z**2, k**2) with k = 2.5 raw MAD of a standard normal variable
_K = 2.5 * stats.norm.ppf(0.75)
DELTA = (2 * stats.norm.cdf(_K) - 1) - 2 * _K * stats.norm.pdf(_K) + _K**2 * 2 * stats.norm.sf(_K)


def present(*columns):
    """Return the columns without the rows in which any of them is NaN."""
    known = ~np.any(np.isnan(columns), axis=0)
    return [column[known] for column in columns]


def location(x):
    (x,) = present(x)
    center = np.median(x)
    mad = np.median(np.abs(x - center))
    if mad == 0:
        return center
    t = (x - center) / mad
    w = np.where(np.abs(t) <= 3, (1 - (t / 3) ** 2) ** 2, 0.0)
    return np.sum(w * x) / np.sum(w)


def scale(x):
    (x,) = present(x)
    s = np.median(np.abs(x))
    return s * math.sqrt(np.mean(np.minimum((x / s) ** 2, 2.5**2)) / DELTA) if s > 0 else 0.0


def correlation(y, z, limit):
    y, z = present(y, z)
    rho = (scale(y + z) ** 2 - scale(y - z) ** 2) / 4
    rho = min(max(rho, -0.99), 0.99)
    inside = (y**2 - 2 * rho * y * z + z**2) / (1 - rho**2) <= limit
    return np.corrcoef(y[inside], z[inside])[0, 1]


def slope(y, z, cutoff):
    y, z = present(y, z)
    start = np.median(y[z != 0] / z[z != 0])
    r = y - start * z
    kept = np.abs(r) <= cutoff * scale(r)
    return np.sum(y[kept] * z[kept]) / np.sum(z[kept] ** 2)


def row_mean(values):
    values = values[~np.isnan(values)]
    return values.mean() if values.size else math.nan


def ddc(x, quantile=0.99, least=0.5, include_self=True):
    """Return residuals, flagged cells, imputed values, row outlyingness and flagged rows.

    Parameters
    ----------
    x : (n, p) ndarray
        The data.
    quantile : float
        Fraction of regular cells that are not flagged.
    least : float
        Smallest absolute correlation of columns that predict each other.
    include_self : bool
        Whether cells take part in their own predictions.
    """
    n, p = x.shape
    cutoff, limit = math.sqrt(stats.chi2.ppf(quantile, 1)), stats.chi2.ppf(quantile, 2)
    loc = np.array([location(x[:, j]) for j in range(p)])
    unit = np.array([scale(x[:, j] - loc[j]) for j in range(p)])
    z = (x - loc) / unit
    u = np.where(np.abs(z) <= cutoff, z, np.nan)
    related = [[] for _ in range(p)]
    for j in range(p):
        for h in range(p):
            r = correlation(u[:, j], u[:, h], limit) if h != j else 0.0
            if abs(r) >= least:
                related[j].append((h, abs(r), slope(u[:, j], u[:, h], cutoff)))
        if related[j] and include_self:
            related[j].append((j, 1.0, 1.0))
    predicted = np.zeros((n, p))
    for i in range(n):
        for j in range(p):
            terms = [(w, b * u[i, h]) for h, w, b in related[j] if not np.isnan(u[i, h])]
            if terms:
                predicted[i, j] = sum(w * v for w, v in terms) / sum(w for w, _ in terms)
    residuals = np.empty((n, p))
    for j in range(p):
        if related[j]:
            predicted[:, j] *= slope(z[:, j], predicted[:, j], cutoff)
        r = z[:, j] - predicted[:, j]
        residuals[:, j] = r / scale(r)
    flagged = np.abs(residuals) > cutoff
    imputed = np.where(flagged | np.isnan(x), loc + unit * predicted, x)
    outlying = np.array([row_mean(stats.chi2.cdf(row**2, 1)) for row in residuals])
    known = outlying[~np.isnan(outlying)]
    mad = np.median(np.abs(known - np.median(known))) / stats.norm.ppf(0.75)
    rows = (outlying - np.median(known)) / mad
    return residuals, flagged, imputed, rows, rows > cutoff
