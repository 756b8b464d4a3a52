"""Results of run_experiment as pandas frames. results/README.md says what each column is, with its unit.

    run = syncopate.results.load("results/20260101-120000-ps")
    run.steps.groupby("worker").total_us.median()
"""

from __future__ import annotations

import json
import pathlib
from dataclasses import dataclass
from typing import Any, Dict, List, Union

_CURVES = ("training_curve",)


@dataclass(frozen=True)
class Run:
    """One run. Frames that the run has left nothing for are empty.

    steps        steps.csv: a row for each step of each worker
    evaluations  evals.csv: a row for each evaluation on the test set
    summary      a row for each repeat, of summary.json; parts of a figure have a dot: "step_split_ms.exposed_wait"
    outcome      "completed", or what ended the run
    """

    folder: pathlib.Path
    steps: Any
    evaluations: Any
    summary: Any
    outcome: str


@dataclass(frozen=True)
class Comparison:
    """A comparison or study.

    rows     a row for each row of its table, the baseline first: "samples_per_second.mean", "speed_ratio.verdict"
    rounds   comparison.csv: a row for each round of each row
    outcome  "completed", or what ended it
    """

    folder: pathlib.Path
    rows: Any
    rounds: Any
    outcome: str


def load(folder: Any) -> Union[Run, Comparison]:
    """Reads the folder of a run, a comparison or a study.

    Raises FileNotFoundError for a folder that has no results, or lacks a file of them; ValueError for a file that is not
    what its name says; ImportError without pandas. Each in one line.
    """
    pandas = _pandas()
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: there is no such folder")
    if (folder / "comparison.json").exists():
        return _comparison(pandas, folder)
    if (folder / "summary.json").exists():
        return _run(pandas, folder)
    raise FileNotFoundError(
        f"{folder}: has no results: no summary.json of a run that has ended, and no comparison.json of a comparison"
    )


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(f"{error}: syncopate.results needs pandas; install it: pip install pandas") from None
    return pandas


def _run(pandas: Any, folder: pathlib.Path) -> Run:
    summary = _read_json(folder / "summary.json")
    return Run(
        folder=folder,
        steps=_read_csv(pandas, folder / "steps.csv"),
        evaluations=_read_csv(pandas, folder / "evals.csv"),
        summary=_flat(pandas, summary.get("each_repeat") or [summary]),
        outcome=summary["outcome"],
    )


def _comparison(pandas: Any, folder: pathlib.Path) -> Comparison:
    comparison = _read_json(folder / "comparison.json")
    return Comparison(
        folder=folder,
        rows=_flat(pandas, comparison["rows"]),
        rounds=_read_csv(pandas, folder / "comparison.csv"),
        outcome=comparison["outcome"],
    )


def _read_json(path: pathlib.Path) -> Dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: is no JSON: {error}") from None
    if not isinstance(read, dict) or "outcome" not in read:
        raise ValueError(f"{path}: is no result of run_experiment: it has no outcome")
    return read


def _read_csv(pandas: Any, path: pathlib.Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(f"{path}: is missing in a folder of results")
    try:
        frame = pandas.read_csv(path)
    except ValueError as error:  # pandas.errors
        raise ValueError(f"{path}: is no table: {' '.join(str(error).split())}") from None
    for name, column in frame.items():
        if not pandas.api.types.is_numeric_dtype(column.dtype):
            frame[name] = column.map(_as_meant)
    return frame


def _as_meant(value: Any) -> Any:
    """A text without the apostrophe that keeps spreadsheets from running it."""
    return value[1:] if isinstance(value, str) and value[:1] == "'" and value[1:2] in ("=", "+", "-", "@") else value


def _flat(pandas: Any, entries: List[Dict[str, Any]]) -> Any:
    """A row an entry; what lies in an entry has its own columns. Curves, histograms and the like, which are tables of
    their own, are left out."""
    frame = pandas.json_normalize([{name: value for name, value in each.items() if name not in _CURVES} for each in entries])
    parted = {name.partition(".")[0] for name in frame.columns if "." in name}  # null in the other entries
    left_out = [name for name, column in frame.items() if name in parted or any(_is_table(value) for value in column)]
    return frame.drop(columns=left_out)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, (list, dict)) for each in value)
