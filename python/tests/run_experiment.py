"""Where the program run_experiment is, for tests that need it."""

import os
import pathlib

_BUILT = pathlib.Path(__file__).parents[2] / "build" / "release" / "syncopate"
# The one that SYNCOPATE_RUN_EXPERIMENT names, or that ./run_experiment has built; None: there is none.
PROGRAM = os.environ.get("SYNCOPATE_RUN_EXPERIMENT") or (str(_BUILT) if _BUILT.exists() else None)
WHY = "no run_experiment here: ./run_experiment --help builds it, or SYNCOPATE_RUN_EXPERIMENT names it"
