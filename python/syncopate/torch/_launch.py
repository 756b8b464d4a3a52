"""What run_experiment asks of a script that it has started: `run_experiment -- python train.py`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional


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
    def read() -> Optional[Launch]:
        """None: somebody else has started this process."""
        asked = os.environ
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
            step_file=asked.get("SYNCOPATE_STEP_FILE"),
            trace=asked.get("SYNCOPATE_TRACE"),
            elastic=True if asked.get("SYNCOPATE_ELASTIC") == "1" else None,
        )


def settled(name: str, given: Any, asked: Any, usual: Any) -> Any:
    """What an option comes to: what the script gives, or run_experiment asks for, or is usual. Raises ValueError if the
    first two differ: a comparison would change what it does not name."""
    if given is None:
        return usual if asked is None else asked
    if asked is not None and given != asked:
        raise ValueError(
            f"{name}={given!r} in the script, and run_experiment asks for {asked!r}: leave {name} out of the script, "
            f"where run_experiment varies it"
        )
    return given


def seed(usual: int = 1) -> int:
    """The seed of this run: that of `run_experiment --seed`, which differs from repeat to repeat; else `usual`."""
    launch = Launch.read()
    return usual if launch is None else launch.seed
