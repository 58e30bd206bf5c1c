"""Transforms of float32 values, compared with mpmath: errors are at most 0.52 ulp of float32."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from powerkern._estimators.routes import fit_in_memory
from powerkern.kernels.results import CENTER, DIVISOR, INTERCEPT, LMBDA, LOG_FACTOR, N_RESULTS, REF, SLOPE, STATUS
from powerkern.kernels.transforms import matrix, single
from powerkern.kernels.transforms.branch import BLOCK, Fit
from powerkern.kernels.transforms.family import BOX_COX, FORWARD, INVERSE, YEO_JOHNSON

FAMILIES = [BOX_COX, YEO_JOHNSON]
LMBDAS = [-30.0, -2.0, -0.5, -1e-3, 0.0, 1e-20, 0.3, 1.0, 1.7, 2.0, 2.0 - 2.0**-40, 3.5, 12.0, 80.0]
TINY, HUGE = 1.4e-45, 3.4028234e38


def psi(family, lmbda, x):
    """Return the transform of one number, exact to mpmath's precision."""
    x, lmbda = mpmath.mpf(float(x)), mpmath.mpf(float(lmbda))
    if family == BOX_COX:
        return mpmath.expm1(lmbda * mpmath.log(x)) / lmbda if lmbda else mpmath.log(x)
    m = 2 - lmbda if x < 0 else lmbda
    a = mpmath.log1p(abs(x))
    y = mpmath.expm1(m * a) / m if m else a
    return -y if x < 0 else y


def inverse(family, lmbda, y):
    lmbda = mpmath.mpf(float(lmbda))
    if family == BOX_COX:
        return mpmath.exp(mpmath.log1p(lmbda * y) / lmbda if lmbda else y)
    m = 2 - lmbda if y < 0 else lmbda
    x = mpmath.expm1(mpmath.log1p(m * abs(y)) / m if m else abs(y))
    return -x if y < 0 else x


def results_of(lmbda, ref=0.0, slope=1.0, intercept=0.0, log_factor=0.0):
    row = np.zeros((1, N_RESULTS))
    row[0, [LMBDA, REF, SLOPE, INTERCEPT, LOG_FACTOR]] = lmbda, ref, slope, intercept, log_factor
    row[0, [CENTER, DIVISOR, STATUS]] = 0.0, 1.0, 0.0
    return row


def applied(family, direction, x, results, standardized):
    """Return the transforms of the ordinary values in `x`, and the mask of these values.

    Parameters
    ----------
    family, direction : int
        Transform and direction.
    x : (n,) ndarray
        The values.
    results : (1, N_RESULTS) ndarray
        The fit.
    standardized : bool
        Whether the transform is standardised.
    """
    out, found = np.empty_like(x), np.zeros((matrix.N_BOUNDS, 1))
    where = np.array([0, x.size, 1, x.size, 0, x.size, 0, 0])
    fields = matrix.select_fields(results)
    fields = fields if standardized else matrix.raw_fields(fields, np.array([family]))
    matrix.APPLY_SINGLE[family, direction](x, where, fields, found, out, True, np.empty(BLOCK, np.float32))
    low, high = found[: matrix.EXTREME, 0]
    return out, (x >= low) & (x <= high)


def numbers(family):
    """Return float32 numbers of all magnitudes, including subnormals and neighbors of 1; both signs for Yeo-Johnson."""
    rng = np.random.default_rng(20240601)
    x = np.concatenate([2.0 ** rng.uniform(-149.0, 128.0, 60), np.exp(rng.normal(size=60))])
    x = np.append(x, [1.0, 1.0 + 2.0**-23, 1.0 - 2.0**-24, TINY, HUGE, 2.0, 0.5]).astype(np.float32)
    return x if family == BOX_COX else np.concatenate([x, -x, np.zeros(1, np.float32)])


def ulps(values, exact):
    """Return the largest error of `values` in ulp of float32.

    Where `exact` exceeds the range of float32, the value must be infinite or the largest number.
    """
    worst = 0.0
    for value, e in zip(values, exact, strict=True):
        if abs(e) > HUGE:
            assert np.isinf(value) or abs(value) > 0.999 * HUGE
            continue
        nearest = np.float32(float(e))
        unit = max(float(np.spacing(abs(nearest))), TINY) if np.isfinite(nearest) else 2.0**104
        worst = max(worst, float(abs(mpmath.mpf(float(value)) - e)) / unit)
    return worst


