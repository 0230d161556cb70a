"""How many threads this process may use, and how many a call is worth."""

from __future__ import annotations

import functools
import os
from pathlib import Path

__all__ = ["available_threads", "threads_for"]

_BYTES_PER_THREAD = 1 << 22
"""Below this a thread costs about as much to wake as it saves."""
_BYTES_PER_ROW = 512
"""What a row costs beside the bytes of its vocabulary, in bytes that could be read meanwhile."""


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


def threads_for(rows: int, row_bytes: int, most: int | None = None) -> int:
    """Return the threads worth waking for a call with so many rows of so many bytes.

    Args:
        rows: B.
        row_bytes: of a target row.
        most: the caller's limit; `available_threads` if there is none.
    """
    worthwhile = rows * (row_bytes + _BYTES_PER_ROW) // _BYTES_PER_THREAD
    if worthwhile < 2:
        return 1
    return min(available_threads() if most is None else most, worthwhile)


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
