"""Status codes: stored in fits, compared in kernels, and shown as text."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import powerkern as pk
from powerkern import Status


def test_codes_never_change():
    """Status codes keep their numbers, because JSON files and arrays of earlier versions contain them."""
    assert {s.name: s.value for s in Status} == {
        "OK": 0,
        "AT_BOUND": 1,
        "FIXED": 2,
        "CONSTANT": 3,
        "EMPTY": 4,
        "UNREPRESENTABLE": 5,
        "NOT_CERTIFIED": 6,
        "MULTIMODAL": 7,
        "NO_SPREAD": 8,
        "UNRESOLVED": 9,
        "SCANNED": 10,
        "AT_END": 11,
        "EXACT": 12,
        "TOO_FEW": 13,
        "ROUNDED": 14,
        "TAIL_KEPT": 15,
        "NOT_SETTLED": 16,
        "TIED": 17,
        "BRACKETED": 18,
        "FEW_VALUES": 19,
        "UNIT_AT_END": 21,
        "ORIGIN_AT_END": 22,
        "LEFT_AS_IT_IS": 23,
        "FEW_OBSERVED": 24,
        "SHRUNK": 20,
        "OUTSIDE_DOMAIN": 25,
        "FEW_DISTINCT": 26,
    }


@pytest.mark.parametrize("status", Status)
def test_sentences_have_no_full_stop_and_say_what_is_unchanged(status):
    assert status.sentence.strip() == status.sentence != ""
    assert not status.sentence.endswith(".")
    assert ("identity transform" in status.sentence) is status.failed


def test_sentences_differ():
    assert len({status.sentence for status in Status}) == len(Status)


def test_failed_marks_statuses_without_a_fit():
    unfitted = {Status.CONSTANT, Status.EMPTY, Status.UNREPRESENTABLE, Status.NO_SPREAD, Status.TOO_FEW}
    unfitted |= {Status.FEW_OBSERVED, Status.OUTSIDE_DOMAIN, Status.FEW_DISTINCT}
    assert {s for s in Status if s.failed} == unfitted


def test_status_is_a_number():
    assert Status(3) is Status.CONSTANT
    assert Status.CONSTANT == 3
    assert pickle.loads(pickle.dumps(Status.EMPTY)) is Status.EMPTY
    assert pk.Status is Status


@pytest.mark.parametrize("estimator", ["robust", "rewml-nr", "carroll", "mtl"])
def test_robust_fits_of_three_values_warn(estimator):
    x = [0.5, 2.0, 9.0]
    for some, weight in ((x, None), (x[:2], None), (x[:2], [1.5, 1.5])):
        with pytest.warns(UserWarning, match="at most three values, too few to tell which one is an outlier"):
            fit = pk.fit(some, "box-cox", estimator, sample_weight=weight)
        assert fit.status[0] == Status.FEW_VALUES
    assert pk.fit([*x, 4.0], "box-cox", estimator).status[0] != Status.FEW_VALUES


def test_a_bound_does_not_hide_that_a_tail_was_kept():
    """If both statuses apply, TAIL_KEPT is reported.

    The user requested the bound, whereas TAIL_KEPT says that the fit is doubtful.
    """
    z = np.random.default_rng(3).normal(size=400)
    z[:60] = -12.0
    asked = {"family": "box-cox", "estimator": pk.AdaptiveRewML(n_reweight=2, adaptive_cutoff=False, rectify="one")}
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        free = pk.fit(np.exp(z), **asked)
    with pytest.warns(UserWarning, match="no value was left out on one side"):
        bounded = pk.fit(np.exp(z), **asked, bounds=(None, 0.5 * free.lmbda[0]))
    assert bounded.status[0] == free.status[0] == Status.TAIL_KEPT
    assert bounded.lmbda[0] == 0.5 * free.lmbda[0]
