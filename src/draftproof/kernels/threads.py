"""How many threads this process may use."""

from __future__ import annotations

import functools
import os
from pathlib import Path

__all__ = ["available_threads"]


def available_threads() -> int:
    """Return the least of the process' CPU affinity, its cgroup's quota and OMP_NUM_THREADS."""
    limit = _affinity()
    quota = _cgroup_quota()
    if quota is not None:
        limit = min(limit, quota)
    omp = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if omp.isascii() and omp.isdecimal() and len(omp) < 10 and int(omp) > 0:
        limit = min(limit, int(omp))
    return max(1, limit)


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Whole CPUs of the container's quota, rounded up; None if there is none."""
    try:
        quota, period = (root / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            quota = (root / "cpu" / "cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu" / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None
    return max(1, -(-int(quota) // int(period)))
