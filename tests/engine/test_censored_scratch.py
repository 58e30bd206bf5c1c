"""Size of the scratch arrays for fits of censored columns: it grows with the number of censored cells."""

from __future__ import annotations

from powerkern._engine.censored import _CensoredScratch


def test_scratch_has_room_for_the_column_with_the_most_censored_cells() -> None:
    scratch = _CensoredScratch(100)
    few = scratch.work(2)
    assert few.cells.shape[1] > 2
    assert scratch.work(3) is few  # memory is kept
    assert scratch.work(60).cells.shape[1] > 60
    assert scratch.work(100).cells.shape[1] == 101
