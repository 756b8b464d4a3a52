"""How run_experiment is told that a script cannot do what it asks for: it ends all processes, with exit code 2."""

from __future__ import annotations

import os

from syncopate import _core, _ranks

STEP_FILE = "SYNCOPATE_STEP_FILE"


def refusal(text: str) -> ValueError:
    """What to raise, once run_experiment has been told, if it has started the script. Before the process tells of steps."""
    path = os.environ.get(STEP_FILE)
    rank = _ranks.link()
    if rank is not None:
        rank.refuse(text)
    elif path is not None:
        file = _core.StepFile.create(path, None)
        file.fact("refused", text)
        file.flush()
    return ValueError(text)
