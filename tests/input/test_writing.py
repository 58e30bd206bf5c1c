"""Files that the command line writes: after a failed write, the previous file is still there."""

from __future__ import annotations

import os
from contextlib import contextmanager

import numpy as np
import pytest

from powerkern._input.writing import replacing

resource = pytest.importorskip("resource")


@contextmanager
def disk_of(size: int):
    """Limit files to `size` bytes within a `with` block; longer writes fail, as on a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "wide.npy"
    np.save(path, np.random.default_rng(0).lognormal(size=(20, 60)))
    return path


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("fit {data} -o {out}", "fit.json"),
        ("transform {data} --fit {fit} -o {out}", "z.csv"),
        ("transform {data} --fit {fit} -o {out}", "z.npy"),
        ("inverse {data} --fit {fit} -o {out} --out-of-range clip", "x.csv.gz"),
        ("plot {data} -o {out}", "plot.png"),
        ("plot {data} -o {out} --kind forest", "plot.svg"),
    ],
)
def test_a_full_disk_preserves_the_old_file(run, tmp_path, wide, words, name):
    if words.startswith("plot"):
        pytest.importorskip("matplotlib")
        np.save(wide, np.load(wide)[:, :4])  # four panels make the picture large enough to exceed the limit
    fit, out = tmp_path / "fitted.json", tmp_path / name
    assert run("fit", wide, "-o", fit)[0] == 0
    command = words.format(data=wide, fit=fit, out=out).split()
    assert run(*command)[0] == 0  # fills the caches of compiled code and fonts
    before = out.read_bytes()
    with disk_of(3000):
        code, _, err = run(*command)
    assert code == 2
    assert err.startswith(f"powerkern {command[0]}: cannot write {out}: ")
    assert out.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {wide.name, fit.name, out.name}


def test_an_interrupt_preserves_the_old_file(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("before")

    def interrupted():
        with replacing(path) as part:
            part.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


def test_links_and_permissions_are_kept(tmp_path):
    path, link = tmp_path / "x.txt", tmp_path / "link.txt"
    path.write_text("before")
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as part:
        part.write_text("after")
    assert link.is_symlink()
    assert path.read_text() == "after"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_devices_are_written_to_themselves(tmp_path):
    link = tmp_path / "full.txt"
    link.symlink_to("/dev/full")
    with replacing(link) as part:
        assert part.samefile("/dev/full")
