"""Horovod's process sets, of which there is one here: all ranks."""

from __future__ import annotations

from typing import Any

from syncopate import _job


class ProcessSet:
    """Refused: see global_process_set."""

    process_set_id = 0

    def __init__(self, *ranks: Any) -> None:
        raise ValueError(
            f"ProcessSet{ranks}: operations here are of all ranks; torch.distributed.new_group() makes groups of some, over "
            f"init_process_group('syncopate')"
        )

    ranks = property(lambda self: list(range(_job.size())))

    def size(self) -> int:
        return _job.size()

    def rank(self) -> int:
        return _job.rank()

    def included(self) -> bool:
        return True


global_process_set = object.__new__(ProcessSet)


def check_process_set(process_set: Any) -> None:
    if process_set is not global_process_set:
        raise ValueError(f"process_set={process_set!r}: operations here are of all ranks, global_process_set")


def add_process_set(process_set: Any) -> ProcessSet:
    """Refused."""
    return ProcessSet(process_set)


def remove_process_set(process_set: Any) -> bool:
    """Refused, as there is none that could be."""
    check_process_set(process_set)
    raise ValueError("remove_process_set(global_process_set): that of all ranks stays")
