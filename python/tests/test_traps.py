"""Where a script would go wrong in silence. In this process, a job of its own: with one rank a mean is the rank's own, so
that plain torch tells what is right."""

import io
import os

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import syncopate.torch as sy

from ranks import run


@pytest.fixture(autouse=True)
def job():
    sy.init()
    yield
    sy.shutdown()


def twins(make=lambda: torch.nn.Linear(4, 3), rule=torch.optim.SGD, rate=0.1, **options):
    """A model with its plain optimizer, and its twin with ours."""
    torch.manual_seed(3)
    plain, ours = make(), make()
    ours.load_state_dict(plain.state_dict())
    wrapped = sy.DistributedOptimizer(rule(ours.parameters(), lr=rate), ours.named_parameters(), **options)
    return (plain, rule(plain.parameters(), lr=rate)), (ours, wrapped)


def assert_same(one, other, update="torch"):
    """Our update rounds where torch's, which may multiply and add at once, does not."""
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters()):
        assert torch.equal(a, b) if update == "torch" else torch.allclose(a, b, rtol=1e-5, atol=1e-6), name


BATCH = torch.arange(8.0).view(2, 4)


def backward(model, times=1):
    for _ in range(times):
        model(BATCH).square().mean().backward()


def test_servers_refuse_a_second_backward_before_step():
    _, (ours, optimizer) = twins(mode="ps")
    backward(ours)
    with pytest.raises(RuntimeError, match="backward_passes_per_step or no_sync"):
        backward(ours)
    with pytest.raises(RuntimeError, match="was changed between backward"):
        optimizer.step()


@pytest.mark.parametrize("update", ["own", "torch"])
def test_gradients_are_accumulated_over_passes_or_where_nothing_is_sent(update):
    (plain, rule), (ours, optimizer) = twins(update=update, backward_passes_per_step=2)
    for _ in range(3):
        for model, each in ((plain, rule), (ours, optimizer)):
            each.zero_grad()
            backward(model, 2)
            each.step()
        assert_same(plain, ours, update)
    (plain, rule), (ours, optimizer) = twins(update=update)
    backward(plain, 3)
    with optimizer.no_sync():
        backward(ours, 2)
    backward(ours)
    rule.step()
    optimizer.step()
    assert_same(plain, ours, update)


@pytest.mark.parametrize("options", [{}, {"mode": "ps"}])
def test_schedulers_set_the_rate_of_the_step(options):
    (plain, rule), (ours, optimizer) = twins(**options)
    schedules = [torch.optim.lr_scheduler.ExponentialLR(each, 0.5) for each in (rule, optimizer)]
    for _ in range(4):
        for (model, each), schedule in zip(((plain, rule), (ours, optimizer)), schedules):
            each.zero_grad()
            backward(model)
            each.step()
            schedule.step()
        assert_same(plain, ours, "own")
    for model, each in ((plain, rule), (ours, optimizer)):
        backward(model)
        each.param_groups[0]["lr"] = 1.0
    rule.step()
    if options:
        with pytest.raises(RuntimeError, match="between backward"):
            optimizer.step()
    else:
        optimizer.step()
        assert_same(plain, ours, "own")


def test_a_model_may_move_under_allreduce():
    (plain, rule), (ours, optimizer) = twins()
    ours.weight.data = ours.weight.data.clone()
    for model, each in ((plain, rule), (ours, optimizer)):
        backward(model)
        each.step()
    assert_same(plain, ours, "own")


def test_a_model_that_has_moved_is_refused_by_servers():
    _, (ours, optimizer) = twins(mode="ps")
    ours.weight.data = ours.weight.data.clone()
    with pytest.raises(RuntimeError, match="parameter weight was given other memory"):
        backward(ours)


def test_a_write_that_servers_would_not_see_is_refused():
    _, (ours, optimizer) = twins(mode="ps")
    backward(ours)
    optimizer.step()
    optimizer.state_dict()  # which brings the servers' weights here
    backward(ours)
    optimizer.step()
    ours.load_state_dict({name: torch.zeros_like(value) for name, value in ours.state_dict().items()})
    with pytest.raises(RuntimeError, match="parameter weight was written to by this script"):
        backward(ours)


@pytest.mark.parametrize("steps_before", [0, 2])
@pytest.mark.parametrize("write", [lambda weight: weight.data.mul_(0.9), lambda weight: weight.detach().mul_(0.9)])
def test_a_write_between_backward_and_step_is_refused_by_servers(write, steps_before):
    _, (ours, optimizer) = twins(mode="ps")
    for _ in range(steps_before):
        backward(ours)
        optimizer.step()
        optimizer.zero_grad()
    backward(ours)
    write(ours.weight)
    with pytest.raises(RuntimeError, match="parameter weight was written to by this script"):
        optimizer.step()


def test_a_write_that_each_rank_makes_counts_where_ranks_have_the_weights():
    for options in ({}, {"mode": "ps", "consistency": "local-sgd:2"}):
        (plain, rule), (ours, optimizer) = twins(**options)
        for model, step in ((plain, rule.step), (ours, optimizer.step)):
            backward(model)
            step()
            with torch.no_grad():
                model.weight.zero_()
            model.zero_grad()
            backward(model)
            step()
        optimizer.close()
        assert_same(plain, ours, "own")


