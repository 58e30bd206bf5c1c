"""Cache files: complete or absent, and written by one process at a time."""

from __future__ import annotations

import os
import signal

import processes
import pytest

from powerkern._jit import files

#: A process that holds the draft of a file, has written half of it, says so, and waits.
HOLDER = (
    "import time; from pathlib import Path; from powerkern._jit import files\n"
    "with files.draft(Path({path!r})) as draft:\n"
    "    Path({path!r} + '.draft').write_text('half')\n"
    "    print('held', flush=True)\n"
    "    time.sleep(600)\n"
)


def publish(path, content):
    with files.draft(path) as draft:
        draft.publish(content)


def test_published_files_are_read(tmp_path):
    for content in (b"a long content", b"short"):
        publish(tmp_path / "folder" / "file", content)
        assert files.read(tmp_path / "folder" / "file") == content
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["file"]


def test_a_draft_that_is_not_published_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="while it was made"), files.draft(tmp_path / "file"):
        raise ValueError("while it was made")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="POSIX's")
@pytest.mark.parametrize("name", ["file", "file.draft"])
def test_links_are_not_followed(name, tmp_path):
    target = tmp_path / "target"
    target.write_bytes(b"untouched")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).symlink_to(target)
    with pytest.raises(OSError):
        files.read(tmp_path / "folder" / name)
    if name == "file.draft":
        with pytest.raises(OSError):
            publish(tmp_path / "folder" / "file", b"elsewhere")
    assert target.read_bytes() == b"untouched"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX's")
def test_a_file_that_others_may_write_to_is_not_read(tmp_path):
    publish(tmp_path / "file", b"content")
    (tmp_path / "file").chmod(0o666)
    with pytest.raises(PermissionError, match="others may write"):
        files.read(tmp_path / "file")


def test_one_process_writes_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    path = tmp_path / "file"
    with files.draft(path) as first:
        with pytest.raises(TimeoutError, match="another process"), files.draft(path):
            pass
        first.publish(b"the first's")
    assert files.read(path) == b"the first's"


def test_a_draft_that_was_renamed_is_not_taken_for_a_new_draft(tmp_path, monkeypatch):
    """Another process publishes its draft while this one waits for the draft's lock; this one needs a new draft."""
    path, lock = tmp_path / "file", files._lock

    def lock_late(descriptor):
        monkeypatch.setattr(files, "_lock", lock)
        (tmp_path / "file.draft").write_bytes(b"the first's")
        os.replace(tmp_path / "file.draft", path)
        return lock(descriptor)

    monkeypatch.setattr(files, "_lock", lock_late)
    with files.draft(path) as second, path.open("rb") as first:
        second.publish(b"the second's")
        assert first.read() == b"the first's"  # replaced, not written over under its reader
    assert files.read(path) == b"the second's"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX's")
def test_the_draft_of_a_killed_process_is_reused(tmp_path):
    path = tmp_path / "file"
    with processes.start(HOLDER.format(path=str(path))) as holder:
        assert holder.stdout.readline() == "held\n"
        holder.kill()
    assert [p.name for p in tmp_path.iterdir()] == ["file.draft"]
    publish(path, b"whole")
    assert files.read(path) == b"whole"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_file_system_without_locks_is_written_to(tmp_path, monkeypatch):
    if not hasattr(files, "fcntl"):
        pytest.skip("POSIX's")

    def unsupported(*arguments):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    publish(tmp_path / "file", b"content")
    assert files.read(tmp_path / "file") == b"content"


def test_a_full_disk_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError):
            publish(tmp_path / "file", bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []
