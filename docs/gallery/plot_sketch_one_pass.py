"""
Fit in one pass without losing digits
=====================================

One way to fit data that are spread over chunks or sites is to send three sums for each lambda that the search visits:
the number of values, the sum of their transforms, and the sum of the squared transforms. The variance is a difference
of the latter two, and loses all its digits if it is small relative to the mean. Sketches (:doc:`/guide/chunks`) also
take one pass, serve all lambdas at once, and lose no digits.

The data follow a published example: 100 values from a normal distribution with mean 10,000 and standard
deviation 0.001, here at four sites.
"""

# %%
# The likelihood from sums of squares
# -----------------------------------
# Every site computes sums, and the server adds them. All formulas are correct, and all sums are in double precision.

from functools import reduce

import matplotlib.pyplot as plt
import numpy as np

import powerkern as pk
from powerkern.sketch import finish, merge, range_of, summarize_chunk

rng = np.random.default_rng(0)
sites = np.split(rng.normal(1e4, 1e-3, size=100), 4)


def nll_of_sums(lmbda: float) -> float:
    """Negative log-likelihood of Box-Cox from raw sums of one pass; NaN where the variance comes out negative."""
    n = total = squares = logs = 0.0
    for x in sites:
        psi = np.expm1(lmbda * np.log(x)) / lmbda if lmbda else np.log(x)
        n, total, squares, logs = n + x.size, total + psi.sum(), squares + (psi**2).sum(), logs + np.log(x).sum()
    return n / 2 * np.log(squares / n - (total / n) ** 2) - (lmbda - 1) * logs


near = np.linspace(-1.0, 4.0, 401)
with np.errstate(all="ignore"):
    naive = np.array([nll_of_sums(lmbda) for lmbda in near])
print(f"{np.isnan(naive).mean():.0%} of the likelihoods are not a number")

# %%
# The likelihood from sketches
# ----------------------------
# In two rounds every site sends its ranges, then a sketch of a few kilobytes. Their sum gives the likelihood of any
# lambda.

grid = reduce(merge, [range_of(x, "box-cox") for x in sites]).grid()
parts = [summarize_chunk(x, grid) for x in sites]
fit = finish(reduce(merge, parts))
ours = fit.profile(near)[0]
print(f"{len(parts[0].to_bytes())} bytes per site")

# %%
# Sketches give the likelihood of the pooled values, with the same minimum, far from where you would look:

pooled = pk.fit(np.concatenate(sites), "box-cox")
print(f"largest difference of the likelihoods: {np.abs(ours - pooled.profile(near)[0]).max():.1e}")
print(f"lambda from sketches {fit.lmbda[0]:.6f}, pooled {pooled.lmbda[0]:.6f}")

# %%
# Pictures
# --------
# On the left, the lambdas that a search would visit first: the likelihood is nearly flat there, and sums of squares
# turn it into noise, with gaps where the variance is negative. On the right, the minimum, and how little 100 values
# say about it. Powers of this size are beyond double precision; sketches never form them.

low, high = fit.confint()[0][0], fit.confint()[1][0]
far = np.linspace(2 * low - high, 2 * high - low, 401)
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
left.plot(near, naive, ".", markersize=3, label="sums of squares")
left.plot(near, ours, label="sketches")
left.set(xlabel="lambda", ylabel="negative log-likelihood", title="near lambda = 1", ylim=(ours[0] - 30, ours[0] + 30))
left.legend()
right.plot(far, fit.profile(far)[0], color="C1", label="sketches")
right.axvline(fit.lmbda[0], color="grey", linewidth=0.8)
right.axvspan(low, high, color="grey", alpha=0.2, label="95 % interval")
right.set(xlabel="lambda", title="near the minimum")
right.legend()
plt.show()
