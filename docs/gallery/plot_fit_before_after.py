"""
Three skewed columns, before and after
======================================

A power transform bends each column until it looks as normal as it can. Here is what it does to a lognormal, a gamma
and a left-skewed column.
"""

# %%
# Simulate and fit
# ----------------
# Yeo-Johnson, the default family, takes values of both signs.

import matplotlib.pyplot as plt
import numpy as np

import powerkern as pk
from powerkern.plot import qq_plot

rng = np.random.default_rng(0)
X = np.column_stack([rng.lognormal(size=1000), rng.gamma(2.0, size=1000), -rng.gamma(3.0, size=1000)])
fit = pk.fit(X, column_names=["lognormal", "gamma", "minus gamma"])
for name, lmbda, status in zip(fit.column_names, fit.lmbda, fit.status_text, strict=True):
    print(f"{name:12s} lambda {lmbda:6.3f}  {status}")

# %%
# Look at it
# ----------
# Histograms before (blue) and after (orange), and QQ plots: what is normal lies on the diagonal.

Z = fit.transform(X)
figure, axes = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
for name, x, z, (above, below) in zip(fit.column_names, X.T, Z.T, axes.T, strict=True):
    above.hist((x - x.mean()) / x.std(), bins=40, alpha=0.6)
    above.hist(z, bins=40, alpha=0.6)
    above.set_title(name)
    qq_plot(X, fit, column=name, ax=below)

# %%
# And back
# --------
# The inverse gives the data back, to the accuracy of the data.

print("largest relative difference:", np.max(np.abs(fit.inverse_transform(Z) / X - 1.0)))
