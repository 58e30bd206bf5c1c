"""
See why outliers spoil the scaling of outlier scores
====================================================

A rule that turns outlier scores into probabilities fits a distribution to the scores and calls the values beyond it
outlying. The first figure of Röchner et al. (2024) shows how outliers spoil the fit. They enlarge the standard
deviation, so the density is too wide for the inliers, and outliers look less unusual than they are.
:func:`powerkern.plot.score_plot` draws this figure for any scores and rules: the histogram with the fitted densities,
and below it the residual of each bin.
"""

# %%
# Outliers
# --------
# Distances to the tenth neighbor, for 475 points of a normal cloud and 25 points far from it.

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

from powerkern.outliers import fit_scaling
from powerkern.plot import score_plot

rng = np.random.default_rng(1)
X = np.vstack([rng.normal(size=(475, 5)), rng.uniform(-5.0, 5.0, size=(25, 5))])
distances = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()[0][:, -1]
score_plot(distances)

# %%
# The nMAD ignores the outliers, so the density fits the inliers and the outliers stand apart. Scores with a probability
# above 0.95:

for scale in ("sd", "nmad"):
    p = fit_scaling(distances, scale=scale).probability(distances)
    print(f"mean + {scale:4s}  outliers {(p[475:] > 0.95).sum():2d} of 25, inliers {(p[:475] > 0.95).sum():2d} of 475")

# %%
# Skewed scores
# -------------
# Scores that are skewed even without outliers are fitted by no normal density, robust or not. Local outlier factors
# are such scores; their inliers lie near 1, a center that is known and need not be estimated. A normal density after a
# power transform follows the inliers. A gamma density improves on the normal one for distances, but not for factors:
# they lie far from 0, where a gamma density is nearly normal.

factors = -LocalOutlierFactor(n_neighbors=10).fit(X).negative_outlier_factor_
rules = {
    "median + nMAD": {"center": "median"},
    "center 1, trimmed sd": {"center": 1.0, "scale": "trimmed-sd"},
    "robust gamma": {"center": "median", "method": "robust-gamma"},
    "robust Yeo-Johnson": {"method": "yeo-johnson", "center": "median"},
}
shown = factors[factors < 2.5]
fig, axes = plt.subplots(2, 1, figsize=(7, 9), layout="constrained")
score_plot(shown, rules, bins=40, ax=axes[0])
axes[0].set_title("local outlier factors")
score_plot(distances, {name: rule for name, rule in rules.items() if rule["center"] != 1.0}, bins=40, ax=axes[1])
axes[1].set_title("distances to the tenth neighbor")

# %%
# The Kolmogorov-Smirnov distance between the inliers and the distribution that each rule assumes, by
# ``scipy.stats.kstest``.

inliers = factors[:475]
assumed = {name: fit_scaling(factors, **rule) for name, rule in rules.items()}
assumed["lognormal, fitted"] = stats.lognorm(*stats.lognorm.fit(inliers))
for name, distribution in assumed.items():
    print(f"{name:22s} {stats.kstest(inliers, distribution.cdf).statistic:.3f}")
