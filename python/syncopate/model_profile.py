"""The profile of a model: its tensors, and how long each takes in a step of one worker.

`run_experiment --cluster=simulated --model=profile:FILE`, `predict` and `advise` read the file; prediction/README.md has
the format. This module knows no framework.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Tuple


@dataclass(frozen=True)
class TensorProfile:
    """One tensor that is trained."""

    name: str
    shape: Tuple[int, ...]  # 1 to 8 numbers from 1
    forward_flops: float  # of one sample, two for each multiplication and addition
    forward_seconds: float  # of a batch
    backward_seconds: float  # from the gradient that is ready before this one to this one

    @property
    def parameters(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


@dataclass(frozen=True)
class ModelProfile:
    """A model's tensors in the order in which forward uses them; their gradients become ready in reverse."""

    model: str
    source: str
    input: Tuple[int, ...]  # the shape of one sample
    other_forward_flops: float  # of one sample, of products that need no tensor in the list
    batch_size: int  # that the times are of
    tensors: Tuple[TensorProfile, ...]
    cpu_share: float = 1.0  # of the measured time in which this thread had a core; not in the file

    @property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def forward_flops(self) -> float:
        """Of one sample, with those that need no tensor."""
        return self.other_forward_flops + sum(tensor.forward_flops for tensor in self.tensors)

    @property
    def forward_seconds(self) -> float:
        return sum(tensor.forward_seconds for tensor in self.tensors)

    @property
    def backward_seconds(self) -> float:
        return sum(tensor.backward_seconds for tensor in self.tensors)

    @property
    def step_seconds(self) -> float:
        """Forward and backward."""
        return self.forward_seconds + self.backward_seconds

    def to_json(self) -> str:
        """The file's text, a tensor a line."""
        head = {
            "model": self.model,
            "source": self.source,
            "input": self.input,
            "other_forward_flops": self.other_forward_flops,
            "batch_size": self.batch_size,
        }
        lines = ",\n".join("  " + json.dumps(_fields(tensor)) for tensor in self.tensors)
        return f'{json.dumps(head)[:-1]},\n "tensors": [\n{lines}]}}\n'

    def write(self, file: Any) -> None:
        """Writes the file whole or not at all. Raises as check_free() does."""
        check_free(file)
        path = os.fspath(file)
        handle, draft = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".profile-", suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(self.to_json())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(draft, 0o666 & ~mask)  # a draft is readable for its owner alone
            os.link(draft, path)  # fails where another has written it meanwhile
        finally:
            os.unlink(draft)

    def text(self) -> str:
        """What a person wants to see of it: the step, and the tensors that take most of it."""
        step = self.step_seconds
        head = (
            f"{self.model}, batches of {self.batch_size}: {step * 1e3:.4g} ms a step, {self.forward_seconds * 1e3:.4g} ms "
            f"of it forward, by one thread of a CPU; {self.parameters:,} parameters"
        )
        if self.forward_flops > 0:  # backward does each product of the forward pass twice
            head += f"; {3 * self.forward_flops * self.batch_size / step / 1e9:.3g} GFLOPS"
        largest = sorted(self.tensors, key=lambda each: -each.forward_seconds - each.backward_seconds)[:12]
        width = max(len(tensor.name) for tensor in largest)
        lines = [head, "", f"{'tensor':{width}}  parameters  forward ms  backward ms  of the step"]
        for tensor in largest:
            forward, backward = tensor.forward_seconds, tensor.backward_seconds
            lines.append(
                f"{tensor.name:{width}}  {tensor.parameters:>10,}  {forward * 1e3:>10.3g}  {backward * 1e3:>11.3g}  "
                f"{100 * (forward + backward) / step:>9.1f} %"
            )
        if len(self.tensors) > len(largest):
            lines.append(f"and {len(self.tensors) - len(largest)} smaller ones")
        return "\n".join(lines)


def check_free(file: Any) -> None:
    """Raises FileExistsError if there is such a file, FileNotFoundError if there is no folder for it; in one line."""
    folder = os.path.dirname(file) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{os.fspath(file)}: there is no folder {folder}; make that first")
    if os.path.lexists(file):
        raise FileExistsError(f"{os.fspath(file)}: is there already; name another file, or remove that one first")


def _fields(tensor: TensorProfile) -> Dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "forward_flops": tensor.forward_flops,
        "forward_seconds": tensor.forward_seconds,
        "backward_seconds": tensor.backward_seconds,
    }
