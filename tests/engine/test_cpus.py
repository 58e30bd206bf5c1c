"""CPU quotas of containers, read from files in the format of Linux."""

from __future__ import annotations

import math
import os

import pytest

from powerkern._engine.cpus import cpu_quota
from powerkern._engine.threads import default_threads


@pytest.fixture
def quota(tmp_path):
    """Return a function that returns the CPU quota of a simulated container.

    Its arguments are the text of the list of control groups, and the content of each group's files, by path.
    """

    def read(membership, **files):
        (tmp_path / "cgroup").write_text(membership)
        for path, content in files.items():
            path = tmp_path / "fs" / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return cpu_quota(tmp_path / "cgroup", tmp_path / "fs")

    return read


@pytest.mark.parametrize(
    "content, cpus",
    [
        ("150000 100000\n", 1.5),
        ("max 100000\n", math.inf),
        ("50000 100000\n", 0.5),
        ("200000\n", math.inf),
        ("200000 0\n", math.inf),
        ("", math.inf),
    ],
)
def test_quota_in_version_2_files(quota, content, cpus):
    assert quota("0::/\n", **{"cpu.max": content}) == cpus


@pytest.mark.parametrize("time, cpus", [("250000\n", 2.5), ("-1\n", math.inf), ("none", math.inf)])
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_quota_in_version_1_files(quota, controllers, time, cpus):
    """The list of groups has the host's path, but the files that a container sees belong to its own group."""
    files = {"cpu/cpu.cfs_quota_us": time, "cpu/cpu.cfs_period_us": "100000\n"}
    assert quota(f"11:memory:/docker/1f\n4:{controllers}:/docker/1f\n0::/\n", **files) == cpus


def test_the_smallest_quota_of_a_group_and_its_parents_counts(quota):
    files = {"a/b/c/cpu.max": "max 100000", "a/b/cpu.max": "300000 100000", "a/cpu.max": "400000 100000"}
    assert quota("0::/a/b/c\n", **files) == 3.0
    assert quota("0::/a/b/c\n", **{"a/b/c/cpu.max": "100000 50000"}) == 2.0


def test_groups_of_others_do_not_count(quota):
    files = {"other/cpu.max": "100000 100000", "cpuset/cpu.cfs_quota_us": "1", "cpuset/cpu.cfs_period_us": "1"}
    assert quota("3:cpuset:/\n0::/mine\n", **files) == math.inf


@pytest.mark.parametrize("controllers", ["cpuset", "cpuacct", "memory", "name=systemd", "cpuset,memory"])
def test_the_group_of_other_controllers_is_ignored(quota, controllers):
    """Version 1 has a tree of groups per controller. The group /busy of another controller does not limit the CPU."""
    files = {"cpu/busy/cpu.cfs_quota_us": "100000", "cpu/busy/cpu.cfs_period_us": "100000"}
    files |= {"cpu/mine/cpu.cfs_quota_us": "300000", "cpu/mine/cpu.cfs_period_us": "100000"}
    assert quota(f"4:{controllers}:/busy\n3:cpu,cpuacct:/mine\n", **files) == 3.0
    assert quota(f"4:{controllers}:/busy\n", **files) == math.inf
    assert quota("4:cpu:/busy\n", **files) == 1.0


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert cpu_quota(tmp_path / "none", tmp_path) == math.inf


@pytest.mark.parametrize("quota, threads", [(math.inf, 6), (2.5, 3), (0.2, 1), (9.0, 6), (2.0, 2)])
def test_a_quota_limits_the_default_number_of_threads(quota, threads, monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    monkeypatch.setattr("powerkern._engine.cpus._quota_at_start", lambda: quota)
    assert default_threads() == threads
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert default_threads() == 1
