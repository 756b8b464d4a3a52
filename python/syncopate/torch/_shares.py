"""update="sharded": each rank makes the update of a part of the weights, and remembers what belongs to that alone (ZeRO's
second stage; Rajbhandari and others 2020). Gradients are summed to who owns a part, and new weights come from there."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch

from syncopate import _core, _ranks
from syncopate.torch._collectives import broadcast_bytes
from syncopate.torch._memories import Memories
from syncopate.torch._pushes import Pushes, figures_of


class Shares(Pushes):
    """Its weights lie in the core's memory, as those of servers do, and it is its own server."""

    of, instead = "update='sharded'", "update='own'"
    gone = "to the ranks that sum them"
    is_shared = True

    def texts(self) -> Dict[str, str]:
        return {"mode": "allreduce", "update": "sharded"}

    def connect(self, name: str, options: Dict[str, str], program: Optional[List[str]]) -> Any:
        if _ranks.link() is not None:
            raise ValueError(f"{self.of}: ranks of a simulated cluster have an update of their own each; use update='own'")
        return _core.StrategyExchange.connect(self._job.group, name, self._tensors, options, [])

    def restore(self, core: Any, memories: Memories, steps: int) -> None:
        """An operation of all ranks: each takes its part of what rank 0 remembers."""
        count = torch.tensor([steps])
        for values in (count, *memories.tensors()):
            broadcast_bytes(self._job, values, 0, "going on")
        if int(count):
            core.restore(int(count), memories.addresses())

    def is_same(self, index: int, gradient: Optional[torch.Tensor]) -> bool:
        return gradient is not None and gradient.is_contiguous() and self.is_as_handed(index, gradient)

    def handed_over(self, index: int, gradient: torch.Tensor) -> None:
        # The core's copy becomes a sum.
        self.handed[index] = figures_of(gradient)

    def end_servers(self) -> None:
        """There are none."""

    def kill_servers(self) -> None:
        """There are none."""
