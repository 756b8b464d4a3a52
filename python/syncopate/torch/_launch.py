"""What run_experiment asks of a script that it has started: `run_experiment -- python train.py`.

What the script cannot do is refused before it has made an update, for all runs of a comparison in the first that is
started, so that none of them trains in vain.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, List, Mapping, Optional

from syncopate import _refusal
from syncopate.torch import _watch

_USUAL_BUCKET_MB = 1.0  # what run_experiment says of allreduce where nobody has chosen


@dataclass(frozen=True)
class Launch:
    mode: str
    wire: Optional[str]
    shape: str
    timeout: float
    seed: int
    compress: Optional[str]
    bucket_mb: Optional[float]
    consistency: Optional[str]
    servers: Optional[int]
    step_file: Optional[str]
    trace: Optional[str]
    elastic: Optional[bool]

    @staticmethod
    def read(asked: Mapping[str, str] = os.environ) -> Optional[Launch]:
        """None: somebody else has started this process."""
        if "SYNCOPATE_MODE" not in asked:
            return None
        servers, bucket = asked.get("SYNCOPATE_SERVERS"), asked.get("SYNCOPATE_BUCKET_BYTES")
        return Launch(
            mode=asked["SYNCOPATE_MODE"],
            wire=asked.get("SYNCOPATE_WIRE"),
            shape=asked.get("SYNCOPATE_SHAPE", ""),
            timeout=float(asked.get("SYNCOPATE_TIMEOUT", 30)),
            seed=int(asked.get("SYNCOPATE_SEED", 1)),
            compress=None if asked.get("SYNCOPATE_COMPRESS", "none") == "none" else asked["SYNCOPATE_COMPRESS"],
            bucket_mb=int(bucket) / (1 << 20) if bucket else None,
            consistency=asked.get("SYNCOPATE_CONSISTENCY"),
            servers=int(servers) if servers else None,
            step_file=asked.get(_refusal.STEP_FILE),
            trace=asked.get("SYNCOPATE_TRACE"),
            elastic=True if asked.get("SYNCOPATE_ELASTIC") == "1" else None,
        )

    @staticmethod
    def read_all() -> List[Launch]:
        """Of this run, and of the others of its comparison."""
        launches = [Launch.read()]
        for row in os.environ.get("SYNCOPATE_COMPARED", "").split(";"):
            launches.append(Launch.read(dict(word.split("=", 1) for word in row.split())))
        return [launch for launch in launches if launch is not None]


def refusal(text: str) -> ValueError:
    """What to raise for what run_experiment asks and the script cannot do."""
    watch = _watch.current()
    if watch is None:
        return _refusal.refusal(text)
    watch.refused(text)
    return ValueError(text)


def settled(name: str, given: Any, asked: Any, usual: Any) -> Any:
    """What an option comes to: what the script gives, or run_experiment asks for, or is usual. Raises ValueError if the
    first two differ: a comparison would change what it does not name."""
    if given is None:
        return usual if asked is None else asked
    for launch in Launch.read_all():
        other = getattr(launch, name)
        if other is not None and given != other:
            raise refusal(
                f"{name}={given!r} in the script, and run_experiment asks for {other!r}: leave {name} out of the script, "
                f"where run_experiment varies it"
            )
    return given


def check_sums(what: str) -> None:
    """Raises ValueError unless `what`, by which DistributedDataParallel sums, can do what run_experiment asks for."""
    for launch in Launch.read_all():
        if launch.mode != "allreduce":
            raise refusal(f"run_experiment asks for mode='{launch.mode}', and {what} is allreduce: use DistributedOptimizer")
        if launch.compress:
            raise refusal(
                f"run_experiment asks for compress='{launch.compress}', which {what} cannot: use DistributedOptimizer"
            )
        if launch.bucket_mb not in (None, _USUAL_BUCKET_MB):
            raise refusal(
                f"run_experiment asks for buckets of {launch.bucket_mb:g} MiB, which DistributedDataParallel cuts itself: leave "
                f"--bucket-bytes out and give it bucket_cap_mb={launch.bucket_mb:g}, or use DistributedOptimizer"
            )
        if launch.elastic:
            raise refusal(f"run_experiment asks for elastic=True, and {what} cannot go on without a rank: use DistributedOptimizer")


def check_first_update() -> None:
    """An optimizer is about to make the first step of this process. Raises ValueError where nothing of it goes by us, or
    not as run_experiment asks."""
    watch = _watch.current()
    if watch is not None and watch.has_optimizer:
        return
    if watch is not None and watch.has_sums:
        check_sums("DistributedDataParallel")
        return
    raise refusal(
        "an optimizer makes a step, and nothing of it goes by Syncopate: before the first step, call "
        "syncopate.torch.init() and make a DistributedOptimizer, or use init_process_group('syncopate') or the hook under "
        "DistributedDataParallel (docs/pytorch.md)"
    )


def seed(usual: int = 1) -> int:
    """The seed of this run: that of `run_experiment --seed`, which differs from repeat to repeat; else `usual`."""
    launch = Launch.read()
    return usual if launch is None else launch.seed
