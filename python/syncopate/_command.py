"""compare and simulate: run_experiment as a child of this process, and its results as frames."""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Optional, Sequence

from syncopate import results
from syncopate.errors import SyncopateError

_NAME = "SYNCOPATE_RUN_EXPERIMENT"
_SECONDS_TO_END = 30.0  # for a child that was interrupted, which stops its processes and writes its results


def compare(
    *, command: Optional[Sequence[str]] = None, output: Any = None, deadline: float = 86400.0, **options: Any
) -> results.Comparison:
    """`run_experiment compare`: modes side by side, on its own models or on a script of yours.

        table = syncopate.compare(modes=["allreduce", "ps:async"], workers=2, repeat=5).rows
        syncopate.compare(modes=["allreduce", "ps:sync"], workers=2, command=["python", "train.py"])

    command   a program of your own that each worker runs, as behind --
    output    the folder for the results; None: results/DATE-TIME-compare, below the working directory
    deadline  seconds after which it is ended, and fails
    options   any of `run_experiment --help`, with _ for -: a list stands for values with commas between them, True for
              an option without a value, None and False for none, and a dict for several of the same option:
              vary={"workers": [1, 4]} is --vary=workers=1,4

    Shows what the child prints. Raises SyncopateError, in one line that ends with the child's last, if it fails;
    FileNotFoundError if there is no run_experiment; ImportError, before it starts, without pandas.
    """
    found = _carry_out("compare", ["compare"], command, output, deadline, options)
    assert isinstance(found, results.Comparison)
    return found


def simulate(*, output: Any = None, deadline: float = 86400.0, **options: Any) -> results.Run:
    """`run_experiment --cluster=simulated`: one run in virtual time.

        run = syncopate.simulate(mode="ps", workers=16, model="profile:model.json", shape="10gbit+50us", steps=20)

    `cluster` names a file that calibrate wrote: cluster="simulated:cluster.toml". All else is as for compare().
    """
    options.setdefault("cluster", "simulated")
    found = _carry_out("simulated", [], None, output, deadline, options)
    assert isinstance(found, results.Run)
    return found


def find() -> str:
    """The program run_experiment: SYNCOPATE_RUN_EXPERIMENT's, that on PATH, or that of the clone which this package was
    installed from. Raises FileNotFoundError, in one line, if there is none."""
    named = os.environ.get(_NAME)
    if named:
        if shutil.which(named) is None:
            raise FileNotFoundError(f"{_NAME}={named}: is no program; give the path of run_experiment")
        return named
    on_path = shutil.which("run_experiment")
    if on_path:
        return on_path
    clone = _clone()
    if clone is not None and os.access(clone / "run_experiment", os.X_OK):
        return str(clone / "run_experiment")
    looked = f"nor in {clone}, which syncopate was installed from" if clone else "and syncopate came from no clone"
    raise FileNotFoundError(f"there is no run_experiment on PATH, {looked}; give its path as {_NAME}=...")


def _clone() -> Optional[pathlib.Path]:
    """The folder that pip has installed this package from, as it writes that down; None: it was a wheel."""
    try:
        origin = importlib.metadata.distribution("syncopate").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    url = urllib.parse.urlparse(json.loads(origin)["url"]) if origin else None
    if url is None or url.scheme != "file":
        return None
    clone = pathlib.Path(urllib.request.url2pathname(url.path))
    return clone if clone.is_dir() else None


def _words(options: Dict[str, Any]) -> List[str]:
    words = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, dict):
            words += [f"{option}={key.replace('_', '-')}={_text(each)}" for key, each in value.items()]
        else:
            words.append(f"{option}={_text(value)}")
    return words


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _carry_out(
    kind: str, verb: List[str], command: Optional[Sequence[str]], output: Any, deadline: float, options: Dict[str, Any]
) -> Any:
    results._pandas()
    if isinstance(command, str):
        raise ValueError(f"command={command!r}: must be a list of words: {shlex.split(command)}")
    if not deadline > 0:
        raise ValueError(f"deadline={deadline}: must be seconds above 0")
    folder = pathlib.Path(output or pathlib.Path("results", f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{kind}"))
    words = [find(), *verb, *_words(options), f"--output={folder}", *(["--", *command] if command else [])]
    _run(words, deadline)
    return results.load(folder)


def _run(words: List[str], deadline: float) -> None:
    """Runs them to their end, which shows what they print; what they say of errors comes then."""
    child = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        _, errors = child.communicate(timeout=deadline)
    except BaseException as error:
        # A child of a program that ignores SIGINT does so, too.
        ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        child.send_signal(signal.SIGTERM if ignored else signal.SIGINT)
        try:
            child.communicate(timeout=_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise SyncopateError(f"{shlex.join(words)}: had not ended after deadline={deadline} s") from None
        raise
    sys.stderr.write(errors)
    if child.returncode != 0:
        lines = errors.strip().split("\n")
        raise SyncopateError(f"{shlex.join(words)}: ended with {child.returncode}: {lines[-1]}")
