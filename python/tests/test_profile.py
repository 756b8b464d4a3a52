"""A profile has what a model's step has, and leaves the model as it was."""

import json
import random

import numpy
import pytest
import torch
from torch import nn

import syncopate.torch as sy
from syncopate.torch import _step_times

X, Y = torch.randn(8, 6), torch.randint(0, 3, (8,))


def loss_step(model, x=X, y=Y):
    return lambda: nn.functional.cross_entropy(model(x), y)


def mlp():
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


def profiled(model, step=None, **options):
    return sy.profile(model, step or loss_step(model), **{"warmup": 0, "repeats": 1, **options})


def test_tensors_work_and_the_file(tmp_path):
    file = tmp_path / "mlp.json"
    profile = profiled(mlp(), file=file, name="mine")
    assert [(each.name, each.shape, each.forward_flops) for each in profile.tensors] == [
        ("0.weight", (5, 6), 2 * 5 * 6),
        ("0.bias", (5,), 0),
        ("2.weight", (3, 5), 2 * 3 * 5),
        ("2.bias", (3,), 0),
    ]
    assert (profile.model, profile.input, profile.batch_size, profile.other_forward_flops) == ("mine", (6,), 8, 0)
    assert profile.step_seconds > 0
    read = json.loads(file.read_text())
    assert [each["name"] for each in read["tensors"]] == [each.name for each in profile.tensors]
    assert read["tensors"][0]["backward_seconds"] == profile.tensors[0].backward_seconds
    with pytest.raises(FileExistsError, match="is there already"):
        profiled(mlp(), file=file)
    assert [each.name for each in tmp_path.iterdir()] == ["mlp.json"]


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Takes(torch.autograd.Function):
    """x, after so many seconds of the clock in forward and in backward."""

    @staticmethod
    def forward(context, x, clock, forward, backward):
        context.clock, context.backward_takes = clock, backward
        clock.now += forward
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        context.clock.now += context.backward_takes
        return gradient, None, None, None


class TimedLinear(nn.Linear):
    """Gradients of its weight and bias are ready when its time in backward is over."""

    def __init__(self, inputs, outputs, clock, forward, backward):
        super().__init__(inputs, outputs)
        self.takes = clock, forward, backward

    def forward(self, x):
        return Takes.apply(super().forward(x), *self.takes)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_step_times.time, "perf_counter", clock)
    return clock


def by_name(profile):
    return {each.name: (each.forward_seconds, each.backward_seconds) for each in profile.tensors}


def test_times_of_each_tensor(clock):
    class Wait(nn.Module):  # no parameters: its time is that of the tensor before it
        def forward(self, x):
            return Takes.apply(x, clock, 0.25, 0.0)

    model = nn.Sequential(TimedLinear(6, 5, clock, 1.0, 8.0), Wait(), TimedLinear(5, 3, clock, 2.0, 16.0))

    def step():
        loss = loss_step(model)()
        clock.now += 0.5  # the loss itself
        return loss

    times = by_name(profiled(model, step))
    forward, backward = (sum(each) for each in zip(times["0.weight"], times["0.bias"]))
    assert (forward, backward) == pytest.approx((1.25, 8.0))
    forward, backward = (sum(each) for each in zip(times["2.weight"], times["2.bias"]))
    assert (forward, backward) == pytest.approx((2.5, 16.0))


def test_times_are_medians(clock):
    lengths = iter([1000.0, 500.0, 3.0, 100.0, 5.0])  # counted; warm-up; measured
    model = mlp()

    def step():
        clock.now += next(lengths)
        return loss_step(model)()

    assert profiled(model, step, warmup=1, repeats=3).forward_seconds == pytest.approx(5.0)


def test_frozen_parameters_are_left_out_and_their_time_is_not(clock):
    model = nn.Sequential(TimedLinear(6, 5, clock, 1.0, 0.0), TimedLinear(5, 3, clock, 2.0, 4.0))
    for each in model[0].parameters():
        each.requires_grad_(False)
    profile = profiled(model)
    assert [each.name for each in profile.tensors] == ["1.weight", "1.bias"]
    assert profile.forward_seconds == pytest.approx(3.0)
    assert profile.other_forward_flops == 2 * 6 * 5
    assert "2 frozen" in profile.source


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 4)
        self.unused = nn.Linear(2, 2)
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids) * self.scale
        return self.head(self.attention(x, x, x)[0])


def test_unused_tied_and_nested_parameters():
    model, ids = Language(), torch.randint(0, 11, (2, 5))
    profile = profiled(model, lambda: nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten()))
    names = [each.name for each in profile.tensors]
    assert names == [
        "unused.weight",
        "unused.bias",
        "embedding.weight",
        "scale",
        "attention.in_proj_weight",
        "attention.in_proj_bias",
        "attention.out_proj.weight",
        "attention.out_proj.bias",
    ]
    unused = profile.tensors[0]
    assert (unused.forward_seconds, unused.backward_seconds, unused.forward_flops) == (0, 0, 0)
    tensors = dict(zip(names, profile.tensors))
    assert tensors["scale"].shape == (1,)
    assert tensors["embedding.weight"].forward_flops == 0
    tokens, head = 5, 5 * 2 * 4 * 11  # which stands on the tensor before it
    assert tensors["attention.in_proj_weight"].forward_flops == tokens * 2 * 4 * 12
    assert tensors["attention.out_proj.weight"].forward_flops == tokens * 2 * 4 * 4 + head
    assert profile.other_forward_flops == 2 * (2 * 5 * 5 * 2) * 2  # two heads of two: scores, and what they weigh
    assert (profile.input, profile.batch_size) == ((5,), 2)


