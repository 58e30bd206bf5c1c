"""What is said while kernels compile: on a terminal, once, when it takes long."""

from __future__ import annotations

import io
import time
from types import SimpleNamespace

import pytest

from powerkern._jit import notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def said(monkeypatch):
    """What is written to a terminal, by a process that has said nothing yet and is not patient."""
    terminal = Terminal()
    monkeypatch.setattr(notice, "sys", SimpleNamespace(stderr=terminal))  # pytest puts its own into sys
    monkeypatch.setattr(notice, "_said", [])
    monkeypatch.setattr(notice, "SILENCE", 0.0)
    return terminal


def long_work(compiles=True):
    with notice.of_long_compiling(compiles):
        end = time.monotonic() + 10.0
        while not notice._said and time.monotonic() < end and compiles:
            time.sleep(0.001)


def test_it_names_the_command_once(said):
    long_work()
    assert said.getvalue().count("\n") == 1
    assert "python -m powerkern compile" in said.getvalue()
    long_work()  # at once: the loop ends as soon as something has been said
    assert said.getvalue().count("\n") == 1


def test_nothing_is_said_of_what_is_loaded(said):
    long_work(compiles=False)
    assert said.getvalue() == ""


def test_nothing_is_said_where_it_does_not_take_long(said, monkeypatch):
    monkeypatch.setattr(notice, "SILENCE", 1000.0)
    with notice.of_long_compiling(True):
        pass
    assert said.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_nothing_is_said_to_a_log_or_to_nobody(stream, said, monkeypatch):
    monkeypatch.setattr(notice, "sys", SimpleNamespace(stderr=stream))
    with notice.of_long_compiling(True):
        time.sleep(0.05)
    assert stream is None or stream.getvalue() == ""
    assert notice._said == []
