"""`import syncopate.torch as hvd`: what scripts for Horovod call, and what is refused of it."""

import pathlib
import re
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import syncopate.torch as hvd  # noqa: E402
import run_experiment  # noqa: E402
from ranks import DEADLINE, SCRIPTS, run, start, wait  # noqa: E402
from scripts import horovod_training  # noqa: E402


@pytest.mark.parametrize("size, way", [(1, []), (3, []), (2, ["elastic"])])
def test_operations(size, way):
    for each in run("horovod_operations.py", size, *way):
        assert each.out.split() == ["reductions", "gathers", "handles", "gradients", "batch_norm", "refusals"]


def weights(ended, part):
    """Each rank's, as it says at the end of a part."""
    return [re.search(rf"^{part} (bits \S+ sum \S+)$", each.out, re.M)[1] for each in ended]


@pytest.mark.parametrize(
    "parts, way",
    [
        ("resumed+clipped+summed+dense+compressed+restored", []),
        ("resumed+clipped+restored", ["update=torch"]),
        ("resumed+dense+compressed+restored", ["mode=ps"]),
    ],
)
def test_training(parts, way):
    ended = run("horovod_training.py", 2, parts, *way)
    for part in parts.split("+"):
        first, second = weights(ended, part)
        assert first == second, part


def joined(size, rule):
    """Plain loops in one process: a rank without batches gives zeros."""
    model = horovod_training.made_model()
    optimizer = horovod_training.made_optimizer(model, rule)
    for epoch in range(2):
        batches = [horovod_training.batches_of((rank + epoch) % size) for rank in range(size)]
        for step in range(max(batches)):
            optimizer.zero_grad()
            there = [rank for rank in range(size) if step < batches[rank]]
            losses = [horovod_training.loss_of(model, rank, 100 * epoch + step) for rank in there]
            (sum(losses) / size).backward()
            optimizer.step()
    return sum(p.detach().double().sum().item() for p in model.parameters())


@pytest.mark.parametrize("rule, way", [("sgd", []), ("rmsprop", ["update=torch"]), ("adam", ["compress=fp16"])])
def test_ranks_without_batches_join(rule, way):
    ended = run("horovod_training.py", 3, "join", f"rule={rule}", *way)
    assert len(set(weights(ended, "join"))) == 1
    assert float(weights(ended, "join")[0].split()[-1]) == pytest.approx(joined(3, rule), abs=2e-2 if way else 1e-4)
    for each in ended:
        assert re.findall(r"^last (\d)$", each.out, re.M) == ["2", "1"]


def test_others_may_only_make_steps_while_a_rank_joins():
    ended = wait(start("horovod_training.py", 2, "joined_while"))
    assert ended[1].code == 1 and "ValueError: allreduce() while rank 0 is in join()" in ended[1].err
    assert ended[0].code == 1 and "rank 1 (pid" in ended[0].err


@pytest.mark.parametrize("way", [[], ["mode=ps"]])
def test_elastic_training_goes_on_with_the_samples_that_are_left(way):
    ended = wait(start("horovod_training.py", 3, "elastic", *way))
    assert ended[1].code == -signal.SIGKILL
    left = [ended[0], ended[2]]
    assert [each.code for each in left] == [0, 0], [each.err[-2000:] for each in left]
    for each in left:
        assert each.out.splitlines()[:3] == ["begins 0 3", "begins 1 2", "reset [2] rate 0.033333"]
        different, all_of_them = map(int, re.search(r"^had (\d+) (\d+)$", each.out, re.M).groups())
        assert different == all_of_them > 80  # each of the others' samples once
    assert len(set(weights(left, "elastic"))) == 1


def test_a_rank_that_ends_without_shutdown_waits_for_those_that_need_its_servers():
    for each in run("horovod_training.py", 2, "left", "mode=ps", "consistency=async"):
        assert each.out == "ends\n" and not each.err


def launched(folder, code, *words):
    """What run_experiment prints, and its workers."""
    command = [run_experiment.PROGRAM, f"--output={folder / 'run'}", "--workers=2", *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.mark.skipif(run_experiment.PROGRAM is None, reason=run_experiment.WHY)
def test_run_experiment_gives_the_mode(tmp_path):
    script = [sys.executable, pathlib.Path(SCRIPTS).parents[1] / "examples" / "horovod_after.py", "--samples=512"]
    printed = []
    for name, mode in (("allreduce", ["--mode=allreduce"]), ("ps", ["--mode=ps", "--consistency=sync"])):
        text = launched(tmp_path / name, 0, *mode, "--", *script)
        printed.append(re.findall(r"epoch \d: test accuracy [\d.]+", text))
    assert printed[0] == printed[1] and len(printed[0]) == 3
    training = [sys.executable, SCRIPTS / "horovod_training.py"]
    assert "scale the rate" in launched(tmp_path / "summed", 2, "--mode=ps", "--", *training, "summed")


@pytest.fixture(scope="module", autouse=True)
def job():
    hvd.init()
    yield
    hvd.shutdown()


def refused(part, call, *arguments, kind=ValueError, **options):
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    assert part in str(raised.value) and "\n" not in str(raised.value), raised.value


def wrap(**options):
    model = torch.nn.Linear(2, 1)
    return hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters(), **options)


def test_what_cannot_work_is_refused():
    refused("there is no such reduction here", wrap, op=hvd.Adasum)
    refused("averaged or summed", wrap, op=hvd.Max)
    refused("scale the rate", wrap, op=hvd.Sum, mode="ps")
    refused("leave it out, or scale the loss", wrap, gradient_predivide_factor=2.0)
    refused("bucket_mb says how large", wrap, num_groups=2)
    refused("bucket_mb says how large", wrap, groups=[[torch.ones(1)]])
    refused("process_set=", wrap, process_set=hvd.Sum)
    refused("Compression.none or Compression.fp16", wrap, compression=object)
    refused("give one of them", wrap, compression=hvd.Compression.fp16, compress="int8")
    refused("all ranks that were started", hvd.init, [0, 1])
    refused("all ranks that were started", hvd.init, process_sets=[hvd.global_process_set])
    optimizer = wrap()
    refused("at least 1", optimizer.set_backward_passes_per_step, 0)
    optimizer.close()
    optimizer = wrap(mode="ps")
    refused("use mode='allreduce'", hvd.join)
    refused("use mode='allreduce'", optimizer.synchronize)
    optimizer.close()


def test_the_sampler_shares_what_is_left():
    sampler = hvd.elastic.ElasticSampler(range(10), shuffle=False)
    assert list(sampler) == list(range(10)) and len(sampler) == 10
    sampler.record_batch(0, 4)
    other = hvd.elastic.ElasticSampler(range(10), shuffle=False)
    other.load_state_dict(sampler.state_dict())
    assert list(other) == list(range(4, 10))
    other.set_epoch(1)
    assert len(other) == 10
    shuffled = [list(hvd.elastic.ElasticSampler(range(10), seed=seed)) for seed in (0, 0, 1)]
    assert shuffled[0] == shuffled[1] != shuffled[2] and sorted(shuffled[2]) == list(range(10))
