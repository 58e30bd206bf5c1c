"""
Make skewed columns normal, and see how well it worked
======================================================

A power transform bends each column until it looks as normal as it can. Here are three measurements of 178 Italian
wines, before and after.
"""

# %%
# Fit
# ---
# The measurements are positive, so we use Box-Cox. Its lambda does not depend on their units.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import powerkern as pk
from powerkern.plot import before_after_plot, forest_plot

wines = load_wine(as_frame=True).data
X = wines[["malic_acid", "color_intensity", "proline"]]
fit = pk.fit(X, family="box-cox")
print(fit.summary())

# %%
# Look at it
# ----------
# Histograms before and after, and QQ plots: normal values lie on the diagonal, within the band.

_, axes = plt.subplots(3, 2, figsize=(7, 8.5), layout="constrained")
before_after_plot(X, fit, ax=axes)
plt.show()

# %%
# No power straightens malic acid: it has two humps, and a transform that keeps the order of the values keeps both.
#
# Back to the units of the data
# -----------------------------
# The inverse transform turns quantiles of the transformed values into quantiles of the data.

quantiles = fit.inverse_transform(np.array([[-1.96] * 3, [0.0] * 3, [1.96] * 3]))
for name, (low, middle, high) in zip(X.columns, np.asarray(quantiles).T, strict=True):
    print(f"{name:16s} typical {middle:8.2f}, 95 % within {low:8.2f} and {high:8.2f}")

# %%
# Which powers?
# -------------
# Lambdas of all thirteen measurements with their intervals. Most intervals contain a round number, such as 0, the
# logarithm.

forest_plot(wines, pk.fit(wines, family="box-cox"))
plt.show()
