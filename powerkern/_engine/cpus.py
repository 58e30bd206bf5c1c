"""Count the CPUs that this process may use, from its affinity and from the quotas of its container.

A quota is CPU time per period. Linux keeps it in files of the process's control group (cgroup) and of each enclosing
group: ``cpu.max`` in version 2 of the interface [1]_, ``cpu.cfs_quota_us`` and ``cpu.cfs_period_us`` in version 1 [2]_.
The smallest of these quotas applies.

.. [1] https://docs.kernel.org/admin-guide/cgroup-v2.html
.. [2] https://docs.kernel.org/scheduler/sched-bwc.html
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path

_MEMBERSHIP = Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use at once, at least 1; a fractional quota is rounded up."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(bound, math.ceil(min(_quota_at_start(), 2.0**31))))


@functools.cache  # called by every fit
def _quota_at_start() -> float:
    return cpu_quota()


def cpu_quota(membership: Path = _MEMBERSHIP, groups: Path = _GROUPS) -> float:
    """Return the number of CPUs that the control groups (cgroups) of this process allow; inf if there is no quota.

    Parameters
    ----------
    membership : Path
        The file that lists the control groups of this process.
    groups : Path
        Mount point of the cgroup file system.
    """
    return min((_read_quota(folder) for folder in _control_groups(membership, groups)), default=math.inf)


def _control_groups(membership: Path, groups: Path) -> Iterator[Path]:
    """Yield the folders of the control groups (cgroups) of this process, and of the enclosing groups.

    Some folders may not exist: in a container the mounted folder is often the container's, while the listed path is
    that of the host.
    """
    try:
        lines = membership.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        group = groups / ("cpu" if controllers else "") / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(groups))


def _read_quota(folder: Path) -> float:
    """Return the quota of the control group (cgroup) with the given folder, in CPUs; inf if there is no quota.

    Version 2 of the interface has "quota period" or "max period" in one file; in version 1 a quota of -1 means that
    there is no quota. If both versions give a quota, the result is the smaller one.
    """
    version_2 = _words(folder / "cpu.max")[:2]
    version_1 = [*_words(folder / "cpu.cfs_quota_us")[:1], *_words(folder / "cpu.cfs_period_us")[:1]]
    return min(_ratio(*version_2), _ratio(*version_1))


def _ratio(quota: str = "max", period: str = "") -> float:
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) > 0 else math.inf


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except (OSError, UnicodeDecodeError):
        return []