@pytest.mark.parametrize("lmbda", LMBDAS)
@pytest.mark.parametrize("family", FAMILIES)
def test_raw_values_are_rounded_to_half_an_ulp(family, lmbda):
    x = numbers(family)
    y, ordinary = applied(family, FORWARD, x, results_of(lmbda), False)
    assert ordinary.mean() > (0.25 if abs(lmbda) > 4.0 else 0.7)
    with mpmath.workdps(200):
        assert ulps(y[ordinary], [psi(family, lmbda, v) for v in x[ordinary]]) < 0.52


@pytest.mark.parametrize("lmbda", LMBDAS)
@pytest.mark.parametrize("family", FAMILIES)
def test_raw_inverses_are_rounded_to_half_an_ulp(family, lmbda):
    with mpmath.workdps(200):
        y = np.array([np.clip(float(psi(family, lmbda, v)), -HUGE, HUGE) for v in numbers(family)], dtype=np.float32)
        x, ordinary = applied(family, INVERSE, y, results_of(lmbda), False)
        assert ordinary.mean() > 0.15
        assert ulps(x[ordinary], [inverse(family, lmbda, mpmath.mpf(float(v))) for v in y[ordinary]]) < 0.53


def columns(family):
    """Return float32 columns, (9, 120): skewed, years, huge, tiny; for Yeo-Johnson also counts and negative values."""
    rng = np.random.default_rng(8)
    z = rng.normal(size=(9, 120))
    x = np.exp(z)
    x[1] = 1.0 / x[1] ** 2
    x[2] = np.round(1980.0 + 15.0 * z[2])
    x[3] = 1e20 * np.exp(2.0 * z[3])
    x[4] = 1e-20 * np.exp(0.3 * z[4])
    if family == YEO_JOHNSON:
        x[5] = np.floor(x[5] * 3.0)
        x[6] = -x[6]
        x[7] = 3.0 * z[7] + 4.0
        x[8] = z[8] ** 3
    return x.astype(np.float32)


@pytest.mark.parametrize("family", FAMILIES)
def test_standardized_values_and_their_inverses(family):
    """Compare with mpmath, taking the fit's float64 constants as exact: errors are near half an ulp of float32."""
    x = columns(family)
    fits = fit_in_memory(x.T, family, np.full(len(x), np.nan), None, 1)
    in_use = 0
    for values, fit in zip(x, fits, strict=True):
        row = fit[np.newaxis]
        a, b = mpmath.mpf(float(fit[SLOPE])), mpmath.mpf(float(fit[INTERCEPT]))
        with mpmath.workdps(200):
            at_ref = psi(family, fit[LMBDA], fit[REF]) if family == BOX_COX or fit[REF] else mpmath.mpf(0)
            m = 2 - mpmath.mpf(float(fit[LMBDA])) if fit[REF] < 0 else mpmath.mpf(float(fit[LMBDA]))
            offset = 1.0 if family == YEO_JOHNSON else 0.0
            unit = mpmath.exp(-fit[LOG_FACTOR])
            if fit[REF] != 0.0:
                unit = (offset + abs(mpmath.mpf(float(fit[REF])))) ** -m
            z = [a * unit * (psi(family, fit[LMBDA], v) - at_ref) + b for v in values]
            given, ordinary = applied(family, FORWARD, values, row, True)
            in_use += ordinary.mean() > 0.9
            rounding = 2.0**-49 * max(abs(b), max(abs(v) for v in z))
            for value, e in zip(given[ordinary], np.array(z)[ordinary], strict=True):
                spacing = float(np.spacing(abs(np.float32(float(e)))))
                assert abs(mpmath.mpf(float(value)) - e) <= 0.52 * spacing + rounding
            back, ordinary = applied(family, INVERSE, given, row, True)
            in_use += ordinary.mean() > 0.9
            for value, image in zip(back[ordinary], given[ordinary], strict=True):
                e = inverse(family, fit[LMBDA], (mpmath.mpf(float(image)) - b) / (a * unit) + at_ref)
                # the inverse if the intercept changes by 2**-49, relatively
                nudged = inverse(
                    family, fit[LMBDA], (mpmath.mpf(float(image)) - b * (1 + 2.0**-49)) / (a * unit) + at_ref
                )
                spacing = float(np.spacing(abs(np.float32(float(e)))))
                assert abs(mpmath.mpf(float(value)) - e) <= 0.53 * spacing + abs(nudged - e)
    assert in_use >= 1.5 * len(x)


