"""run_experiment -- python SCRIPT, where the script knows nothing of Syncopate: what is taken over, and what is refused."""

import os
import subprocess
import sys

import pytest
import torch
from ranks import DEADLINE, SCRIPTS, free_port
from test_launcher import Run, events_of, pytestmark as _needs_program
from torch import nn

MISSING = [name for name in ("lightning", "accelerate") if subprocess.run([sys.executable, "-c", f"import {name}"]).returncode]
pytestmark = [
    _needs_program,
    pytest.mark.skipif(torch.__version__ < "2.5", reason="before PyTorch 2.5, `import torch` does not call us"),
]

OWN = SCRIPTS / "unchanged.py"
ALLREDUCE, SYNC = ["--mode=allreduce"], ["--mode=ps", "--consistency=sync"]
ASYNC = ["--mode=ps", "--consistency=async", "--servers=2"]


def script_of(name):
    if name in MISSING:
        pytest.skip(f"no {name} here: pip install {name}")
    return SCRIPTS / f"unchanged_{name}.py"


def weights(output, rank=0):
    return torch.load(f"{output}.{rank}")


def run(folder, mode, words, code=0, file=OWN):
    """The run, and where its ranks have left their weights."""
    output = folder / "weights"
    return Run(folder, *mode, "--workers=2", "--warmup-steps=2", script=[*words, output], file=file).end(code), output


def over_gloo(folder, words, file=OWN):
    """The same script by torchrun, without us."""
    output = folder / "gloo"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "ACCELERATE_USE_CPU": "true"}
    for _ in range(3):
        launcher = [sys.executable, "-m", "torch.distributed.run", f"--master-port={free_port()}", "--nproc-per-node=2"]
        done = subprocess.run(
            [*launcher, file, *map(str, words), output], env=environment, capture_output=True, text=True, timeout=DEADLINE
        )
        if "terminate called without an active exception" not in done.stderr:  # as gloo's own threads end a process at times
            break
    assert done.returncode == 0, done.stderr
    return output


def expect_same(one, other, ranks=(0, 1)):
    for rank in ranks:
        for (name, mine), theirs in zip(weights(one, rank).items(), weights(other, rank).values()):
            assert torch.equal(mine, theirs), f"{name} of rank {rank}"


def expect_close(one, other, tolerance=1e-5):
    for rank in (0, 1):
        for (name, mine), theirs in zip(weights(one, rank).items(), weights(other, rank).values()):
            torch.testing.assert_close(mine, theirs, rtol=0, atol=tolerance, msg=lambda text: f"{name} of rank {rank}: {text}")


# Whose update torch makes, also under us, has its bits; buffers are rank 0's, as DistributedDataParallel has them.
@pytest.mark.parametrize("way", ["ddp-two-clips-schedules-resumes-unseeded", "ddp-closure-pair-renews-leaves", "ddp-hook-doubles"])
def test_a_ddp_script_comes_to_the_bits_of_gloo(tmp_path, way):
    taken, output = run(tmp_path, ALLREDUCE, [way, "nadam", 12])
    expect_same(output, over_gloo(tmp_path, [way, "nadam", 12]))
    assert len(taken.rows("steps.csv")) == (48 if "pair" in way else 24)
    if "hook" in way:
        assert "nothing but the backend, since DistributedDataParallel with parameters of torch.float64 makes" in taken.out
    else:
        assert "steps of NAdam by torch's own update; DistributedDataParallel's sums are ours" in taken.out


@pytest.mark.parametrize("kind", ["sgd", "nadam"])
def test_allreduce_and_servers_come_to_the_same_bits_and_to_gloos_but_for_rounding(tmp_path, kind):
    words = ["ddp-schedules", kind, 20]
    _, sums = run(tmp_path / "a", ALLREDUCE, words)
    _, pushes = run(tmp_path / "b", SYNC, words)
    expect_same(sums, pushes)
    expect_close(sums, over_gloo(tmp_path, words))


@pytest.mark.parametrize("way, what", [("ddp-gathers", "gather in a simulated run"), ("ddp-halves", "a group of 1 of the 2 ranks")])
def test_what_a_simulated_run_has_not_is_refused_by_name(tmp_path, way, what):
    refused, _ = run(tmp_path, [*ALLREDUCE, "--cluster=simulated", "--compute=5ms"], [way, "sgd", 4], code=2)
    assert what in refused.err and "--cluster=real" in refused.err


@pytest.mark.parametrize("way", ["alone", "ddp"])
def test_a_model_that_a_script_saves_is_its_own(tmp_path, way):
    _, output = run(tmp_path, ALLREDUCE, [way, "sgd", 4])
    with open(f"{output}.whole.0", "rb") as file:
        assert b"syncopate" not in file.read()
    if way == "alone":
        assert torch.load(f"{output}.whole.0", weights_only=False)(torch.zeros(2, 20)).shape == (2, 2)


