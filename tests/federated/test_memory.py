"""A client's memory in files: a mapping that outlives the process."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from powerkern.federated import Client, FileMemory, Policy, ProtocolError, Server, pairwise_secrets


def test_it_is_a_mapping_that_stays(tmp_path: Path) -> None:
    memory = FileMemory(tmp_path / "new" / "folder")
    assert len(memory) == 0
    memory["a"], memory["b.c-d_e"] = b"1", b""
    memory["a"] = b"22"
    again = FileMemory(tmp_path / "new" / "folder")
    assert dict(again) == {"a": b"22", "b.c-d_e": b""}
    del again["a"]
    assert "a" not in memory
    for act in (lambda: memory["a"], lambda: memory.__delitem__("a")):
        with pytest.raises(KeyError):
            act()


@pytest.mark.parametrize("key", ["", ".", "..", "../a", "a/b", ".unfinished-x", "a" * 65, "a\0"])
def test_keys_stay_within_the_folder(tmp_path: Path, key: str) -> None:
    with pytest.raises(KeyError):
        FileMemory(tmp_path)[key] = b"1"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_others_cannot_read_it(tmp_path: Path) -> None:
    FileMemory(tmp_path)["a"] = b"1"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_write_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = FileMemory(tmp_path)
    memory["a"] = b"old"

    def fail(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        memory["a"] = b"new"
    assert memory["a"] == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_limits_hold_over_processes(tmp_path: Path) -> None:
    """A client made anew for every message answers as one that lives on, and counts sessions."""
    names = ["a", "b", "c"]
    secrets, rows = pairwise_secrets(names), np.random.default_rng(0).lognormal(size=(3, 50, 1))
    once = Policy(sessions=1)

    def client(k: int) -> Client:
        memory = FileMemory(tmp_path / names[k])
        return Client(rows[k], name=names[k], secrets=secrets[names[k]], policy=once, memory=memory)

    def fit() -> None:
        server = Server(names, family="box-cox", secure=True)
        while not server.done:
            for k in range(3):
                server.receive(client(k).answer(server.request), sender=names[k])
            server.close_round()

    fit()
    with pytest.raises(ProtocolError, match="its policy allows 1 fits of its rows"):
        fit()
