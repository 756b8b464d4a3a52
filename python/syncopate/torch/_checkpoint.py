"""A checkpoint of a script: weights as safetensors, and all else beside them.

    PATH                        the weights, which name the file beside them in their metadata
    PATH.TOKEN.training         what torch.save has written: the optimizer's state and what else was given

Both are written whole, the weights last: their new name is what makes the checkpoint, and what it has replaced goes
afterwards. So a break at any moment leaves one that is whole.
"""

from __future__ import annotations

import glob
import os
import pathlib
import secrets
from typing import Any, Dict, List, Optional, Union

import torch

from syncopate import _job
from syncopate.errors import SyncopateError

_BESIDE = "syncopate.training"
Path = Union[str, "os.PathLike[str]"]


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError:
        raise SyncopateError("checkpoints need the package safetensors: pip install safetensors") from None
    return safetensors


def _flush(path: pathlib.Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def save_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer] = None, **others: Any
) -> None:
    """Writes `path`, such as "run/last.safetensors", in place of one that is there. safetensors.torch.load_file() reads
    it: it has the model's weights and buffers. Where there are ranks, rank 0 writes; others may call it too, and with
    update="sharded" all do.

    optimizer  as given to load_checkpoint(): a DistributedOptimizer under any mode that state_dict() knows, or torch's
    others     a scheduler, a sampler, or whatever has state_dict(); and what torch.load(weights_only=True) reads, such as
               numbers, texts, tensors, and lists and dicts of them
    """
    library = _safetensors()
    exchange = getattr(optimizer, "_exchange", None)
    is_of_all = getattr(exchange, "is_shared", False)
    # Before the weights, which it may bring up to date.
    state = optimizer.state_dict() if optimizer is not None and is_of_all else None
    if _job.is_initialized() and _job.rank() != 0:
        return
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    training = {name: each.state_dict() if hasattr(each, "state_dict") else each for name, each in others.items()}
    if optimizer is not None and not is_of_all:
        state = optimizer.state_dict()
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.training")
    writing = path.with_name(f"{path.name}.part")
    try:
        torch.save({"optimizer": state, "others": training}, beside)
        _flush(beside)
        library.torch.save_model(model, str(writing), metadata={_BESIDE: beside.name})
        _flush(writing)
        _flush(path.parent)
        os.replace(writing, path)
    except BaseException:
        for each in (beside, writing):
            each.unlink(missing_ok=True)
        raise
    _flush(path.parent)
    for each in path.parent.glob(f"{glob.escape(path.name)}.*.training"):
        if each != beside:
            each.unlink(missing_ok=True)


def load_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: Optional[torch.optim.Optimizer] = None, **others: Any
) -> Dict[str, Any]:
    """Loads what save_checkpoint() has written into the model, the optimizer, and `others`, which have load_state_dict(),
    by their names. Returns what else was saved, by name.

    Call it on every rank, which all read the file: before DistributedOptimizer() with torch's optimizer, or after it
    with the DistributedOptimizer. Raises SyncopateError, naming the file, for one that is not whole.
    """
    library = _safetensors()
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such checkpoint")
    training = _read_training(library, path)
    _check_names(path, training, optimizer, others)
    try:
        library.torch.load_model(model, str(path))
    except library.SafetensorError as error:
        raise SyncopateError(f"{path}: not whole, or no safetensors file: {error}") from None
    except RuntimeError as error:
        raise SyncopateError(f"{path}: of another model: {error}") from None
    if optimizer is not None:
        optimizer.load_state_dict(training["optimizer"])
    left = dict(training["others"])
    for name, each in others.items():
        each.load_state_dict(left.pop(name))
    return left


def _read_training(library: Any, path: pathlib.Path) -> Dict[str, Any]:
    try:
        with library.safe_open(str(path), framework="pt") as file:
            name = (file.metadata() or {}).get(_BESIDE, "")
    except library.SafetensorError as error:
        raise SyncopateError(f"{path}: not whole, or no safetensors file: {error}") from None
    beside = path.with_name(pathlib.PurePath(name).name or "none")
    if not name or not beside.is_file():
        raise SyncopateError(f"{path}: the file beside it, {beside.name}, is missing; copy both, or load the weights alone")
    try:
        training = torch.load(beside, weights_only=True)
        return {"optimizer": training["optimizer"], "others": dict(training["others"])}
    except Exception as error:  # zip, pickle and RuntimeError, each with a text of its own
        raise SyncopateError(f"{beside}: not whole: {str(error).splitlines()[0] if str(error) else error!r}") from None


def _check_names(path: pathlib.Path, training: Dict[str, Any], optimizer: Any, others: Dict[str, Any]) -> None:
    for name, each in others.items():
        if not hasattr(each, "load_state_dict"):
            raise ValueError(f"{name}={each!r} has no load_state_dict(): leave it out, what was saved is returned")
    missing: List[str] = [name for name in others if name not in training["others"]]
    if optimizer is not None and training["optimizer"] is None:
        missing.insert(0, "optimizer")
    if missing:
        raise SyncopateError(f"{path}: has no {', '.join(missing)}: it was saved without")