@pytest.mark.parametrize("ref", [2.5, -2.5, 0.01, 0.0])
@pytest.mark.parametrize("lmbda", [-0.5, 0.3, 1.7, 2.4])
def test_values_whose_sign_does_not_occur_in_the_fitted_data(lmbda, ref):
    """Transform both signs by fits whose reference `ref` has one sign; with ref = 0, psi is divided by e^log_factor."""
    x = np.concatenate([-np.geomspace(0.01, 30.0, 40), np.geomspace(0.01, 30.0, 40)]).astype(np.float32)
    slope, intercept = 0.8, -0.3
    log_factor = 0.7 if ref == 0.0 else 0.0
    row = results_of(lmbda, ref=ref, slope=slope, intercept=intercept, log_factor=log_factor)
    with mpmath.workdps(60):
        m = 2 - mpmath.mpf(lmbda) if ref < 0 else mpmath.mpf(lmbda)
        unit = mpmath.exp(-mpmath.mpf(log_factor)) * (1 + abs(mpmath.mpf(ref))) ** -m
        at_ref = psi(YEO_JOHNSON, lmbda, ref)
        expected = [float(slope * unit * (psi(YEO_JOHNSON, lmbda, v) - at_ref) + intercept) for v in x]
        z, ordinary = applied(YEO_JOHNSON, FORWARD, x, row, True)
        assert ordinary[np.sign(x) != np.sign(ref)].mean() > 0.5
        np.testing.assert_allclose(z[ordinary], np.array(expected)[ordinary], rtol=1e-7, atol=1e-13)


@pytest.mark.parametrize(
    "lmbda, ref",
    [(130.0, 200.0), (150.0, 1000.0), (-20.0, 1000.0), (-60.0, 1000.0), (60.0, -1000.0), (-150.0, -1000.0)],
)
def test_values_are_ordinary_only_where_powers_relative_to_the_reference_are_in_range(lmbda, ref):
    x = np.concatenate([[0.0], np.geomspace(1e-44, 3e3, 60)]).astype(np.float32)
    x = np.concatenate([x, -x])
    z, ordinary = applied(YEO_JOHNSON, FORWARD, x, results_of(lmbda, ref=ref, slope=1.0), True)
    assert 0.0 < ordinary.mean() < 1.0
    with mpmath.workdps(800):
        m = 2 - mpmath.mpf(lmbda) if ref < 0 else mpmath.mpf(lmbda)
        at_ref, unit = psi(YEO_JOHNSON, lmbda, ref), (1 + abs(mpmath.mpf(ref))) ** -m
        expected = [unit * (psi(YEO_JOHNSON, lmbda, v) - at_ref) for v in x[ordinary]]
        assert ulps(z[ordinary], expected) < 0.52


@pytest.mark.parametrize("direction", [FORWARD, INVERSE])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_has_no_image_is_not_ordinary_and_nan_stays(family, direction):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -1.0], dtype=np.float32)
    for lmbda in LMBDAS:
        y, ordinary = applied(family, direction, x, results_of(lmbda), False)
        assert not ordinary[:3].any()
        assert np.isnan(y[2])
        if family == BOX_COX and direction == FORWARD:
            assert not ordinary.any()


def test_exponents_beyond_reach_have_no_ordinary_values():
    for lmbda in (1e6, -1e6, 1e300, np.inf, np.nan):
        for family in FAMILIES:
            for direction in (FORWARD, INVERSE):
                assert not applied(family, direction, np.ones(3, np.float32), results_of(lmbda), False)[1].any()


def test_short_elementary_functions_have_37_bits():
    x = np.concatenate([np.linspace(-0.5, 0.5, 401), np.linspace(-600.0, 600.0, 601)])
    with mpmath.workdps(40):
        for t in x[x != 0.0]:
            assert abs(single.expm1_short(t) / mpmath.expm1(t) - 1) < 2.0**-36.9
            assert abs(single.exp_short(t) / mpmath.exp(t) - 1) < 2.0**-36.9
            u = float(np.exp(t))
            assert t == 0.0 or abs(single.log_about_one(u, u - 1.0) / mpmath.log(u) - 1) < 2.0**-36.9
        assert abs(single.log_about_one(1.0 + 1e-30, 1e-30) / mpmath.log1p(mpmath.mpf(1e-30)) - 1) < 2.0**-36.9
    assert single.expm1_short(0.0) == 0.0
    assert np.isnan(single.exp_short(np.nan))


