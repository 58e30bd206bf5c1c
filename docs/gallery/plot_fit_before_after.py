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

rng = np.random.default_rng(0)
X = np.column_stack([rng.lognormal(size=1000), rng.gamma(2.0, size=1000), -rng.gamma(3.0, size=1000)])
fit = pk.fit(X, column_names=["lognormal", "gamma", "minus gamma"])
Z = fit.transform(X)
for name, lmbda, status in zip(fit.column_names, fit.lmbda, fit.status_text, strict=True):
    print(f"{name:12s} lambda {lmbda:6.3f}  {status}")

# %%
# Look at it
# ----------

fig, axes = plt.subplots(2, 3, figsize=(9, 5), layout="constrained")
for j, name in enumerate(fit.column_names):
    axes[0, j].hist(X[:, j], bins=30)
    axes[0, j].set_title(name)
    axes[1, j].hist(Z[:, j], bins=30, color="C1")
axes[0, 0].set_ylabel("before")
axes[1, 0].set_ylabel("after")
