"""save_checkpoint() and load_checkpoint(): what others read, what is left by a break, and what is refused."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
library = pytest.importorskip("safetensors.torch", reason="pip install safetensors")

import syncopate.torch as sy  # noqa: E402
from ranks import run  # noqa: E402


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        return self.head(self.norm(self.embedding(tokens)))


def trained(steps=3):
    torch.manual_seed(steps)
    model = Tied()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for step in range(steps):
        optimizer.zero_grad()
        model(torch.arange(8)).square().mean().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values()))


def save(path, steps=3):
    model, optimizer, scheduler = trained(steps)
    sy.save_checkpoint(path, model, optimizer, scheduler=scheduler, epoch=steps, names=["a", "b"])
    return model, optimizer, scheduler


def test_all_comes_back(tmp_path):
    path = tmp_path / "run" / "last.safetensors"
    model, optimizer, scheduler = save(path)
    other, its_optimizer, its_scheduler = trained(1)
    left = sy.load_checkpoint(path, other, its_optimizer, scheduler=its_scheduler)
    assert left == {"epoch": 3, "names": ["a", "b"]}
    assert same(other, model) and other.head.weight is other.embedding.weight
    assert its_scheduler.state_dict() == scheduler.state_dict()
    before, after = optimizer.state_dict(), its_optimizer.state_dict()
    assert before["param_groups"] == after["param_groups"]
    for key, each in before["state"].items():
        assert all(torch.equal(value, after["state"][key][name]) for name, value in each.items())


def test_others_read_the_weights(tmp_path):
    path = tmp_path / "last.safetensors"
    model, _, _ = save(path)
    tensors = library.load_file(path)
    assert torch.equal(tensors["norm.running_mean"], model.norm.running_mean)
    weight = tensors.get("head.weight", tensors.get("embedding.weight"))
    assert torch.equal(weight, model.head.weight)


def test_the_next_one_takes_its_place_and_nothing_else_stays(tmp_path):
    path = tmp_path / "last.safetensors"
    (tmp_path / "last.safetensors.mine").write_text("kept")
    save(path)
    model, _, _ = save(path, 5)
    other, _, _ = trained(1)
    assert sy.load_checkpoint(path, other)["epoch"] == 5 and same(other, model)
    names = sorted(each.name for each in tmp_path.iterdir())
    assert len(names) == 3 and names[0] == "last.safetensors" and names[2].endswith(".mine"), names


BREAKS = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_checkpoint_files as tests
count = 0
def breaking(call):
    def called(*arguments):
        global count
        count += 1
        if count == {number}:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments)
    return called
for name in ("fsync", "replace", "unlink"):
    setattr(os, name, breaking(getattr(os, name)))
tests.save({path!r}, 5)
print("whole", count)
"""


def test_a_break_at_any_moment_leaves_a_whole_one(tmp_path):
    path = tmp_path / "last.safetensors"
    before, _, _ = save(path)
    after, _, _ = trained(5)
    seen = set()
    for number in range(1, 20):
        script = BREAKS.format(tests=str(pathlib.Path(__file__).parent), number=number, path=str(path))
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
        other, optimizer, scheduler = trained(1)
        epoch = sy.load_checkpoint(path, other, optimizer, scheduler=scheduler)["epoch"]
        assert same(other, after if epoch == 5 else before)
        assert len(optimizer.state_dict()["state"]) == 3
        seen.add(epoch)
        if ended.returncode == 0:
            assert epoch == 5 and len(list(tmp_path.iterdir())) == 2, list(tmp_path.iterdir())
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        save(path)  # begins anew, and removes what the break has left
    else:
        raise AssertionError("it never came to its end")
    assert number > 4 and seen == {3, 5}


@pytest.mark.parametrize("keeps", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("which", ["weights", "training"])
def test_a_truncated_file_is_named(tmp_path, which, keeps):
    path = tmp_path / "last.safetensors"
    save(path)
    file = path if which == "weights" else next(tmp_path.glob("*.training"))
    os.truncate(file, int(file.stat().st_size * keeps))
    model, optimizer, scheduler = trained(1)
    untouched, _, _ = trained(1)
    with pytest.raises(sy.SyncopateError, match=file.name) as raised:
        sy.load_checkpoint(path, model, optimizer, scheduler=scheduler)
    assert "\n" not in str(raised.value)
    assert same(model, untouched), "nothing of it was loaded"


def test_what_is_missing_is_named(tmp_path):
    path = tmp_path / "last.safetensors"
    model, optimizer, scheduler = trained()
    with pytest.raises(FileNotFoundError, match="no such checkpoint"):
        sy.load_checkpoint(path, model)
    sy.save_checkpoint(path, model)
    with pytest.raises(sy.SyncopateError, match="has no optimizer, scheduler"):
        sy.load_checkpoint(path, model, optimizer, scheduler=scheduler)
    with pytest.raises(ValueError, match="epoch=0 has no load_state_dict"):
        sy.load_checkpoint(path, model, epoch=0)
    with pytest.raises(sy.SyncopateError, match="of another model"):
        sy.load_checkpoint(path, torch.nn.Linear(2, 2))
    next(tmp_path.glob("*.training")).unlink()
    with pytest.raises(sy.SyncopateError, match="the file beside it, last.safetensors"):
        sy.load_checkpoint(path, model)


def test_a_file_of_others_is_refused(tmp_path):
    path = tmp_path / "theirs.safetensors"
    library.save_file({"weight": torch.zeros(2, 2)}, path)
    with pytest.raises(sy.SyncopateError, match="load the weights alone"):
        sy.load_checkpoint(path, torch.nn.Linear(2, 2))


def test_nothing_that_runs_is_read(tmp_path):
    """A pickle that would call something, in the place of what was saved."""
    path = tmp_path / "last.safetensors"
    save(path)
    mark = tmp_path / "called"

    class Calls:
        def __reduce__(self):
            return os.mkdir, (str(mark),)

    torch.save({"optimizer": None, "others": {"x": Calls()}}, next(tmp_path.glob("*.training")))
    with pytest.raises(sy.SyncopateError, match=r"\.training: not whole"):
        sy.load_checkpoint(path, trained(1)[0])
    assert not mark.exists()


@pytest.mark.parametrize("way", ["allreduce", "ps", "sharded"])
def test_ranks_go_on_from_it(tmp_path, way):
    run("checkpoint_files.py", 2, way, tmp_path / "last.safetensors")
