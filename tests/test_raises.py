"""The script that lists `raise` statements which no test executes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SOURCE = '''
def check(x):
    if x < 0:
        raise ValueError(
            "negative"
        )
    if x > 9:
        raise TypeError("large")


class Base:
    def fit(self):
        """Fit."""
        raise NotImplementedError
'''


def test_statements_of_which_no_line_was_executed_are_listed() -> None:
    spec = importlib.util.spec_from_file_location("raises", Path(__file__).with_name("raises.py"))
    assert spec is not None
    assert spec.loader is not None
    raises = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(raises)
    assert list(raises.unexecuted_raises(SOURCE, {2, 3, 5, 7})) == [(8, "raise TypeError('large')")]
    assert [line for line, _ in raises.unexecuted_raises(SOURCE, {2, 3, 7, 8})] == [4]
    assert not list(raises.unexecuted_raises(SOURCE, {4, 8}))
