"""Horovod's Compression: what travels in a tensor's place."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch


class _None:
    """As it is."""

    codec: Optional[str] = None

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, kept: Any) -> torch.Tensor:
        return tensor


class _Fp16:
    """Floats as fp16."""

    codec = "fp16"

    @staticmethod
    def compress(tensor: torch.Tensor) -> Tuple[torch.Tensor, Any]:
        return (tensor.half() if tensor.is_floating_point() else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor: torch.Tensor, kept: Any) -> torch.Tensor:
        return tensor.to(kept)


class Compression:
    """For `compression=`, of allreduce() and DistributedOptimizer."""

    none = _None
    fp16 = _Fp16


def codec_of(compression: Any) -> Optional[str]:
    """What DistributedOptimizer's `compress` is for it."""
    if compression not in (Compression.none, Compression.fp16):
        raise ValueError(
            f"compression={compression!r}: must be Compression.none or Compression.fp16; compress='int8' and others are "
            f"codecs of Syncopate's"
        )
    return compression.codec
