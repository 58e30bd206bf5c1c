"""Interim transforms until kernels/boxcox.py and yeojohnson.py land (to be deleted)."""

import math

from powerkern._jit import kernel, widest_vectors
from powerkern.kernels.elementary import exp, expm1, log, log1p


@kernel
def _b(m, a):
    return a if abs(m * a) < 1e-300 or m == 0.0 else expm1(m * a) / m


@kernel
def _ib(m, y):
    return y if m == 0.0 else log1p(m * y) / m


@kernel
def _d(x, ref, base):
    w = (x - ref) / (base + ref)
    if abs(w) <= 0.5:
        return log1p(w)
    return log1p(x) - log1p(ref) if base == 1.0 else log(x) - log(ref)


@kernel
def boxcox_loop(x, lmbda, out):
    for i in range(x.size):
        out[i] = _b(lmbda, log(x[i]))


@kernel
def inv_boxcox_loop(x, lmbda, out):
    for i in range(x.size):
        out[i] = exp(_ib(lmbda, x[i]))


@kernel
def boxcox_standardized(x, lmbda, ref, a, b, out):
    for i in range(x.size):
        out[i] = a * _b(lmbda, _d(x[i], ref, 0.0)) + b


@kernel
def boxcox_unstandardized(z, lmbda, ref, a, b, out):
    for i in range(z.size):
        out[i] = ref * exp(_ib(lmbda, (z[i] - b) / a))


@kernel
def yeojohnson_loop(x, lmbda, out):
    for i in range(x.size):
        out[i] = _b(lmbda, log1p(x[i])) if x[i] >= 0 else -_b(2.0 - lmbda, log1p(-x[i]))


@kernel
def inv_yeojohnson_loop(x, lmbda, out):
    for i in range(x.size):
        out[i] = expm1(_ib(lmbda, x[i])) if x[i] >= 0 else -expm1(_ib(2.0 - lmbda, -x[i]))


@kernel
def yeojohnson_standardized(x, lmbda, ref, a, b, s, out):
    for i in range(x.size):
        v = x[i]
        if ref == 0.0:
            m = lmbda if v >= 0 else 2.0 - lmbda
            t = m * log1p(abs(v))
            y = (exp(t - s) - exp(-s) if t > 1 else exp(-s) * expm1(t)) / m if m != 0.0 else exp(-s) * log1p(abs(v))
            out[i] = a * math.copysign(y, v) + b
        elif (v >= 0) == (ref > 0):
            m = lmbda if v >= 0 else 2.0 - lmbda
            y = _b(m, _d(abs(v), abs(ref), 1.0))
            out[i] = a * (y if v >= 0 else -y) + b
        else:
            m = lmbda if ref >= 0 else 2.0 - lmbda
            mv = 2.0 - m
            f = exp(-m * log1p(abs(ref)))
            y = f * (_b(mv, log1p(abs(v))) + _b(m, log1p(abs(ref))))
            out[i] = a * (-y if ref > 0 else y) + b


@kernel
def yeojohnson_unstandardized(z, lmbda, ref, a, b, s, out):
    for i in range(z.size):
        v = (z[i] - b) / a
        if ref == 0.0:
            v = v * exp(s)
            out[i] = expm1(_ib(lmbda, v)) if v >= 0 else -expm1(_ib(2.0 - lmbda, -v))
        else:
            m = lmbda if ref >= 0 else 2.0 - lmbda
            v = v if ref > 0 else -v
            d = expm1(_ib(m, v))
            x = abs(ref) + (1.0 + abs(ref)) * d
            out[i] = x if ref > 0 else -x