def test_options_that_change_count_under_allreduce_and_are_refused_by_servers():
    def step_of(model, optimizer):
        optimizer.zero_grad()
        backward(model)
        optimizer.step()

    momentum = lambda parameters, lr: torch.optim.SGD(parameters, lr=lr, momentum=0.9)
    (plain, rule), (ours, optimizer) = twins(rule=momentum)
    for model, each in ((plain, rule), (ours, optimizer)):
        for value in (0.9, 0.5, 0.0, 0.9):
            each.param_groups[0]["momentum"] = value
            step_of(model, each)
    assert_same(plain, ours, "own")
    _, (ours, optimizer) = twins(rule=momentum, mode="ps")
    optimizer.param_groups[0]["momentum"] = 0.5
    with pytest.raises(RuntimeError, match="use mode='allreduce'"):
        backward(ours)


def test_groups_may_have_schedules_of_their_own_under_allreduce():
    def groups_of(model, lr):
        biases = {"params": [model.bias], "lr": lr / 10, "momentum": 0.5, "nesterov": True}
        return torch.optim.SGD([{"params": [model.weight]}, biases], lr=lr)

    torch.manual_seed(3)
    plain, ours = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    ours.load_state_dict(plain.state_dict())
    rule = groups_of(plain, 0.1)
    optimizer = sy.DistributedOptimizer(groups_of(ours, 0.1), ours.named_parameters())
    for model, each in ((plain, rule), (ours, optimizer)):
        for step in range(4):
            each.param_groups[step % 2]["lr"] *= 0.5
            each.zero_grad()
            backward(model)
            each.step()
    assert_same(plain, ours, "own")


def test_rates_of_groups_that_leave_their_proportion_are_refused_by_servers():
    model = torch.nn.Linear(4, 3)
    rule = torch.optim.SGD([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.01}], lr=0.1)
    optimizer = sy.DistributedOptimizer(rule, model.named_parameters(), mode="ps")
    torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda epoch: 0.0, lambda epoch: 0.0])
    backward(model)
    optimizer.step()
    optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"] = 0.05, 0.005
    backward(model)
    optimizer.param_groups[1]["lr"] = 0.01
    with pytest.raises(RuntimeError, match="between backward"):
        optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.005
    optimizer.step()
    optimizer.param_groups[1]["lr"] = 0.01
    with pytest.raises(RuntimeError, match="in another proportion"):
        backward(model)


def test_autograd_sees_that_weights_have_changed():
    _, (ours, optimizer) = twins(lambda: torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 3)))
    old = ours(BATCH).sum()
    backward(ours)
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        old.backward()


def test_saving_one_tensor_does_not_save_its_neighbours():
    _, (ours, _) = twins(lambda: torch.nn.Linear(1000, 10))
    file = io.BytesIO()
    torch.save(ours.bias, file)
    assert len(file.getvalue()) < 4000


def test_weights_outlive_the_optimizer():
    (plain, rule), (ours, optimizer) = twins()
    backward(plain)
    backward(ours)
    rule.step()
    optimizer.step()
    optimizer.close()
    del optimizer
    assert_same(plain, ours, "own")
    backward(ours)  # no hook is left


def test_tied_and_checkpointed_parameters():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one = torch.nn.Linear(4, 4)
            self.other = torch.nn.Linear(4, 4)
            self.other.weight = self.one.weight

        def forward(self, x):
            return checkpoint(self.other, checkpoint(self.one, x, use_reentrant=False), use_reentrant=False)

    (plain, rule), (ours, optimizer) = twins(Tied, update="torch")
    for model, each in ((plain, rule), (ours, optimizer)):
        backward(model)
        each.step()
    assert_same(plain, ours)


@pytest.mark.parametrize("update", ["own", "torch"])
@pytest.mark.parametrize("rule", [torch.optim.Adam, torch.optim.SGD])
def test_a_parameter_without_gradient_stays_as_it_is(rule, update):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used = torch.nn.Linear(4, 3)
            self.unused = torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.used(x)

    (plain, one), (ours, other) = twins(Half, rule, update=update)
    for model, each in ((plain, one), (ours, other)):
        backward(model)
        each.step()
    assert_same(plain, ours, update)
    assert ours.unused.weight.grad is None


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile came with PyTorch 2.0")
@pytest.mark.parametrize("update", ["own", "torch"])
def test_a_compiled_model_learns_the_same(update):
    make = lambda: torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    (plain, rule), (ours, optimizer) = twins(make, torch.optim.Adam, 0.01, update=update)
    compiled = torch.compile(ours, backend="aot_eager")  # traces as the default does, and needs no compiler of C++
    for _ in range(5):
        for model, called, each in ((plain, plain, rule), (ours, compiled, optimizer)):
            each.zero_grad()
            called(BATCH).square().mean().backward()
            each.step()
    assert_same(plain, ours, update)


def test_checkpoints_of_torchs_update_go_on():
    _, (ours, optimizer) = twins(rule=torch.optim.Adam, update="torch")
    backward(ours)
    optimizer.step()
    state = optimizer.state_dict()
    _, (_, another) = twins(rule=torch.optim.Adam, update="torch")
    another.load_state_dict(state)
    assert another.state_dict()["state"][0]["step"] == 1
    assert another.param_groups is another.optimizer.param_groups


def test_a_child_of_a_rank_is_no_rank():
    child = os.fork()
    if child == 0:
        try:
            sy.allreduce(torch.ones(1))
        except sy.SyncopateError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_what_ranks_have_of_their_own():
    for each in run("between_ranks.py", 2):
        assert "all is as it should be" in each.out
