"""
Transform a response given its covariates, not by itself
========================================================

Box and Cox transformed the response of a linear model so that its *residuals* are normal. A
`TransformedTargetRegressor` with a `PowerTransformer` makes the response itself look normal instead: it transforms away
the skewness that comes from the covariates, and the linear model with it.
"""

# %%
# The square of a linear model
# ----------------------------
# The square root of the response is linear in three covariates, one of them lognormal. So the right lambda is 1/2.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression

from powerkern.plot import profile_plot, residual_plot
from powerkern.regression import fit_regression
from powerkern.sklearn import PowerTransformedRegressor, PowerTransformer


def simulated(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 3))
    X[:, 0] = rng.lognormal(size=n)
    return X, (5.0 + X @ [1.0, 0.5, 0.2] + 0.4 * rng.normal(size=n)) ** 2


X, y = simulated(1000, seed=0)
X_new, y_new = simulated(10_000, seed=1)

marginal = TransformedTargetRegressor(LinearRegression(), transformer=PowerTransformer("box-cox")).fit(X, y)
given_features = PowerTransformedRegressor(LinearRegression(), family="box-cox", kind="mean").fit(X, y)
print(f"lambda of the response alone:  {marginal.transformer_.lambdas_[0]:.2f}")
print(f"lambda given the features:     {given_features.lambda_:.2f}")

# %%
# Predictions of new rows against the truth. The first model predicts NaN for a prediction beyond the range of the
# transform. These rows are left out, in its favour.

fig, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained", sharex=True, sharey=True)
warnings.simplefilter("ignore")  # it counts those predictions
models = {"TransformedTargetRegressor": marginal, "PowerTransformedRegressor": given_features}
for ax, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.predict(X_new)
    known = np.isfinite(predicted)
    error = np.sqrt(np.mean((predicted - y_new)[known] ** 2))
    ax.loglog(y_new[known], predicted[known], ".", markersize=2, rasterized=True)
    ax.axline((50.0, 50.0), (100.0, 100.0), color="0.2", linewidth=0.8)
    ax.set(title=f"{name}\nroot mean square error {error:.3g}", xlabel="truth", ylim=(15.0, 1e5))
axes[0].set_ylabel("prediction")

# %%
# The likelihood of lambda given the covariates, and the residuals
# ----------------------------------------------------------------
# The profile likelihood, as R's ``MASS::boxcox`` draws it. On the right, the residuals of the linear model before and
# after.

fit = fit_regression(y, X)
fig, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
profile_plot(None, fit, ax=axes[0])
residual_plot(y, X, fit, ax=axes[1])
print(fit.summary())
plt.show()
