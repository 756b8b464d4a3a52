"""Results as frames, and run_experiment from Python."""

import importlib.util
import json
import os
import pathlib
import stat
import sys

import pytest

import syncopate
from run_experiment import PROGRAM, WHY
from syncopate import _command

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"


def refused(kind, part, call, *arguments, **options):
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    assert part in str(raised.value) and "\n" not in str(raised.value), str(raised.value)


def test_without_pandas(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pandas", None)
    refused(ImportError, "pip install pandas", syncopate.results.load, tmp_path)
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", program(tmp_path, "touch started"))
    refused(ImportError, "pip install pandas", syncopate.compare)
    assert not (tmp_path / "started").exists()


def program(folder, lines):
    """A program that does as run_experiment might."""
    path = folder / "run_experiment"
    path.write_text(f"#!/bin/sh\ncd {folder}\n{lines}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_where_run_experiment_is(monkeypatch, tmp_path):
    mine = program(tmp_path, "exit 0")
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", mine)
    assert _command.find() == mine
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", "nowhere/run_experiment")
    refused(FileNotFoundError, "SYNCOPATE_RUN_EXPERIMENT=nowhere/run_experiment: is no program", _command.find)
    monkeypatch.delenv("SYNCOPATE_RUN_EXPERIMENT")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _command.find() == mine
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(_command, "_clone", lambda: tmp_path)
    assert _command.find() == mine
    monkeypatch.setattr(_command, "_clone", lambda: tmp_path / "other")
    refused(FileNotFoundError, "which syncopate was installed from", _command.find)
    monkeypatch.setattr(_command, "_clone", lambda: None)
    refused(FileNotFoundError, "SYNCOPATE_RUN_EXPERIMENT=...", _command.find)


def test_the_clone_is_what_pip_says_of_it():
    clone = _command._clone()
    assert clone is None or (clone / "pyproject.toml").exists()


pandas = pytest.mark.skipif(
    importlib.util.find_spec("pandas") is None, reason="no pandas in this environment: pip install pandas"
)


@pandas
def test_words_of_options(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", program(tmp_path, 'printf "%s\\n" "$@" > words; echo "not today" >&2; exit 3'))
    refused(
        syncopate.SyncopateError,
        "ended with 3: not today",
        syncopate.compare,
        modes=["allreduce", "ps:sync"],
        batch_size=8,
        vary={"workers": [1, 4], "bucket_bytes": "1MB"},
        dry_run=True,
        resume=None,
        trace=False,
        output="here",
        command=["python", "train.py", "--epochs=1"],
    )
    assert (tmp_path / "words").read_text().split() == [
        *("compare", "--modes=allreduce,ps:sync", "--batch-size=8", "--vary=workers=1,4", "--vary=bucket-bytes=1MB"),
        *("--dry-run", "--output=here", "--", "python", "train.py", "--epochs=1"),
    ]
    refused(syncopate.SyncopateError, "ended with 3", syncopate.simulate, mode="ps")
    words = (tmp_path / "words").read_text().split()
    assert words[:2] == ["--mode=ps", "--cluster=simulated"] and words[2].startswith("--output=results/")


@pandas
def test_one_that_does_not_end(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", program(tmp_path, "trap 'echo ended > how; exit 1' INT; while :; do :; done"))
    refused(syncopate.SyncopateError, "had not ended after deadline=1", syncopate.compare, deadline=1)
    assert (tmp_path / "how").read_text() == "ended\n"


@pandas
def test_arguments_that_cannot_work():
    refused(ValueError, "must be a list of words: ['python', 'train.py']", syncopate.compare, command="python train.py")
    refused(ValueError, "deadline=0", syncopate.compare, deadline=0)


@pandas
def test_folders_without_results(tmp_path):
    load = syncopate.results.load
    refused(FileNotFoundError, "no such folder", load, tmp_path / "none")
    refused(FileNotFoundError, "has no results", load, tmp_path)
    (tmp_path / "summary.json").write_text("{")
    refused(ValueError, "is no JSON", load, tmp_path)
    (tmp_path / "summary.json").write_text("[]")
    refused(ValueError, "it has no outcome", load, tmp_path)
    (tmp_path / "summary.json").write_text('{"outcome": "completed"}')
    refused(FileNotFoundError, "steps.csv: is missing", load, tmp_path)
    (tmp_path / "steps.csv").write_text("")
    refused(ValueError, "is no table", load, tmp_path)


@pandas
def test_frames_of_a_comparison(tmp_path):
    verdict = {"estimate": 0.5, "interval": [0.4, 0.6], "verdict": "slower"}
    rows = [
        {"label": "a", "speed_ratio": None, "rounds": [{"seed": 1}], "training_curve": {"steps": [1, 2]}},
        {"label": "b", "speed_ratio": verdict, "rounds": [{"seed": 1}], "training_curve": {"steps": [1, 2]}},
    ]
    (tmp_path / "comparison.json").write_text(json.dumps({"outcome": "completed", "rows": rows}))
    (tmp_path / "comparison.csv").write_text('label,vary:shape,round,seed\n"a","\'=1gbit",0,1\n"b",,0,1\n')
    read = syncopate.results.load(tmp_path)
    assert list(read.rows.columns) == ["label", "speed_ratio.estimate", "speed_ratio.interval", "speed_ratio.verdict"]
    assert read.rows.set_index("label")["speed_ratio.estimate"]["b"] == 0.5
    assert read.rounds["vary:shape"][0] == "=1gbit" and read.rounds["seed"].sum() == 2
    assert read.outcome == "completed"


needs_program = pytest.mark.skipif(PROGRAM is None, reason=WHY)


@pytest.fixture
def real(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNCOPATE_RUN_EXPERIMENT", PROGRAM)
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"])
    monkeypatch.chdir(tmp_path)


SMALL = {"train_samples": 2048, "test_samples": 256, "warmup_steps": 2, "deadline": 120}


@pandas
@needs_program
def test_simulate(real):
    run = syncopate.simulate(mode="ps", servers=2, workers=4, compute="5ms", steps=10, repeat=2, **SMALL)
    assert run.outcome == "completed" and len(run.summary) == 2
    assert len(run.steps) == 2 * run.summary["total_steps"][0] and set(run.steps["worker"]) == {0, 1, 2, 3}
    last = run.evaluations.groupby("repeat").accuracy.last()
    assert list(last) == pytest.approx(list(run.summary["final_test_accuracy"]), abs=1e-5)
    assert (run.summary["step_split_ms.exposed_wait"] > 0).all()
    again = syncopate.results.load(run.folder)
    assert again.steps.equals(run.steps)


@pandas
@needs_program
def test_compare(real):
    found = syncopate.compare(modes=["allreduce", "ps:async"], cluster="simulated", workers=2, compute="5ms", steps=10, repeat=1, **SMALL)
    assert list(found.rows["label"]) == ["allreduce", "ps:async"] == sorted(found.rounds["label"])
    speed = found.rounds.set_index("label")["samples_per_second"]
    mean = found.rows.set_index("label")["samples_per_second.mean"]
    assert list(mean) == pytest.approx(list(speed[mean.index]), rel=1e-4)


@pandas
@needs_program
def test_compare_a_script(real):
    script = [sys.executable, str(EXAMPLES / "mlp_after.py"), "--samples=6400"]
    found = syncopate.compare(modes=["allreduce", "ps:sync"], workers=2, command=script, repeat=1, deadline=200)
    assert found.rows["quality.mean"][0] == found.rows["quality.mean"][1] > 0.8