# --- the bounds of ordinary values --------------------------------------------------------------------


#: The log of half of the smallest float32.
LOG_HALF_TINY = -150.0 * math.log(2.0)


def constants(prepare, fit):
    """Return the constants of the fit of one column, computed by `prepare` run as plain Python."""
    c, fields = np.zeros((12, 1)), np.array(fit)[:, np.newaxis]
    with np.errstate(all="ignore"):
        prepare(fields, c, 1)
    return c[:, 0]


def bounds_of(family, direction, fit):
    rows = single.BOXCOX_ROWS if family == BOX_COX else single.YEOJOHNSON_ROWS
    return constants(rows[direction == INVERSE][1], fit)[:2]


def check_soundness(family, direction, inside, outside):
    """Check that a fit with the changes `inside` has ordinary values, and with the changes `outside` has none."""
    fit = Fit(0.5, 1.0, 1.0, 0.0, 0.0)
    low, high = bounds_of(family, direction, fit._replace(**inside))
    assert low < high
    low, high = bounds_of(family, direction, fit._replace(**outside))
    assert low > high


def branch(m, a):
    return math.expm1(m * a) / m if m else a


def log_interval(m, above, below):
    """Return the interval of a in which -below <= m a <= above; it is unbounded if m is 0."""
    if m == 0.0:
        return -math.inf, math.inf
    return tuple(sorted((-below / m, above / m)))


def boxcox_origin(lmbda, ref, slope, intercept):
    """Describe a standardised Box-Cox transform as s b_lambda(ln(x/x0)); return ln x0 and s.

    `ref`, `slope` and `intercept` are the fitted constants, and b_m(a) = (e^(m a) - 1)/m.
    """
    product = 1.0 - lmbda * intercept / slope
    log_x0 = math.log(ref) + (math.log(product) / lmbda if lmbda else -intercept / slope)
    return log_x0, slope * product


BOXCOX_FITS = [
    Fit(lmbda, ref, slope, intercept, 0.0)
    for lmbda in (-40.0, -3.0, -0.2, 0.0, 0.5, 2.0, 40.0)
    for ref, slope, intercept in ((1.0, 1.0, 0.0), (1e20, 3.0, 0.04), (1e-20, 0.02, -1e-4))
]


@pytest.mark.parametrize("fit", BOXCOX_FITS)
def test_bounds_of_box_cox_keep_powers_in_range(fit):
    """Values within the bounds are float32 numbers with e^-600 <= (x/x0)^lambda <= e^128, where x0 has image 0."""
    log_x0, slope = boxcox_origin(*fit[:4])
    a_low, a_high = log_interval(fit.lmbda, 128.0, 600.0)
    low, high = bounds_of(BOX_COX, FORWARD, fit)
    assert math.log(low) == pytest.approx(max(log_x0 + a_low, LOG_HALF_TINY), abs=1e-6)
    assert math.log(high) == pytest.approx(min(log_x0 + a_high, math.log(HUGE)), abs=1e-6)
    a_low, a_high = log_interval(fit.lmbda, 600.0, 12.5)
    a_low, a_high = max(a_low, LOG_HALF_TINY - log_x0), min(a_high, math.log(HUGE) - log_x0)
    expected = [slope * branch(fit.lmbda, a) for a in (a_low, a_high)]
    np.testing.assert_allclose(bounds_of(BOX_COX, INVERSE, fit), expected, rtol=1e-6)


@pytest.mark.parametrize("direction", [FORWARD, INVERSE])
@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"lmbda": 65536.0}, {"lmbda": 65537.0}),
        ({"lmbda": -65536.0}, {"lmbda": -65537.0}),
        # 1 - lambda intercept/slope is between 2^-20 and 1e250
        ({"lmbda": 1.0, "intercept": 1.0 - 2.0**-19}, {"lmbda": 1.0, "intercept": 1.0 - 2.0**-21}),
        ({"lmbda": 10.0, "intercept": -0.9e249}, {"lmbda": 10.0, "intercept": -1.1e249}),
        # the slope is between 2.2e-308 and 1e290
        ({"slope": 0.9e290}, {"slope": 1.1e290}),
        ({"slope": 2.3e-308}, {"slope": 2.1e-308}),
        # x0 is between the smallest and the largest float32
        ({"ref": 3.4e38}, {"ref": 3.5e38}),
        ({"ref": 1.5e-45}, {"ref": 1.3e-45}),
        # ln(x0/ref) is at most 690
        ({"lmbda": 0.0, "ref": 1e-300, "intercept": -689.0}, {"lmbda": 0.0, "ref": 1e-300, "intercept": -691.0}),
    ],
)
def test_box_cox_fits_that_are_not_sound_have_no_ordinary_values(direction, inside, outside):
    check_soundness(BOX_COX, direction, inside, outside)


