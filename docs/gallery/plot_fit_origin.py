"""
Fit the origin of columns far from zero
=======================================

The same skewed values are placed once near zero and once a thousand away. Far from zero, a power transform is nearly
an exponential, and lambda says how far away zero is. With a fitted origin, lambda says how skewed the values are.
"""

# %%
# Three lambdas that should be one
# --------------------------------

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import powerkern as pk

warnings.simplefilter("ignore")  # lambda is large because of the distance from zero

x = np.random.default_rng(77).gamma(3.0, size=500)
X = np.column_stack([x, 10.0 + x, 1000.0 + x])
plain, fitted = pk.fit(X), pk.fit(X, origin="fit")
print(plain.lmbda.round(3), fitted.lmbda.round(3))

# %%
# The likelihood along the origin
# -------------------------------
# The likelihood at the best lambda, for each origin. It is highest inside the data, where Yeo-Johnson is S-shaped. It
# has another maximum below the data, where Yeo-Johnson is a power.

origins = np.linspace(x.min() - 2.0, x.max() + 1.0, 300)
unit = fitted.divisor[0]
profile = pk.fit((x[:, np.newaxis] - origins) / unit)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.0, 3.6), layout="constrained")
left.plot(origins, -(profile.nll + x.size * np.log(unit)), color="C0")
left.axvline(fitted.center[0], color="C3", linewidth=1.0)
left.plot(x, np.full(x.size, -profile.nll.max()), "|", color="0.7")
left.set(xlabel="origin", ylabel="log-likelihood")
scores = stats.norm.ppf((np.arange(1, 501) - 1 / 3) / (500 + 1 / 3))
for fit, color, label in ((plain, "0.6", "1000 away"), (fitted, "C3", "origin fitted")):
    right.plot(scores, np.sort(fit.transform(X)[:, 2]), ".", color=color, markersize=3, label=label)
right.axline((0.0, 0.0), slope=1.0, color="k", linewidth=0.6)
right.set(xlabel="normal scores", ylabel="transformed")
right.legend(frameon=False)
plt.show()
