"""Elastic jobs: who goes on where ranks are lost. Knows of the store only that it has set, get and compare_set, as torch's
have; it must outlive the ranks that may be lost."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import Any, Callable, List, Optional, Set

from syncopate.errors import PeerLost, SyncopateError

# Between two looks at who has come.
_LOOK_EVERY = 0.02
# What nobody sets a key to.
_ABSENT = "absent"


def has(store: Any, key: str) -> bool:
    """Whether the store has the key; does not wait for it. Torch 1.13 has no check(): a comparison with what nobody has set
    changes nothing there, and returns what is set."""
    if hasattr(store, "check"):
        return store.check([key])
    return store.compare_set(key, _ABSENT, _ABSENT).decode() != _ABSENT


class Over(Exception):
    """The job goes on without this rank, or not at all. It carries the error that says so."""

    def __init__(self, error: SyncopateError) -> None:
        super().__init__(str(error))
        self.error = error


class Membership:
    """The ranks of a job that are left, by what they were when it began, ascending. They agree on each next membership
    epoch through the store: every rank that is left says that it has come, and the lowest of these decides once all have
    come that are not known to be lost, or have had `timeout` seconds to. Others can write to the store: what has no proof
    of the last epoch's group was not said."""

    def __init__(self, store: Any, me: int, size: int, timeout: float) -> None:
        self.me = me
        self.members = list(range(size))
        self.epoch = 0
        self._store = store
        self._timeout = timeout
        self._is_forged = False  # the last decision

    def next_epoch(self, lost: Callable[[], Set[int]], error: PeerLost, group: Any) -> None:
        """Sets `epoch` and `members` anew. Raises Over: with `error` if there is nothing to agree through any more.
        `group` is the last epoch's."""
        members = self._agreed(f"elastic/{self.epoch + 1}", lost, group)
        if self._is_forged:
            raise Over(SyncopateError("who goes on was decided by no rank of this job: an intruder has written to its store"))
        if not members:
            raise Over(error)
        if self.me not in members:
            raise Over(PeerLost(f"the others go on without this rank, rank {self.me}, which came too late", self.me))
        self.epoch += 1
        self.members = members

    def _agreed(self, key: str, lost: Callable[[], Set[int]], group: Any) -> List[int]:
        """Nobody, if the store is gone with the rank that had it, or cannot be reached: then what asks it may wait for good."""
        members: List[int] = []

        def ask() -> None:
            with contextlib.suppress(RuntimeError):
                members.extend(self._agree(key, lost, group))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(3 * self._timeout)
        return members

    def _agree(self, key: str, lost: Callable[[], Set[int]], group: Any) -> List[int]:
        def said(place: str) -> Optional[str]:
            return group.proven(place, self._store.get(place).decode(errors="replace")) if has(self._store, place) else None

        self._store.set(f"{key}/{self.me}", group.prove(f"{key}/{self.me}", "here"))
        deadline = time.monotonic() + self._timeout
        while not has(self._store, f"{key}/members"):
            expected = [member for member in self.members if member not in lost()]
            here = [member for member in expected if member == self.me or said(f"{key}/{member}")]
            if here == expected or time.monotonic() >= deadline:
                if here[0] == self.me:
                    decision = group.prove(f"{key}/members", " ".join(map(str, here)))
                    self._store.compare_set(f"{key}/members", "", decision)
                    continue
                # One that is lower decides, and has its whole time again.
                if time.monotonic() >= deadline + self._timeout:
                    raise RuntimeError("nobody has decided who goes on")
            time.sleep(_LOOK_EVERY)
        decided = said(f"{key}/members")
        self._is_forged = decided is None
        return [int(member) for member in (decided or "").split()]


def tell(lost: List[str], size: int) -> None:
    """Says who is lost, to people."""
    goes = "1 rank goes" if size == 1 else f"{size} ranks go"
    print(f"syncopate: {', '.join(lost) or 'a rank has not come in time'}: {goes} on", file=sys.stderr, flush=True)
