"""What can go wrong while ranks communicate. Arguments that cannot work are a ValueError."""

from __future__ import annotations

from typing import Optional


class SyncopateError(RuntimeError):
    """Something failed that is neither a peer's loss nor a wrong argument: no memory, a call in the wrong order."""


class PeerLost(SyncopateError):
    """Another process of the job has ended, or did not come to a common operation in time.

    rank       the rank that is lost or late; None if it is a server, or not known
    host       where it runs; None if it is not known
    operation  what this rank was doing, as in "exchanging gradients"
    step       of the optimizer, from 0; None outside of steps
    """

    def __init__(
        self,
        message: str,
        rank: Optional[int] = None,
        host: Optional[str] = None,
        operation: str = "",
        step: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.host = host
        self.operation = operation
        self.step = step

    def __reduce__(self):  # so that it can be sent to another process
        return type(self), (str(self), self.rank, self.host, self.operation, self.step)