def test_convolutions():
    model = nn.Sequential(nn.Conv2d(2, 4, 3, groups=2), nn.BatchNorm2d(4), nn.ConvTranspose2d(4, 3, 2), nn.Flatten())
    x = torch.randn(2, 2, 5, 5)
    profile = profiled(model, lambda: model(x).sum())
    flops = {each.name: each.forward_flops for each in profile.tensors if each.forward_flops}
    assert flops == {"0.weight": 2 * (4 * 3 * 3) * 1 * 9, "2.weight": 2 * (4 * 3 * 3) * 3 * 4}


def test_the_model_is_as_before():
    model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(0.5), nn.Linear(5, 3))
    model[1].eval()
    loss_step(model)().backward()
    modes = [each.training for each in model.modules()]
    tensors = {name: (each, each.clone()) for name, each in model.state_dict(keep_vars=True).items()}
    gradients = [(each.grad, each.grad.clone()) for each in model.parameters()]
    states = random.getstate(), torch.get_rng_state(), numpy.random.get_state()[1].copy()
    threads = torch.get_num_threads()

    def step():
        assert all(each.training for each in model.modules())
        assert torch.get_num_threads() == 1
        random.random(), numpy.random.rand()
        with torch.no_grad():
            model[0].weight.mul_(1.01)
        return loss_step(model)()

    def is_as_before():
        assert [each.training for each in model.modules()] == modes
        for name, each in model.state_dict(keep_vars=True).items():
            assert each is tensors[name][0] and torch.equal(each, tensors[name][1]), name
        for each, (gradient, value) in zip(model.parameters(), gradients):
            assert each.grad is gradient and torch.equal(gradient, value)
        assert random.getstate() == states[0] and torch.equal(torch.get_rng_state(), states[1])
        assert (numpy.random.get_state()[1] == states[2]).all()
        assert torch.get_num_threads() == threads
        assert not any(each._forward_hooks or each._forward_pre_hooks for each in model.modules())

    profiled(model, step)
    is_as_before()

    def failing():
        step()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        profiled(model, failing)
    is_as_before()


def test_a_step_that_takes_another_way_each_time():
    model, passes = mlp(), iter(range(9))

    def step():
        x = X if next(passes) % 2 else model[0](X).new_zeros(8, 6)
        return loss_step(model, x)()

    assert len(profiled(model, step, repeats=4).tensors) == 4


def test_checkpointed_modules():
    model = mlp()
    checkpoint = torch.utils.checkpoint.checkpoint

    def step():
        return nn.functional.cross_entropy(checkpoint(model, X, use_reentrant=False), Y)

    assert [each.name for each in profiled(model, step).tensors] == ["0.weight", "0.bias", "2.weight", "2.bias"]


@pytest.mark.parametrize(
    "part, make, step, options",
    [
        ("must be a torch.nn.Module", lambda: 3, None, {}),
        ("there is nothing to train", lambda: nn.ReLU(), None, {}),
        ("only torch.float32", lambda: mlp().double(), None, {}),
        ("model.cpu()", lambda: mlp().to("meta"), None, {}),
        ("profile what it wraps", lambda: nn.DataParallel(mlp()), None, {}),
        ("use sparse=False", lambda: nn.Embedding(9, 3, sparse=True), lambda m: lambda: m(Y).sum(), {}),
        ("calls backward() itself", mlp, lambda m: lambda: m(X).sum().backward(), {}),
        ("returned NoneType", mlp, lambda m: lambda: None, {}),
        ("shape (8, 3)", mlp, lambda m: lambda: m(X), {}),
        ("depends on no parameter", mlp, lambda m: lambda: X.sum(), {}),
        ("give batch_size=", mlp, lambda m: lambda: m[0](X).sum(), {}),
        ("repeats=0", mlp, None, {"repeats": 0}),
        ("warmup=-1", mlp, None, {"warmup": -1}),
        ("batch_size=0", mlp, None, {"batch_size": 0}),
        ("at most 256", mlp, None, {"name": "n" * 257}),
    ],
)
def test_refusals(part, make, step, options):
    model = make()
    with pytest.raises(ValueError) as raised:
        profiled(model, step(model) if step else None, **options)
    assert part in str(raised.value) and "\n" not in str(raised.value)


def test_a_model_that_an_optimizer_of_ours_has():
    sy.init()
    model = mlp()
    optimizer = sy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model.named_parameters())
    with pytest.raises(ValueError, match="before DistributedOptimizer"):
        profiled(model)
    optimizer.close()
    sy.shutdown()
