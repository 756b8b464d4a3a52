"""What others than our own collectives have had to do in this process, whichever groups it was for."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List

import torch


class Figures:
    def __init__(self, whose: str) -> None:
        self.whose = whose
        self.calls: Counter = Counter()  # by operation
        self.bytes = 0  # of the tensors that this rank has given, or has had filled
        self.waited = 0.0  # seconds

    def count(self, what: str, tensors: Any) -> None:
        self.calls[what] += 1
        self.bytes += sum(each.numel() * each.element_size() for each in dense(tensors))

    def as_dict(self) -> Dict[str, Any]:
        return {"calls": dict(self.calls), "bytes": self.bytes, "waited": self.waited}

    def text(self) -> str:
        calls = ", ".join(f"{count} {what}" for what, count in self.calls.most_common())
        waited = f", {self.waited:.3f} s waited" if self.waited else ""
        return f"{calls}; {self.bytes} bytes{waited}"


gloos = Figures("gloo")
nccls = Figures("nccl")  # whose waits are a GPU's, and not known
copied = Figures("host memory")  # operations of tensors on devices, which have gone by way of it


def facts() -> Dict[str, str]:
    """For run_experiment; nothing where there was nothing."""
    return {each.whose: each.text() for each in (gloos, nccls, copied) if each.calls}


def gloo_figures() -> Dict[str, Any]:
    """What of this rank's operations over the backend "syncopate" gloo has done: how many "calls" there were of each, the
    "bytes" of their tensors on this rank, and the seconds that this rank has "waited" for them."""
    return gloos.as_dict()


def dense(tensors: Any) -> List[torch.Tensor]:
    """Those of nested lists that are."""
    if tensors is None:
        return []
    if isinstance(tensors, torch.Tensor):
        return [tensors] if tensors.layout is torch.strided else []
    return [each for part in tensors for each in dense(part)]
