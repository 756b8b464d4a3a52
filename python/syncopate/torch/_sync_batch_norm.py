"""Batch norm over the batches of all ranks."""

from __future__ import annotations

import torch

from syncopate._job import current
from syncopate.torch._operations import Sum, allreduce


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """As torch.nn.BatchNorm1d, 2d and 3d, with the moments of all ranks' batches, which may differ in size. Four sums travel
    in each forward and backward that trains. Every rank calls it as often."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"SyncBatchNorm of {input.dim()} dimensions: must be at least 2, samples and channels")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if current("SyncBatchNorm").size == 1 or not (self.training or self.running_mean is None):
            return super().forward(input)
        self._check_input_dim(input)
        others = [0, *range(2, input.dim())]
        shape = [1, -1, *[1] * (input.dim() - 2)]
        own = input.new_tensor([input.numel() // input.shape[1]])
        sums = allreduce(torch.cat([input.sum(others), own]), op=Sum, name="sums of batch norm")
        count = sums[-1].detach()
        mean = sums[:-1] / count
        centred = input - mean.view(shape)
        variance = allreduce(centred.square().sum(others), op=Sum, name="squares of batch norm") / count
        if self.track_running_stats:
            self._note(mean.detach(), variance.detach() * count / (count - 1))
        result = centred * torch.rsqrt(variance + self.eps).view(shape)
        return result * self.weight.view(shape) + self.bias.view(shape) if self.affine else result

    def _note(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        self.num_batches_tracked.add_(1)
        momentum = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, momentum)
        self.running_var.lerp_(variance, momentum)
