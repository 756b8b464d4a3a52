"""Training on plain arrays: gradients in, next weights out."""

from __future__ import annotations

import os
from typing import Any, Dict, Mapping, Optional

import numpy as np

from syncopate import _core
from syncopate._servers import Servers
from syncopate.numpy._arrays import floats_of
from syncopate._job import current
from syncopate._refusal import STEP_FILE, refusal

_MODES = ("allreduce", "ps")


class _Memory:
    """An array's memory, which stays as long as this, and may be written: NumPy before 2 takes none of DLPack's so."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


class Strategy:
    """Holds the weights, and makes an update of them from all ranks' gradients. Every rank makes it with the same names,
    shapes and options, and steps at the same rates: ranks that differ are told so.

    weights        float32 arrays by name; rank 0's values count
    optimizer      "sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "ftrl", "rmsprop", "adadelta", "adamax" or
                   "radam"
    mode           "allreduce": each rank makes the update with the mean of all ranks' gradients. "ps": parameter servers
                   make updates, as `consistency` says
    consistency    under ps: "sync", "async", "bounded:4", "softsync:2", "local-sgd:8" or "easgd:8"
    servers        under ps: how many; the lowest rank of each host starts its part of them, and they end with it
    compress       a codec for gradients on their way: "fp16", "int8", "topk:0.01" and others
    bucket_mb      gradients travel in buckets of about so many MB; None: 1, and under ps 0.25
    settings       of the optimizer, those that mean something to it: momentum, dampening, beta1, beta2, rho,
                   epsilon, weight_decay, lr_decay, initial_accumulator, l1, l2, beta

    Raises ValueError, in one line that says what would be right, for what cannot work.
    """

    def __init__(
        self,
        weights: Mapping[str, Any],
        *,
        optimizer: str = "sgd",
        mode: str = "allreduce",
        consistency: str = "sync",
        servers: int = 1,
        compress: Optional[str] = None,
        bucket_mb: Optional[float] = None,
        **settings: float,
    ) -> None:
        self._job = job = current("Strategy()")
        if STEP_FILE in os.environ:
            raise refusal(
                "run_experiment measures scripts of syncopate.torch alone, and this one trains by syncopate.numpy: start it by "
                "mpirun, by srun, or by itself"
            )
        if mode not in _MODES:
            raise ValueError(f"mode='{mode}': must be {' or '.join(map(repr, _MODES))}")
        if mode == "allreduce" and consistency != "sync":
            raise ValueError(f"consistency='{consistency}' is for mode='ps': allreduce is always synchronous")
        if mode == "ps" and servers < 1:
            raise ValueError(f"servers={servers}: must be at least 1 under mode='ps'")
        bucket_mb = (0.25 if mode == "ps" else 1.0) if bucket_mb is None else bucket_mb
        if not 0 < bucket_mb <= 1024:
            raise ValueError(f"bucket_mb={bucket_mb}: must be above 0 and at most 1024")
        initial = {name: floats_of(array, name) for name, array in weights.items()}
        empty = [name for name, array in initial.items() if array.size == 0]
        if empty or not initial:
            raise ValueError(f"{empty[0]} has no elements: leave it out" if empty else "there are no weights")
        options = {name: repr(float(value)) for name, value in settings.items()}
        options.update(optimizer=optimizer, compress=compress or "none", bucket_bytes=str(int(bucket_mb * (1 << 20))))
        if mode == "ps":
            options.update(servers=str(servers), consistency=consistency)
        agreed = _core.Group.check_options(options, job.size)
        self._servers: Optional[Servers] = None
        self._step = 0
        self._connect(initial, options, {**agreed, "mode": mode}, servers if mode == "ps" else 0)
        job.closers.append(self._close)

    def _connect(
        self, initial: Dict[str, np.ndarray], options: Dict[str, str], agreed: Dict[str, str], servers: int
    ) -> None:
        own_name = self._job.new_name("strategy")
        self._job.group.agree(own_name, agreed)
        tensors = [(name, list(array.shape) or [1]) for name, array in initial.items()]
        if servers:
            self._servers = Servers(self._job, own_name, servers, options)
        try:
            started = self._servers.started if self._servers else []
            self._exchange: Any = _core.StrategyExchange.connect(
                self._job.group, own_name, tensors, options, started
            )
            self._weights = {}
            for index, (name, array) in enumerate(initial.items()):
                memory = _Memory(np.from_dlpack(self._exchange.weights(index)))
                self._weights[name] = np.asarray(memory).reshape(array.shape)
                self._weights[name][...] = array
            self._exchange.join()
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise

    @property
    def weights(self) -> Dict[str, np.ndarray]:
        """The current ones. The arrays stay the same, and step() writes to them: copy what must not change."""
        return self._weights

    def step(self, gradients: Mapping[str, Any], learning_rate: float) -> Dict[str, np.ndarray]:
        """Waits for the update from all ranks' gradients, and returns the next weights.

        gradients  float32 by name, of the weights' shapes: NumPy's, or any that gives itself by DLPack on the CPU
        """
        if set(gradients) != set(self._weights):
            raise ValueError(f"gradients of {sorted(gradients)}: must be of {sorted(self._weights)}")
        values = {name: floats_of(gradients[name], f"the gradient of {name}") for name in self._weights}
        for name, value in values.items():
            if value.shape != self._weights[name].shape:
                raise ValueError(
                    f"the gradient of {name} has the shape {value.shape}: must be {self._weights[name].shape}, as the weight's"
                )
        self._exchange.begin_step(float(learning_rate))
        for index, value in enumerate(values.values()):
            self._exchange.gradient(index, value.ctypes.data, value.size)
        self._exchange.finish_step(self._step)
        self._step += 1
        return self._weights

    def close(self) -> None:
        """Waits for all ranks; every rank calls it. The weights are the final ones. shutdown() does so as well."""
        if self._close in self._job.closers:
            self._job.closers.remove(self._close)
            self._close()

    def _close(self) -> None:
        try:
            self._exchange.leave()
            self._job.operate("leaving", lambda: self._job.communicator.barrier())
        except BaseException:
            if self._servers:
                self._servers.kill()
            raise
        self._weights = {name: array.copy() for name, array in self._weights.items()}
        self._exchange = None
        if self._servers:
            self._servers.wait()
