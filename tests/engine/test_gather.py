"""Scratch that columns are gathered into."""

from __future__ import annotations

from powerkern._engine.gather import Scratch


def test_large_scratch_begins_with_a_page():
    """Of 2 MB, which it may then lie in as a whole."""
    scratch = Scratch()
    for n_columns in (1, 40, 64):
        block = scratch.block(n_columns, 10_000)
        assert block.shape == (n_columns, 10_000)
        assert n_columns < 40 or block.ctypes.data % 2**21 == 0
