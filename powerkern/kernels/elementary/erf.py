"""The error function, written so that LLVM vectorises loops over it, and outlier probabilities computed from it.

Two minimax polynomials (Remez exchange, mpmath) are both evaluated, and one result is selected: x + x P(x**2) for |x| <
1, and 1 - e**(-x**2) Q(|x| - 2) otherwise. Q approximates erfc(x) e**(x**2) for 1 <= x <= 6, with errors weighted by
e**(-x**2). From 5.93 on erf rounds to 1.
"""

from __future__ import annotations

from powerkern._jit import COLUMN, ROWS, entry, inlined, kernel
from powerkern._typing import FloatArray
from powerkern.kernels.elementary.exp import exp, polynomial

#: (erf(x)/x - 1) as a polynomial in x**2 <= 1, to 7e-18
_P = (
    0.12837916709551256,
    -0.3761263890318355,
    0.11283791670945253,
    -0.026866170643276233,
    0.005223977607423621,
    -0.0008548325989705853,
    0.00012055295320815185,
    -1.4924744670342449e-05,
    1.6447517773201075e-06,
    -1.6209176697240427e-07,
    1.3722979850269634e-08,
    -7.801195822297999e-10,
)

#: erfc(x) e**(x**2) as a polynomial in x - 2, 1 <= x <= 6, to 1e-17 e**(x**2)
_Q = (
    0.2553956763105053,
    -0.10679646185349621,
    0.041802752603568326,
    -0.015460637763884394,
    0.005440738537147664,
    -0.0018316642813872655,
    0.0005924699937007746,
    -0.00018477833608216516,
    5.572833369395392e-05,
    -1.6293806637128784e-05,
    4.6281213802660385e-06,
    -1.2793761957576944e-06,
    3.4492468339355664e-07,
    -9.089414741717753e-08,
    2.3303655136253644e-08,
    -5.772314728873742e-09,
    1.4433682679329297e-09,
    -3.8726734067531267e-10,
    9.570541426771778e-11,
    -1.5813696345088997e-11,
    1.1723842200727881e-12,
)
_Q_EVEN, _Q_ODD = _Q[::2], _Q[1::2]
#: End of the interval of _Q; erf rounds to 1 from 5.93 on.
_END = 6.0
#: 1/sqrt(2): Phi(z) = (1 + erf(z/sqrt(2)))/2.
SQRT_HALF = 0.7071067811865476


@inlined
def _scaled_erfc(x: float) -> float:
    """Return erfc(x) e**(x**2) for 1 <= x <= 6; even and odd powers are summed separately, for speed."""
    u = x - 2.0
    v = u * u
    return polynomial(_Q_ODD, v) * u + polynomial(_Q_EVEN, v)


@inlined
def erf(x: float) -> float:
    """Return the error function, 2/sqrt(pi) times the integral of e**(-t**2) from 0 to x, within 1 ulp."""
    a = abs(x)
    b = _END if a > _END else a
    tail = 1.0 - exp(-b * b) * _scaled_erfc(b)
    return x + x * polynomial(_P, a * a) if a < 1.0 else (-tail if x < 0.0 else tail)


@kernel
def gaussian_probability(scores: FloatArray, center: float, scale: float) -> None:
    """Replace outlier scores s by max(0, erf((s - center)/(scale sqrt 2))); NaN stays NaN.

    For scale = 0 the limit is used: 1 above the center and 0 elsewhere.
    """
    if scale > 0.0:
        for i in range(scores.size):
            p = erf((scores[i] - center) / scale * SQRT_HALF)
            scores[i] = 0.0 if p < 0.0 else p
    else:
        for i in range(scores.size):
            d = scores[i] - center
            scores[i] = (1.0 if d > 0.0 else (0.0 if d <= 0.0 else d)) + scale  # plus 0, or NaN


@entry((ROWS, COLUMN, COLUMN))
def gaussian_probabilities(block: FloatArray, center: FloatArray, scale: FloatArray) -> None:
    """Replace the scores of each detector (a row of `block`) by `gaussian_probability` for its center and scale."""
    for j in range(block.shape[0]):
        gaussian_probability(block[j], center[j], scale[j])