def yeojohnson_origin(lmbda, ref, slope, intercept, log_factor):
    """Describe a standardised Yeo-Johnson transform relative to x0, the point with image 0.

    Return whether x0 is negative, the exponent m of its sign, ln(1 + |x0|), and two slopes, `near` and `far`. With
    b_m(a) = (e^(m a) - 1)/m, the image of an x with the sign of x0 is ``near`` b_m(ln((1 + |x|)/(1 + |x0|))), times the
    sign. For other x it is the image of 0 plus ``far`` b_(2 - m)(ln(1 + |x|)), times their sign.
    """
    negative = ref < 0.0 or (ref == 0.0 and intercept > 0.0)
    m = 2.0 - lmbda if negative else lmbda
    log_ref = math.log1p(abs(ref))
    far = slope * math.exp(-(log_factor if ref == 0.0 else m * log_ref))
    image = (1.0 if negative else -1.0) * intercept / (far if ref == 0.0 else slope)
    d = math.log1p(m * image) / m if m else image
    near = (far if ref == 0.0 else slope) * (1.0 + m * image)
    return negative, m, log_ref + d, near, far


YEOJOHNSON_FITS = [
    Fit(lmbda, ref, slope, intercept, log_factor)
    for lmbda in (-20.0, -1.0, 0.0, 0.6, 2.0, 2.3, 30.0)
    for ref, slope, intercept, log_factor in (
        (0.0, 1.0, 0.0, 0.0),
        (0.0, 2.0, 0.03, 0.4),
        (0.0, 2.0, -0.03, -0.4),
        (1.5, 0.7, 0.02, 0.0),
        (-1.5, 0.7, -0.02, 0.0),
        (1e6, 0.7, 0.01, 0.0),
        (-1e6, 0.7, 0.01, 0.0),
    )
]


