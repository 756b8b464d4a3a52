"""Operations of all ranks on arrays. Every rank calls the same ones, in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np

from syncopate._job import current


def floats_of(array: Any, what: str) -> np.ndarray:
    """The same memory as a contiguous array of float32, or a copy if it lies otherwise. Raises ValueError for other
    types."""
    if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
        array = np.from_dlpack(array)
    array = np.asarray(array)
    if array.dtype != np.float32:
        raise ValueError(f"{what} is {array.dtype}: only float32 can be summed; use .astype('float32')")
    return array if array.flags.c_contiguous else array.copy(order="C")


def allreduce(array: Any, op: str = "mean") -> np.ndarray:
    """Returns the mean or the sum of all ranks' arrays: a new one, of the same shape, with the same bits on every rank.

    array  float32, of any shape, the same on all ranks: NumPy's, or any that gives itself by DLPack on the CPU
    op     "mean" or "sum"
    """
    job = current("allreduce()")
    if op not in ("mean", "sum"):
        raise ValueError(f"op='{op}': must be 'mean' or 'sum'")
    result = np.array(floats_of(array, "the array"), order="C")
    parts = [(result.ctypes.data, result.size)]
    scale = lambda: 1.0 / job.size if op == "mean" else 1.0
    job.operate("allreduce", lambda: job.communicator.sum(parts, scale(), result), result.ctypes.data, result.nbytes)
    return result


def broadcast(array: np.ndarray, root: int = 0) -> np.ndarray:
    """Gives all ranks the root's values, in place, and returns the array: of any type and shape, the same on all ranks."""
    job = current("broadcast()")
    if not 0 <= root < job.size:
        raise ValueError(f"root={root}: must be a rank, 0 to {job.size - 1}")
    if not isinstance(array, np.ndarray) or array.dtype.hasobject or not array.flags.writeable:
        raise ValueError("broadcast() writes in place: it takes a NumPy array of numbers that may be written")
    values = np.ascontiguousarray(array).reshape(-1)
    member, place = job.members()[root], (values.ctypes.data, values.nbytes)
    job.operate("broadcast", lambda: job.communicator.broadcast(*place, job.rank_of(member), values), *place)
    if not np.shares_memory(values, array):
        array[...] = values.reshape(array.shape)
    return array
