"""QQ plots and histograms of censored columns, compared with plotting positions in fractions and with Kaplan-Meier."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats

import powerkern as pk
from powerkern.plot import before_after_plot, histogram_plot, qq_plot
from powerkern.plot._censored_positions import censored_positions

RNG = np.random.default_rng(1987)
SAMPLE = RNG.lognormal(size=60)
LOD = np.array([0.4, 0.8])[np.arange(60) % 2]
IS_BELOW = LOD > SAMPLE
CENSORED = np.fmax(SAMPLE, LOD)


def positions_by_definition(values: list[float], is_below: list[bool]) -> list[Fraction]:
    """Return the plotting positions of the observed values, in order of appearance, as exact fractions.

    They follow from the conditional probabilities between limits. Where `is_below` is true, the entry of `values` is a
    limit, and the observation lies below it.
    """
    limits = sorted({value for value, below in zip(values, is_below, strict=True) if below})
    observed = [value for value, below in zip(values, is_below, strict=True) if not below]
    less = {np.inf: Fraction(1), -np.inf: Fraction(0)}  # probability of values below each limit
    for limit, following in zip(reversed(limits), [np.inf, *reversed(limits)], strict=False):
        pairs = zip(values, is_below, strict=True)
        known = [(v, below) for v, below in pairs if (v <= limit if below else v < following)]
        n_less = sum(below or v < limit for v, below in known)
        less[limit] = less[following] * Fraction(n_less, len(known))
    found = []
    for i, value in enumerate(observed):
        low = max([-np.inf, *(limit for limit in limits if limit <= value)])
        high = min([np.inf, *(limit for limit in limits if limit > value)])
        inside = sorted((v, k) for k, v in enumerate(observed) if low <= v < high)
        rank = inside.index((value, i)) + 1
        found.append(less[low] + Fraction(rank, len(inside) + 1) * (less[high] - less[low]))
    return found


def test_positions_agree_with_a_calculation_by_hand() -> None:
    """For the cells <1, <1, 2, <3, 4 and 5, the values 2, 4 and 5 have positions 5/9, 7/9 and 8/9."""
    values, below = np.array([1.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([True, True, False, True, False, False])
    assert censored_positions(values, below) == pytest.approx([5 / 9, 7 / 9, 8 / 9], abs=1e-15)


def test_positions_without_censored_values_are_those_of_weibull() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert censored_positions(values, np.zeros(3, bool)) == pytest.approx([0.75, 0.25, 0.5], abs=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_positions_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    values = rng.integers(0, 12, n).astype(float)  # with ties, also of values and limits
    below = rng.random(n) < 0.4
    expected = positions_by_definition(values.tolist(), below.tolist())
    np.testing.assert_allclose(censored_positions(values, below), np.array(expected, float), atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_limits_are_exceeded_with_the_probabilities_of_kaplan_and_meier(seed: int) -> None:
    """The smallest position above each limit is compared with the Kaplan-Meier probability of values below the limit.

    Positions divide the probability between two adjacent limits into n + 1 equal steps, where n is the number of
    observed values between the limits.
    """
    rng = np.random.default_rng(seed)
    x, limit = rng.random(200), rng.choice([0.2, 0.3, 0.5], 200)
    below = x < limit
    values = np.where(below, limit, x)
    positions, observed = censored_positions(values, below), values[~below]
    mirrored = scipy.stats.CensoredData.right_censored(-values, below)
    # just above -limit; no value equals a limit
    less = scipy.stats.ecdf(mirrored).sf.evaluate(-np.array([0.2, 0.3, 0.5]))
    for at, probability in zip((0.2, 0.3, 0.5), less, strict=True):
        above = np.sort(positions[observed >= at])
        following = min([1.0, *(p for bound, p in zip((0.2, 0.3, 0.5), less, strict=True) if bound > at)])
        n = np.count_nonzero(observed[observed >= at] < min([9.0, *(b for b in (0.3, 0.5) if b > at)]))
        assert above[0] == pytest.approx(probability + (following - probability) / (n + 1), abs=1e-12)


def draw_after(*arguments: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Draw a QQ plot; return the normal scores and the transformed values of the points in its second panel."""
    x, y = qq_plot(*arguments, **options).lines[1].get_data()
    return np.asarray(x), np.asarray(y)


