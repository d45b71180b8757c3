"""The memory and CPUs that this process may use, as limited by control groups and affinity."""

from __future__ import annotations

import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def usable_memory() -> int:
    """Bytes of memory that this process may use: those of the machine, or of its control group if that has fewer."""
    try:
        machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):           # not available on this system
        machine = 2**32
    limits = [words[0] for file in ("memory.max", "memory/memory.limit_in_bytes") if (words := _words(file))]
    return min([machine, *(int(limit) for limit in limits if limit.isdecimal())])


def usable_cpus() -> int:
    """The number of CPUs that this process may use at a time: by its affinity, and the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, _quota()))


def _quota() -> int:
    """The CPU quota of the control group (version 2, then version 1) in CPUs, rounded up."""
    words = _words("cpu.max") or _words("cpu/cpu.cfs_quota_us") + _words("cpu/cpu.cfs_period_us")
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return 2**31                                        # "max" or -1: no quota
    return math.ceil(int(words[0]) / int(words[1]))


def _words(file: str) -> list[str]:
    """The words of a file of the control group, which in a container is the root of the mount."""
    try:
        return (_GROUPS / file).read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError):
        return []