@pytest.mark.parametrize("fit", YEOJOHNSON_FITS)
def test_bounds_of_yeo_johnson_keep_powers_in_range(fit):
    """Values within the bounds have powers e^t between e^-600 and e^128.

    Here t = m ln((1 + |x|)/(1 + |x0|)) if x has the sign of x0, and t = (2 - m) ln(1 + |x|) if not. x0 is the value
    with image 0, and m the exponent for its sign: lambda, or 2 - lambda if x0 is negative (see `yeojohnson_origin`).
    """
    negative, m, log_base, _, far = yeojohnson_origin(*fit)
    a_low, a_high = log_interval(m, 128.0, 600.0)
    near = math.exp(log_base + max(a_low, -690.0)) - 1.0  # the bound next to 0 if the other sign is not ordinary
    end = min(math.exp(min(log_base + a_high, 709.0)) - 1.0, HUGE)
    start = max(near, 2.0**-150 if negative else 0.0)
    shift = fit.log_factor if fit.ref == 0.0 else m * math.log1p(abs(fit.ref))
    if near <= 0.0 and abs(shift) < 600.0 and 2.3e-308 < far < 1e290:
        start = -min(math.exp(min(log_interval(2.0 - m, 128.0, 600.0)[1], 709.0)) - 1.0, HUGE)
    expected = (-end, -start) if negative else (start, end)
    np.testing.assert_allclose(bounds_of(YEO_JOHNSON, FORWARD, fit), expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("fit", YEOJOHNSON_FITS)
def test_bounds_of_inverse_yeo_johnson_keep_digits(fit):
    """Compare the bounds of the inverse with formulas.

    Inverses are relative to x0, the value with image 0, rather than to 0 if (1 + |x0|)^m is outside e^-8 to e^40, where
    m is the exponent for the sign of x0.
    """
    negative, m, log_base, near, far = yeojohnson_origin(*fit)
    sign = -1.0 if negative else 1.0
    is_apart = not -8.0 < m * log_base < 40.0
    low, high = bounds_of(YEO_JOHNSON, INVERSE, fit)
    a_low, a_high = log_interval(m, 600.0, 12.5)  # of the ratio of 1 + |x| to 1 + |x0|, or to 1
    log_huge = math.log(HUGE)
    far_end = (
        near * branch(m, min(a_high, log_huge - log_base))
        if is_apart
        else (far * (branch(m, min(a_high, log_huge)) - branch(m, log_base)))
    )
    assert (low if negative else high) == pytest.approx(sign * far_end, rel=1e-6)
    # towards 0 the bound keeps digits; it is computed with a logarithm that is too large by up to ln 2
    nearest = -high if negative else low
    if is_apart:
        log_least = math.log1p(math.expm1(log_base) * 2.0**-10) - log_base
        ends = [near * branch(m, max(a_low, log_least + slack)) for slack in (0.0, math.log(2.0))]
    else:
        zero, other = -far * branch(m, log_base), 2.0 - m
        log_lost = math.log(max(abs(other) * branch(m, log_base) * 2.0**-22, 1e-300))
        ends = []
        for slack in (0.0, math.log(2.0)):
            below = min(12.5, -log_lost - slack)
            longest = min(log_interval(other, 600.0, below)[1], log_huge)
            ends.append(zero - (0.0 if other < 0.0 and below < 0.1 else far * branch(other, longest)))
    first, last = sorted(ends)
    assert first - 1e-6 * abs(first) - 1e-12 <= nearest <= last + 1e-6 * abs(last) + 1e-12


LARGE_REF = {"lmbda": 1.0, "ref": 1e9}


@pytest.mark.parametrize("direction", [FORWARD, INVERSE])
@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"lmbda": 65536.0}, {"lmbda": 65537.0}),
        ({"lmbda": -65534.0, "ref": -1.0}, {"lmbda": -65535.0, "ref": -1.0}),
        # 1 + m y is between 2^-20 and 1e250
        (LARGE_REF | {"intercept": 1.0 - 2.0**-19}, LARGE_REF | {"intercept": 1.0 - 2.0**-21}),
        ({"lmbda": 10.0, "intercept": -0.9e249}, {"lmbda": 10.0, "intercept": -1.1e249}),
        ({"slope": 0.9e290}, {"slope": 1.1e290}),
        ({"slope": 2.3e-308}, {"slope": 2.1e-308}),
        # |x0| has the sign of the reference, and is below the largest float32
        ({"lmbda": 1.0, "intercept": 0.49}, {"lmbda": 1.0, "intercept": 0.51}),
        ({"ref": 3.4e38}, {"ref": 3.5e38}),
        # ln((1 + |x0|)/(1 + |ref|)) and the divisor of slopes
        ({"lmbda": 0.0, "ref": 1e300, "intercept": 689.0}, {"lmbda": 0.0, "ref": 1e300, "intercept": 691.0}),
        ({"ref": 0.0, "log_factor": 689.0}, {"ref": 0.0, "log_factor": 691.0}),
        ({"ref": 0.0, "slope": 1e-20, "log_factor": -689.0}, {"ref": 0.0, "slope": 1e-20, "log_factor": -691.0}),
    ],
)
def test_yeo_johnson_fits_that_are_not_sound_have_no_ordinary_values(direction, inside, outside):
    check_soundness(YEO_JOHNSON, direction, inside, outside)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        ({"ref": 0.0, "log_factor": 599.0}, {"ref": 0.0, "log_factor": 601.0}),
        ({"ref": 0.0, "slope": 1e-20, "log_factor": -599.0}, {"ref": 0.0, "slope": 1e-20, "log_factor": -601.0}),
        ({"lmbda": -65534.0, "ref": 0.0}, {"lmbda": -65535.0, "ref": 0.0}),
        ({"lmbda": -100.0, "slope": 0.9e290 / 2.0**100}, {"lmbda": -100.0, "slope": 1.1e290 / 2.0**100}),
        ({"lmbda": 100.0, "slope": 2.3e-308 * 2.0**100}, {"lmbda": 100.0, "slope": 2.1e-308 * 2.0**100}),
    ],
)
def test_the_sign_that_the_reference_does_not_have_is_left_out_if_its_powers_are_out_of_range(inside, outside):
    fit = Fit(0.5, 1.0, 1.0, 0.0, 0.0)
    low, high = bounds_of(YEO_JOHNSON, FORWARD, fit._replace(**inside))
    assert low < 0.0 < high
    low, high = bounds_of(YEO_JOHNSON, FORWARD, fit._replace(**outside))
    assert low == 0.0 < high