@pytest.mark.parametrize("mode", [ALLREDUCE, SYNC], ids=["allreduce", "sync"])
@pytest.mark.parametrize("way", ["ddp-counts-schedules", "alone-unseeded"])
def test_ranks_of_a_simulated_run_come_to_the_same(tmp_path, mode, way):
    words = [way, "adam", 12]
    _, real = run(tmp_path / "real", mode, words)
    taken, virtual = run(tmp_path / "virtual", [*mode, "--cluster=simulated", "--compute=5ms"], words)
    expect_close(real, virtual)
    assert "leaked" not in taken.out
    assert 12 * 0.005 <= float(taken.summary()["training_seconds"]) < 0.5, "of virtual time"


@pytest.mark.parametrize("mode", [ALLREDUCE, ASYNC], ids=["allreduce", "async"])
@pytest.mark.parametrize("name", ["lightning", "accelerate"])
def test_trainers_of_others_run_as_they_are(tmp_path, mode, name):
    taken, output = run(tmp_path, mode, ["ddp-two-clips", "sgd", 8], file=script_of(name))
    steps = taken.rows("steps.csv")
    assert len(steps) == 16 and all(row["samples"] == "32" and 0.1 < float(row["loss"]) < 2 for row in steps)
    if mode is ALLREDUCE:
        expect_close(output, over_gloo(tmp_path, ["ddp-two-clips", "sgd", 8], file=script_of(name)))


def test_lightning_without_a_strategy_is_a_script_alone(tmp_path):
    taken, output = run(tmp_path, SYNC, ["alone", "adam", 40], file=script_of("lightning"))
    assert taken.summary()["final_test_accuracy"] > 0.6, "by its logger, which is TensorBoard's"
    assert "each worker reads all data" in taken.out


def test_modes_are_compared_on_a_script_that_knows_nothing_of_them(tmp_path):
    flags = ["compare", "--modes=allreduce,ps:sync,ps:async", "--warmup-steps=2", "--repeat=1"]
    compared = Run(tmp_path, *flags, "--workers=2", script=["ddp-writes", "adam", 20, tmp_path / "weights"], file=OWN).end(0)
    rows = {row["label"]: row for row in compared.rows("comparison.csv")}
    assert set(rows) == {"allreduce", "ps:sync", "ps:async"}
    assert {row["final_test_accuracy"] for row in rows.values()} == {"0.1"}, "10 per cent, as its writer is told"
    assert {row["final_test_loss"] for row in rows.values()} == {"0.05"}


@pytest.mark.parametrize("mode, way, batch", [(ALLREDUCE, "ddp-two", "32"), (SYNC, "alone", "16")], ids=["ddp", "alone"])
def test_steps_of_an_unchanged_script_are_measured_by_phase(tmp_path, mode, way, batch):
    taken, _ = run(tmp_path, [*mode, "--trace=5:6"], [way, "sgd", 12])
    steps = taken.rows("steps.csv")
    said = {}
    for line in taken.out.splitlines():
        if line.startswith("rank 0 step"):
            said[line.split()[3]] = float(line.split()[5])
    for row in steps:
        assert row["samples"] == batch
        assert min(float(row[name]) for name in ("forward_us", "backward_us")) > 0 and int(row["bytes_out"]) > 2000
        if row["worker"] == "0":
            its_passes = 2 if "two" in way else 1
            assert float(row["loss"]) == pytest.approx(its_passes * said[str(int(row["step"]) + 1)], abs=2e-6)
    names = events_of(taken)
    assert names.count("step 5") == names.count("step 6") == 2 and "step 7" not in names


def test_what_is_done_to_a_script_is_said(tmp_path):
    taken, _ = run(tmp_path, SYNC, ["alone", "adam", 6])
    facts = taken.summary()["facts"]
    assert "steps of Adam by Syncopate's own update in servers" in facts["taken over"]
    assert "each worker reads all data" in facts["batches"]
    for name in ("taken over", "figures", "batches"):
        assert facts[name] in taken.out


def test_clipping_between_backward_and_step_counts_under_servers(tmp_path):
    _, output = run(tmp_path, SYNC, ["ddp-clips", "sgd", 10])
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(20, 30), nn.BatchNorm1d(30), nn.ReLU(), nn.Linear(30, 2))
    way = sum((weights(output)[name] - each.detach()).square().sum() for name, each in first.named_parameters()).sqrt()
    assert 0 < way < 10 * 0.05 * 0.01 / (1 - 0.9), "steps, rate, norm, momentum"


