"""
What one value can do to lambda
===============================

The sensitivity curve of an estimator: add one value z to a sample, and see by how much lambda changes. Maximum
likelihood follows z wherever it goes. Reweighted maximum likelihood (RewML) does as maximum likelihood does for values
near the center, and does not move at all once z is an outlier.
"""

# %%
# Samples and curves
# ------------------
# The sample is as normal as 99 values can be: the quantiles 1/100, ..., 99/100, and for Box-Cox their exponentials. All
# contaminated samples are the columns of one matrix, so that a curve is one fit. With ``prestandardize="none"`` the
# sample is taken as it is; ``convention="cellwise"`` are the rules of R's cellWise, which the paper's figure was made
# with.

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtri

import powerkern as pk

quantiles = ndtri(np.arange(1, 100) / 100)
z = np.linspace(-10.0, 10.0, 401)
ESTIMATORS = {
    "maximum likelihood": {},
    "RewML": {"estimator": "rewml", "convention": "cellwise", "prestandardize": "none"},
    "trimmed likelihood, h = 0.95": {"estimator": "mtl", "prestandardize": "none"},
}


def curve(family, **options):
    sample = quantiles[:, None]
    contaminated = np.vstack([np.broadcast_to(sample, (99, z.size)), z])
    if family == "box-cox":
        sample, contaminated = np.exp(sample), np.exp(contaminated)
    return 100 * (pk.fit(contaminated, family, **options).lmbda - pk.fit(sample, family, **options).lmbda)


figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, family in zip(axes, ("yeo-johnson", "box-cox"), strict=True):
    curves = {name: curve(family, **options) for name, options in ESTIMATORS.items()}
    for name, values in curves.items():
        ax.plot(z, values, label=name)
    robust, likelihood = curves["RewML"], curves["maximum likelihood"]
    near, last = np.abs(z) <= 2.0, np.abs(z)[np.abs(robust) > 1e-9].max()
    difference = np.abs(robust - likelihood)[near].max()
    print(f"{family:12s} RewML less ML for |z| <= 2: at most {difference:.1e}; the last z that counts: {last:.2f}")
    ax.set(xlabel="z" if family == "yeo-johnson" else "ln z", ylabel="100 (lambda with z - lambda)", title=family)
    ax.set_ylim(-60, 60)
axes[0].legend()

# %%
# What this shows
# ---------------
# - One value of 10 among a hundred moves lambda by maximum likelihood by a half; ever further out, by ever more.
# - RewML has the curve of maximum likelihood up to about 2.6 scales, where the cut-off is, and is exactly 0 beyond: the
#   value is left out, and what is left is the sample.
# - The trimmed likelihood has to leave out five values, outliers or not. Under Box-Cox it may keep a value far out and
#   trim the other end of the sample, with a lambda to match: below, its curve follows maximum likelihood.
#
# With the default ``prestandardize="mad"`` a value far out still counts as one more above the median: lambda of
# Yeo-Johnson then moves by 0.0003. Lambda of Box-Cox does not depend on the scale of the data.
