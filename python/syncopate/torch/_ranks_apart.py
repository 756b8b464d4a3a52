"""What is said where ranks do not do the same: each tells the others, by the store, what it was doing.

Ranks whose numbers of batches differ are what people run into most: one has come to its end, and another still sums.
"""

from __future__ import annotations

import re
import time
from typing import Any, List, Optional

import torch

from syncopate import _core, _elastic
from syncopate.errors import PeerLost, SyncopateError

# In which ranks that have failed, as all of a group do together, have told it, or are known to be gone; in seconds. Those that
# wait no longer than the group's timeout fail within that.
_WITHIN, _LOOK_EVERY = 10.0, 0.02
SHUTDOWN = "destroy_process_group()"


class RanksApart:
    """Of one group of ours."""

    def __init__(self, store: Any, rank: int, size: int, group: _core.Group) -> None:
        self._store, self._rank, self._size, self._group = store, rank, size, group
        self._batches, self._backward = 0, -1
        self.error: Optional[Exception] = None  # the first, after which nothing is done

    def end(self, why: str) -> None:
        """What has not been done fails with this, and nobody else is asked."""
        if self.error is None:
            self.error = SyncopateError(why)

    def note_sum(self) -> None:
        """A sum begins. Each backward() that has any is a batch."""
        backward = torch._C._current_graph_task_id()
        if backward >= 0 and backward != self._backward:
            self._backward = backward
            self._batches += 1

    def explained(self, error: Exception, work: Any) -> Exception:
        """What is raised for an error of `work`, with what all ranks were doing."""
        if self.error is None:
            self.error = error
            if isinstance(error, SyncopateError) and not self._group.losses():
                told, lost = self._exchange(work), self._group.losses()
                if lost and not all(told):  # what a rank has closed while it ended was heard of before its end
                    error.args = (f"{lost[0][1]}: {work.what}",)
                else:
                    error.args = (self._text(str(error), told),)
        return self.error

    def _exchange(self, work: Any) -> List[str]:
        """By rank: batches, operation and elements; empty where a rank has not failed."""
        count = sum(each.numel() for each in _flat(work.tensors))
        try:
            self._store.set(f"failed/{self._rank}", f"{self._batches} {count} {work.what}")
            keys = [f"failed/{rank}" for rank in range(self._size)]
            end = time.monotonic() + min(_WITHIN, self._group.timeout)
            while not all(_elastic.has(self._store, key) for key in keys):
                if self._group.losses() or time.monotonic() > end:
                    break
                time.sleep(_LOOK_EVERY)
            return [self._store.get(key).decode(errors="replace") if _elastic.has(self._store, key) else "" for key in keys]
        except RuntimeError:  # a store that is not there any more
            return [""] * self._size

    def _text(self, error: str, told: List[str]) -> str:
        ranks, doings, batches, is_over = [], set(), set(), False
        for rank, each in enumerate(told):
            written = re.fullmatch(r"(\d{1,19}) (\d{1,19}) ([a-z_]+(?:\(\))?)", each)  # others may write to a store
            if written is None:
                continue
            had, count, what = written.groups()
            batches.add(had)
            is_over |= what == SHUTDOWN
            of = f" of {count} elements" if count != "0" else ""
            doing = f"{f'has had {had} batches and ' if had != '0' else ''}is in {what}{of}"
            doings.add(doing)
            ranks.append(f"rank {rank} {doing}")
        if len(ranks) < 2 or (len(ranks) == self._size and len(doings) == 1):
            if isinstance(self.error, PeerLost) and self.error.rank is not None:
                return error
            silent = [str(rank) for rank, each in enumerate(told) if not each]
            return f"{error}{f': no word from rank ' + ', '.join(silent) if silent else ''}; this group cannot be used any more"
        text = "ranks do not do the same: " + "; ".join(ranks)
        if is_over or len(batches) > 1:
            text += (
                ". Where ranks have different numbers of batches, put the loop under `with ddp.join():`, or let a "
                "DistributedSampler give each as many"
            )
        return text + ". This group cannot be used any more"


def _flat(tensors: Any) -> List[torch.Tensor]:
    if isinstance(tensors, torch.Tensor):
        return [tensors]
    return [each for part in tensors for each in _flat(part)]
