"""Division of columns into groups: each column is in one group, and group sizes keep memory small and threads busy."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from powerkern._engine.blocks import GROUP_VALUES, LONG_COLUMN
from powerkern._engine.by_column import for_each_group


@given(n=st.integers(1, 10**8), p=st.integers(1, 3000), n_threads=st.integers(1, 64))
@example(n=1, p=3000, n_threads=2)
@example(n=10**8, p=3, n_threads=64)
def test_every_column_is_in_one_group(n, p, n_threads):
    seen = np.zeros(p, dtype=int)
    lock = threading.Lock()

    def job(group):
        with lock:
            seen[group] += 1
            assert group.stop <= p

    for_each_group(job, (n, p), n_threads)
    assert (seen == 1).all()


def test_groups_keep_memory_small_and_threads_busy():
    def widths(n, p, n_threads):
        found = []
        for_each_group(lambda group: found.append(group.stop - group.start), (n, p), n_threads)
        return found

    assert max(widths(10**7, 100, 1)) * 10**7 <= LONG_COLUMN * 2
    assert len(widths(100_000, 4, 4)) == 4
    assert set(widths(10_000, 64, 2)) == {8}
    assert max(widths(10_000, 1000, 2)) == 64
    assert max(widths(100_000, 1000, 2)) * 100_000 <= GROUP_VALUES
    assert len(widths(10, 1000, 2)) < 10
