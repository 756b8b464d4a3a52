"""Values of this rank that are not finite numbers: said before they are summed, since afterwards all ranks have them, and
nobody can tell whose they were."""

from __future__ import annotations

import math
import warnings
from typing import Optional

import torch

from syncopate import _core

_ON_NAN = ("go-on", "stop", "skip")


def not_finite(values: torch.Tensor) -> Optional[str]:
    """"nan", "inf" or "-inf": the first that is not finite; None if all are. A finite sum is of finite values."""
    if values.dtype is torch.float32 and values.is_cpu and values.layout is torch.strided and values.is_contiguous():
        if _core.all_finite(values.data_ptr(), values.numel()):
            return None
    values = values.detach()
    if not values.is_floating_point() or math.isfinite(float(values.sum())):
        return None
    bad = values[~torch.isfinite(values)]
    return str(float(bad[0])) if bad.numel() else None


class Health:
    """Of one rank. Looks at what it is given, and says so once, or ends what it was to be part of."""

    def __init__(self, rank: int, on_nan: str = "go-on") -> None:
        if on_nan not in _ON_NAN:
            raise ValueError(f"on_nan='{on_nan}': must be {', '.join(map(repr, _ON_NAN[:-1]))} or {_ON_NAN[-1]!r}")
        self.skips = on_nan == "skip"
        self._rank, self.stops, self._is_told = rank, on_nan == "stop", False

    def look_at(self, when: str, what: str, values: torch.Tensor) -> None:
        if self._is_told:
            return
        value = not_finite(values)
        if value is None:
            return
        line = f"{when}: on rank {self._rank} {what} is {value}"
        if self.stops:
            raise FloatingPointError(f"{line}; on_nan='stop' keeps it from other ranks")
        self._is_told = True
        warnings.warn(f"{line}, and goes to all ranks; this is said once", RuntimeWarning, stacklevel=2)


def check_skips(mode: str, compress: str) -> None:
    """Raises ValueError where on_nan="skip" cannot leave a step out on all ranks."""
    if mode != "allreduce":
        raise ValueError(
            f"on_nan='skip' with mode='{mode}': servers have made part of an update when a rank comes to its last gradient; "
            f"use on_nan='stop', or push='step' and leave step() out"
        )
    if compress not in ("none", "fp16", "bf16"):
        raise ValueError(
            f"on_nan='skip' with compress='{compress}', which keeps what it has not sent, NaN from then on; use "
            f"on_nan='stop', or fp16 or bf16"
        )
