"""Status codes: what fits store, kernels compare and people read."""

from __future__ import annotations

import pickle

import pytest

import powerkern as pk
from powerkern import Status


def test_codes_are_those_of_stored_fits():
    """JSON texts and arrays hold the numbers: they never change."""
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
    }


@pytest.mark.parametrize("status", Status)
def test_sentences(status):
    assert status.sentence.strip() == status.sentence != ""
    assert not status.sentence.endswith(".")
    assert ("identity transform" in status.sentence) is status.failed


def test_sentences_differ():
    assert len({status.sentence for status in Status}) == len(Status)


def test_failed():
    unfitted = {Status.CONSTANT, Status.EMPTY, Status.UNREPRESENTABLE, Status.NO_SPREAD, Status.TOO_FEW}
    assert {s for s in Status if s.failed} == unfitted


def test_status_is_a_number():
    assert Status(3) is Status.CONSTANT
    assert Status.CONSTANT == 3
    assert pickle.loads(pickle.dumps(Status.EMPTY)) is Status.EMPTY
    assert pk.Status is Status