@pytest.mark.parametrize("standardize", [True, False])
def test_observed_values_are_drawn_at_their_censored_positions(standardize: bool) -> None:
    fit = pk.fit(CENSORED, "box-cox", below=IS_BELOW, standardize=standardize)
    scores, values = draw_after(CENSORED, fit, below=IS_BELOW)
    expected = scipy.stats.norm.ppf(np.sort(censored_positions(CENSORED, IS_BELOW)))
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    z = (scipy.stats.boxcox(CENSORED[~IS_BELOW], fit.lmbda[0]) - fit.loc[0]) / fit.scale[0]
    np.testing.assert_allclose(values, np.sort(z), rtol=1e-9)
    # before the transform: standardised by the mean and standard deviation of a censored normal distribution
    ax = qq_plot(CENSORED, fit, below=IS_BELOW)
    plain = pk.fit(CENSORED, "box-cox", below=IS_BELOW, lmbda=1.0)
    before = np.sort((CENSORED[~IS_BELOW] - 1.0 - plain.loc[0]) / plain.scale[0])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), before, rtol=1e-9)
    assert not ax.collections  # the band is for complete samples


def test_right_censored_columns_are_mirrored() -> None:
    """Under Yeo-Johnson, the QQ plot of -x is the QQ plot of x rotated by 180 degrees."""
    above = pk.fit(-CENSORED, above=IS_BELOW)
    below = pk.fit(CENSORED, below=IS_BELOW)
    scores, values = draw_after(-CENSORED, above, above=IS_BELOW)
    mirrored_scores, mirrored = draw_after(CENSORED, below, below=IS_BELOW)
    np.testing.assert_allclose(scores, -mirrored_scores[::-1], atol=1e-12)
    np.testing.assert_allclose(values, -mirrored[::-1], atol=1e-6)


def test_limits_of_the_fit_hold_for_the_plot() -> None:
    fit = pk.fit(SAMPLE, "box-cox", limits=(0.5, None))
    below = SAMPLE <= 0.5
    expected = censored_positions(np.where(below, 0.5, SAMPLE), below)
    for options in ({}, {"limits": (0.5, None)}, {"below": below}):
        scores, _ = draw_after(SAMPLE, fit, **options)
        np.testing.assert_allclose(scores, scipy.stats.norm.ppf(np.sort(expected)), atol=1e-12)


def test_other_columns_are_drawn_as_ever() -> None:
    X = np.column_stack([CENSORED, SAMPLE])
    mask = np.column_stack([IS_BELOW, np.zeros(60, bool)])
    fit = pk.fit(X, "box-cox", below=mask)
    plain = qq_plot(SAMPLE, pk.fit(SAMPLE, "box-cox"))
    ax = qq_plot(X, fit, column=1, below=mask)
    for line, expected in zip(ax.lines, plain.lines, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), expected.get_xydata())
    assert len(ax.collections) == 1
    panels = before_after_plot(X, fit, below=mask)
    np.testing.assert_array_equal(panels[0, 1].lines[1].get_xydata(), qq_plot(X, fit, below=mask).lines[1].get_xydata())


def test_histograms_leave_censored_values_out_and_count_them() -> None:
    fit = pk.fit(CENSORED, "box-cox", below=IS_BELOW)
    _, after = histogram_plot(CENSORED, fit, below=IS_BELOW).patches
    heights, edges, _ = after.get_data()
    n = IS_BELOW.sum()
    assert (heights * np.diff(edges)).sum() == pytest.approx(1.0 - n / 60)
    assert after.get_label() == f"after ({n} censored)"


def test_what_cannot_be_drawn_is_refused_by_name() -> None:
    X = np.column_stack([CENSORED, SAMPLE])
    fit = pk.fit(X, "box-cox", below=np.column_stack([IS_BELOW, IS_BELOW]), column_names=["a", "b"])
    with pytest.raises(ValueError, match=r"^column 0 \('a'\) has censored cells in the fit; pass below=, "):
        qq_plot(X, fit)
    both = pk.fit(SAMPLE, "box-cox", limits=(0.5, 2.0))
    with pytest.raises(ValueError, match=r"^column 0 has values below limits and values above limits"):
        qq_plot(SAMPLE, both)
    between = pk.fit(SAMPLE, "box-cox", between=(np.floor(SAMPLE * 2) / 2 + 0.01, np.ceil(SAMPLE * 2) / 2))
    with pytest.raises(ValueError, match="cells between two numbers have no plotting positions"):
        qq_plot(SAMPLE, between)
    nothing = np.ones(60, bool)
    with pytest.raises(ValueError, match="column 0 has no values; there is nothing to draw"):
        qq_plot(CENSORED, pk.fit(CENSORED, "box-cox", below=IS_BELOW), below=nothing)
