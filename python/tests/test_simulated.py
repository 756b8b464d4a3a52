"""run_experiment --cluster=simulated -- python SCRIPT: ranks of a script with PyTorch in virtual time."""

import csv
import json
import subprocess
import sys

import pytest
from ranks import DEADLINE, SCRIPTS
from run_experiment import PROGRAM, WHY

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=WHY)
SIMULATED = ["--cluster=simulated", "--compute=5ms", "--warmup-steps=2"]


class Run:
    def __init__(self, folder, *flags, words=(), code=0, script="simulated.py"):
        command = [sys.executable, str(SCRIPTS / script), *map(str, words)]
        done = subprocess.run(
            [PROGRAM, *flags, f"--output={folder}", "--", *command], capture_output=True, text=True, timeout=DEADLINE
        )
        self.out, self.err, self.folder = done.stdout, done.stderr, folder
        logs = "\n".join(log.read_text() for log in folder.glob("logs/*.log"))
        assert done.returncode == code, f"{self.out}\n{self.err}\n{logs}"

    def digest(self):
        return float(next(line for line in self.out.splitlines() if line.startswith("digest")).split()[1])

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())

    def steps(self):
        with open(self.folder / "steps.csv", newline="") as file:
            return list(csv.DictReader(file))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_both_ways_train_as_real_ranks_do(tmp_path, optimizer):
    digests = []
    for number, flags in enumerate(
        (
            ["--mode=allreduce", "--workers=3"],
            ["--mode=allreduce", "--workers=3", *SIMULATED],
            ["--mode=ps", "--servers=2", "--consistency=sync", "--workers=3", *SIMULATED],
        )
    ):
        digests.append(Run(tmp_path / str(number), *flags, words=[optimizer]).digest())
    assert digests[1] == pytest.approx(digests[0], rel=1e-5)
    assert digests[2] == pytest.approx(digests[0], rel=1e-5)


def test_a_clipped_mean_counts(tmp_path):
    flags = ["--mode=allreduce", "--workers=2"]
    real = Run(tmp_path / "real", *flags, words=["sgd", "clip"]).digest()
    assert Run(tmp_path / "simulated", *flags, *SIMULATED, words=["sgd", "clip"]).digest() == pytest.approx(real, rel=1e-5)
    assert Run(tmp_path / "other", *flags, *SIMULATED, words=["sgd"]).digest() != pytest.approx(real, rel=1e-3)


def test_what_no_rank_uses_stays(tmp_path):
    flags = ["--mode=allreduce", "--workers=2"]
    real = Run(tmp_path / "real", *flags, words=["sgd", "idle"]).digest()
    assert Run(tmp_path / "simulated", *flags, *SIMULATED, words=["sgd", "idle"]).digest() == pytest.approx(real, rel=1e-5)


def test_asynchronous_ranks_are_the_same_at_every_call(tmp_path):
    flags = ["--mode=ps", "--servers=1", "--consistency=async", "--workers=4", *SIMULATED, "--straggler=3:3x"]
    one, other = (Run(tmp_path / name, *flags, words=["sgd"]) for name in ("one", "other"))
    assert one.digest() == other.digest()
    assert one.steps() == other.steps()
    assert one.summary()["staleness_max"] > 0


def test_losses_and_evaluations_are_of_virtual_time(tmp_path):
    run = Run(tmp_path / "run", "--mode=allreduce", "--workers=2", *SIMULATED, words=["sgd"])
    losses = [float(step["loss"]) for step in run.steps() if step["worker"] == "0"]
    assert len(losses) == 20 and losses[-1] < losses[0]
    summary = run.summary()
    assert summary["training_seconds"] == pytest.approx(20 * 0.005, rel=0.2)
    assert summary["final_test_accuracy"] == 0.5
    assert summary["total_samples"] == 2 * 20 * 32


def test_what_it_computes_is_timed_where_no_time_is_given(tmp_path):
    flags = ["--mode=allreduce", "--workers=2", "--cluster=simulated", "--warmup-steps=2", "--shape=100gbit"]
    run = Run(tmp_path / "run", *flags, words=["sgd", "slow"])  # which sleeps 20 ms in each forward pass
    assert 0.4 < run.summary()["training_seconds"] < 0.8


def test_the_example_trains(tmp_path):
    pytest.importorskip("torchvision")
    flags = ["--mode=ps", "--consistency=async", "--workers=2", *SIMULATED]
    words = ["--steps=3", "--batch-size=2", "--evaluate-every=3"]
    run = Run(tmp_path / "run", *flags, words=words, script="../../examples/resnet18.py")
    assert len(run.steps()) == 6 and all(float(step["loss"]) > 0 for step in run.steps())


def test_two_optimizers_are_refused(tmp_path):
    run = Run(tmp_path / "run", "--mode=allreduce", "--workers=2", *SIMULATED, words=["sgd", "two"], code=2)
    assert "one DistributedOptimizer" in run.err


def test_a_script_of_horovods_trains_as_real_ranks_do(tmp_path):
    outs = []
    for number, more in enumerate(([], SIMULATED)):
        example = SCRIPTS.parent.parent / "examples" / "horovod_before.py"
        run = Run(tmp_path / str(number), "--mode=allreduce", "--workers=2", *more, script=example, words=["--samples=512"])
        outs.append([line for line in run.out.splitlines() if "accuracy" in line][:1])
    assert outs[0] == outs[1] != [[]], outs