CHANGING = [
    (ALLREDUCE, "alone-unfreezes"),
    (SYNC, "ddp-unfreezes"),
    (SYNC, "alone-resumes-renews"),
    (ALLREDUCE, "alone-unseeded-pair"),
    (SYNC, "ddp-spawns"),
]


@pytest.mark.parametrize("mode, way", CHANGING, ids=[way for _, way in CHANGING])
def test_ranks_stay_alike_whatever_a_script_does(tmp_path, mode, way):
    taken, output = run(tmp_path, mode, [way, "adam", 12])
    for name, each in weights(output, 0).items():
        assert "running" in name or torch.equal(each, weights(output, 1)[name]), name
    if "unfreezes" in way:
        torch.manual_seed(0)
        assert not torch.equal(weights(output)["0.weight"], nn.Linear(20, 30).weight), "it was trained from then on"
    taken.expect_nobody_left()


def test_a_horovod_script_is_handed_syncopate(tmp_path):
    _, output = run(tmp_path, SYNC, [], file=SCRIPTS / "unchanged_horovod.py")
    assert all(torch.equal(each, weights(output, 1)[name]) for name, each in weights(output).items())


@pytest.mark.parametrize("mode, way", [(ALLREDUCE, "ddp-lingers-leaves"), (ASYNC, "alone-lingers")], ids=["ddp", "alone"])
def test_a_rank_that_has_ended_waits_for_another_that_evaluates_for_longer_than_the_timeout(tmp_path, mode, way):
    taken, _ = run(tmp_path, [*mode, "--timeout=4"], [way, "sgd", 6])
    assert len(taken.rows("steps.csv")) == 12
    taken.expect_nobody_left()


FAILING = [
    (ALLREDUCE, "ddp-dies", "signal 9"),
    (ASYNC, "ddp-raises", "ValueError: the data of rank 1 is gone"),
    (ALLREDUCE, "alone-raises", "ValueError: the data of rank 1 is gone"),
]


@pytest.mark.parametrize("mode, way, words", FAILING, ids=[way for _, way, _ in FAILING])
def test_who_fails_is_named_and_nobody_is_left(tmp_path, mode, way, words):
    taken, _ = run(tmp_path, mode, [way, "sgd", 20], code=5)
    assert "worker 1 " in taken.err and words in taken.err
    taken.expect_nobody_left()


BOTH = ["compare", "--modes=allreduce,ps:sync"]
REFUSED = [
    (BOTH, "ddp", "lbfgs", "LBFGS evaluates the loss several times a step"),
    (BOTH, "alone-closure", "mine", "servers are processes that import Mine, and it is part of the script"),
    (ALLREDUCE, "alone-overlaps", "sgd", "two optimizers, SGD and SGD, have the same parameters"),
    (BOTH, "ddp-hook", "sgd", "a communication hook of DistributedDataParallel is allreduce"),
    (BOTH, "ddp-doubles", "sgd", "DistributedDataParallel with parameters of torch.float64 is allreduce"),
    (ALLREDUCE, "alone-doubles", "sgd", "torch.float64: must be torch.float32, torch.bfloat16 or torch.float16"),
    ([*ALLREDUCE, "--elastic"], "ddp", "sgd", "DistributedDataParallel cannot go on without a rank"),
    (["--mode=ps", "--workers=3"], "ddp-spawns", "sgd", "torch.multiprocessing.spawn of 2 ranks under 3 workers: use --workers=2"),
]


@pytest.mark.parametrize("flags, way, kind, said", REFUSED)
def test_what_cannot_be_taken_over_is_refused_before_it_trains(tmp_path, flags, way, kind, said):
    workers = [] if any("--workers" in flag for flag in flags) else ["--workers=2"]
    taken = Run(tmp_path, *flags, *workers, "--warmup-steps=2", script=[way, kind, 10, tmp_path / "w"], file=OWN).end(2)
    assert said in taken.err and taken.err.count("\n") == 1, taken.err
    assert "the first step is made" not in taken.out
    taken.expect_nobody_left()


def test_nothing_is_done_to_a_process_that_nobody_has_started_so():
    lines = "import torch; print(torch.optim.Optimizer.__init__.__module__, torch.autograd.backward.__wrapped__)"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert "AttributeError" in done.stderr, "backward is torch's"


@pytest.mark.parametrize(
    "tag, figure",
    [
        ("Loss/train", (False, "loss")),
        ("loss", (False, "loss")),
        ("train_acc", (False, "accuracy")),
        ("acc", (True, "accuracy")),
        ("Accuracy/test", (True, "accuracy")),
        ("val_loss", (True, "loss")),
        ("eval/accuracy", (True, "accuracy")),
        ("lr", None),
        ("epoch", None),
    ],
)
def test_which_figure_a_tag_is_of(tag, figure):
    from syncopate.torch._figures_of_others import figure_of

    assert figure_of(tag) == figure
