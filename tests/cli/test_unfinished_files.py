"""A command that fails or is interrupted while writing leaves the previous file (or none) and no temporary file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from powerkern._input.tables import npy, parquet, text

OLD = b"what was there before"


@pytest.fixture
def folder(run, tmp_path):
    """A folder with a table, its fit, and a subfolder for output."""
    x = np.random.default_rng(0).lognormal(size=(60, 2))
    x[5, 0] = 1e6
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b", comments="")
    np.save(tmp_path / "x.npy", x)
    assert run("fit", tmp_path / "x.csv", "-o", tmp_path / "fit.json")[0] == 0
    (tmp_path / "out").mkdir()
    return tmp_path


#: By output file: the command, and the method that is made to fail halfway.
COMMANDS = {
    "fit.json": (["fit", "x.csv"], (Path, "write_text")),
    "grouped.json": (["fit", "x.csv", "--groups", "a", "--columns", "b"], (Path, "write_text")),
    "outliers.csv": (["outliers", "x.csv"], (Path, "write_text")),
    "z.csv": (["transform", "x.csv", "--fit", "fit.json"], (text.TextWriter, "write")),
    "z.csv.gz": (["transform", "x.csv", "--fit", "fit.json"], (text.TextWriter, "write")),
    "z.tsv": (["inverse", "x.csv", "--fit", "fit.json"], (text.TextWriter, "write")),
    "z.npy": (["transform", "x.csv", "--fit", "fit.json"], (npy.NpyWriter, "write")),
    "back.npy": (["inverse", "x.npy", "--fit", "fit.json"], (npy.NpyWriter, "finish")),
    "z.parquet": (["transform", "x.csv", "--fit", "fit.json"], (parquet.ParquetWriter, "finish")),
    "picture.png": (["plot", "x.csv"], ("matplotlib.figure.Figure", "savefig")),
}


@pytest.mark.parametrize("error, code", [(KeyboardInterrupt, 130), (OSError, 2), (MemoryError, 2)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_failure_half_way_keeps_the_previous_file(run, folder, monkeypatch, name, error, code):
    words, (owner, method) = COMMANDS[name]
    for module in {"z.parquet": ["pyarrow.parquet"], "picture.png": ["matplotlib"]}.get(name, []):
        pytest.importorskip(module)
    target = folder / "out" / name
    if isinstance(owner, str):
        from matplotlib.figure import Figure as owner
    original = getattr(owner, method)

    def fail(self, *args, **options):
        original(self, *args, **options)
        assert len(list(target.parent.iterdir())) == 1 + target.exists()  # an unfinished file next to the old one
        raise error("half-way")

    words = [folder / word if "." in word else word for word in words]
    for is_old in (False, True):
        if is_old:
            target.write_bytes(OLD)
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, fail)
            found, out, err = run(*words, "-o", target)
        assert (found, out) == (code, "")
        assert err.splitlines()[-1].startswith(f"powerkern {words[0]}: ")
        assert [path.name for path in target.parent.iterdir()] == [name] * is_old
        assert not is_old or target.read_bytes() == OLD


@pytest.mark.parametrize("name", ["z.csv", "z.npy"])
def test_an_invalid_cell_far_down_leaves_no_unfinished_file(run, folder, monkeypatch, name):
    monkeypatch.setattr(text, "_CELLS_AT_ONCE", 10)
    with (folder / "x.csv").open("a") as file:
        file.write("1,oops\n")
    target = folder / "out" / name
    target.write_bytes(OLD)
    code, out, err = run("transform", folder / "x.csv", "--fit", folder / "fit.json", "-o", target)
    assert (code, out) == (2, "")
    assert "line 62: 'oops' is not a number" in err
    assert target.read_bytes() == OLD
    assert len(list(target.parent.iterdir())) == 1


@pytest.fixture
def signalled_while_writing(monkeypatch):
    """Return a function that makes every write to a text table raise a given signal.

    The signal handlers are restored after the test.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    original = text.TextWriter.write

    def begin(number):
        def write(self, *args):
            original(self, *args)
            signal.raise_signal(number)

        monkeypatch.setattr(text.TextWriter, "write", write)

    yield begin
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of Unix")
@pytest.mark.parametrize("name, said", [("SIGINT", "interrupted"), ("SIGTERM", "terminated"), ("SIGHUP", "terminated")])
def test_signals_leave_no_unfinished_file(run, folder, signalled_while_writing, name, said):
    target, number = folder / "out" / "z.csv", getattr(signal, name)
    if name != "SIGINT":
        signal.signal(number, signal.SIG_DFL)  # nohup starts pytest with SIGHUP ignored
    before = signal.getsignal(number)
    signalled_while_writing(number)
    code, out, err = run("transform", folder / "x.csv", "--fit", folder / "fit.json", "-o", target)
    assert (code, out, err) == (128 + number, "", f"powerkern transform: {said}\n")
    assert list(target.parent.iterdir()) == []
    assert signal.getsignal(number) == before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of Unix")
def test_a_signal_that_is_ignored_does_not_stop_the_command(run, folder, signalled_while_writing):
    """Under nohup, which ignores SIGHUP, a command continues after the terminal has been closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signalled_while_writing(signal.SIGHUP)
    target = folder / "out" / "z.csv"
    code, _, err = run("transform", folder / "x.csv", "--fit", folder / "fit.json", "-o", target)
    assert (code, err) == (0, "")
    assert [path.name for path in target.parent.iterdir()] == ["z.csv"]
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_commands_run_in_any_thread(folder):
    """Commands work outside the main thread, where signal handlers cannot be set."""
    from powerkern.__main__ import main

    codes = []
    words = ["fit", str(folder / "x.csv"), "-o", str(folder / "out" / "fit.json")]
    thread = threading.Thread(target=lambda: codes.append(main(words)))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of Unix")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_killed_process_keeps_the_previous_file(folder, name):
    """The pipe to standard input stays open, so the output cannot be complete when the process is killed."""
    target = folder / "out" / "z.csv"
    target.write_bytes(OLD)
    process = subprocess.Popen(
        [sys.executable, "-m", "powerkern", "transform", "-", "--fit", folder / "fit.json", "-o", target],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ},
    )
    process.stdin.write(b"a,b\n" + b"1,2\n" * 100_000)
    process.stdin.flush()
    until = time.monotonic() + 60
    while len(list(target.parent.iterdir())) == 1 and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name), err
    assert target.read_bytes() == OLD
    assert len(list(target.parent.iterdir())) == 1
