"""The notice that long compilations show on a terminal, in a notebook and in the log."""

from __future__ import annotations

import io
import logging
import time
from types import SimpleNamespace

import pytest

from powerkern._jit import compile_notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def said(monkeypatch):
    """Return a stand-in for the terminal, on which the notice appears after 0.02 s of compiling."""
    terminal = Terminal()
    monkeypatch.setattr(
        compile_notice, "sys", SimpleNamespace(stderr=terminal, modules={})
    )  # pytest replaces sys.stderr
    monkeypatch.setattr(compile_notice, "_silent", 0.0)
    monkeypatch.setattr(compile_notice, "_explained", False)
    monkeypatch.setattr(compile_notice, "SILENCE", 0.02)
    return terminal


def long_work(caplog, kernel="fit_columns"):
    """Simulate a compilation of `kernel` that ends when the notice has appeared; return the new messages in the log."""
    caplog.set_level(logging.INFO, "powerkern")
    before, end = len(caplog.records), time.monotonic() + 10.0
    with compile_notice.announce_if_slow(kernel):
        while len(caplog.records) == before and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(0.02)
    return caplog.messages[before:]


def test_terminal_and_log_say_what_compiles_and_what_to_do(said, caplog):
    (line,) = long_work(caplog)
    assert said.getvalue() == line + "\n"
    for part in ("compiling fit_columns", "seconds", "wheel", "python -m powerkern compile"):
        assert part in line
    assert caplog.records[0].levelname == "INFO"


def test_every_long_wait_is_announced_and_the_first_explained(said, caplog):
    (first,), (second,) = long_work(caplog, "fit_columns"), long_work(caplog, "fit_in_lockstep")
    assert "seconds" in first
    assert second == "powerkern: compiling fit_in_lockstep"
    assert said.getvalue() == f"{first}\n{second}\n"


def test_short_waits_add_up(said, caplog, monkeypatch):
    monkeypatch.setattr(compile_notice, "SILENCE", 1000.0)
    with compile_notice.announce_if_slow("first"):
        time.sleep(0.03)
    assert said.getvalue() == ""
    monkeypatch.setattr(compile_notice, "SILENCE", 0.03)
    assert "second" in long_work(caplog, "second")[0]
    assert compile_notice._silent == 0.0


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_without_a_terminal_the_notice_is_only_in_the_log(stream, said, caplog, monkeypatch):
    monkeypatch.setattr(compile_notice, "sys", SimpleNamespace(stderr=stream, modules={}))
    assert len(long_work(caplog)) == 1
    assert stream is None or stream.getvalue() == ""


@pytest.mark.parametrize("shell, shows", [(SimpleNamespace(kernel=1), True), (SimpleNamespace(), False), (None, False)])
def test_a_notebook_displays_the_notice(shell, shows, said, caplog, monkeypatch):
    shown = []
    display = SimpleNamespace(display=lambda content, raw: shown.append(content["text/plain"]))
    modules = {"IPython": SimpleNamespace(get_ipython=lambda: shell), "IPython.display": display}
    monkeypatch.setattr(compile_notice, "sys", SimpleNamespace(stderr=said, modules=modules))
    for name, module in modules.items():
        monkeypatch.setitem(__import__("sys").modules, name, module)
    lines = long_work(caplog)
    assert shown == (lines if shows else [])
    assert (said.getvalue() == "") == shows


def test_a_failing_notice_does_not_stop_a_fit(said, caplog, monkeypatch):
    said.write = lambda text: 1 / 0
    assert len(long_work(caplog)) == 1
