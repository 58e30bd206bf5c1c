"""
Give each group its own lambda
==============================

Wines of three cultivars. The transform that suits one of them does not suit the others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import powerkern as pk
from powerkern.plot import qq_plot

data = load_wine(as_frame=True)
wine = data.frame[["target", "malic_acid"]]
fit = pk.fit(wine, "box-cox", groups="target")
print(fit.summary())

# %%
# Their lambdas do not overlap
# ----------------------------
# Wald intervals, and lambda of all wines.

together = pk.fit(wine["malic_acid"], "box-cox")
fig, ax = plt.subplots(figsize=(7, 2.5), layout="constrained")
table, y = fit.summary().to_dict(), np.arange(len(fit))
ax.hlines(y, table["low"], table["high"], color="0.6")
ax.plot(fit.lmbda[:, 0], y, "o")
ax.axvline(together.lmbda[0], color="C3", linewidth=0.8, label="all wines")
ax.set(yticks=y, yticklabels=data.target_names, xlabel="lambda of malic acid", ylim=(-0.5, 2.5))
ax.legend(loc="lower right")

# %%
# Normal quantile plots of one cultivar
# -------------------------------------
# Before (grey) and after: on the left with the lambda of all wines, on the right with the cultivar's own.

own = wine.loc[wine["target"] == 2, "malic_acid"].to_numpy()
fixed = pk.fit(own, "box-cox", lmbda=together.lmbda[0])
fig, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained", sharey=True)
for ax, each, title in zip(axes, (fixed, fit[2]), ("lambda of all wines", "lambda of class_2"), strict=True):
    qq_plot(own, each, ax=ax)
    ax.set_title(title)
plt.show()
