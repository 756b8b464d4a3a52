"""What needs two ranks: broadcasts, gradients that only one of them has, and models that differ."""

import numpy as np
import torch

import syncopate.torch as sy


def model_of(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))


def same_everywhere(tensor):
    return torch.equal(sy.allreduce(tensor, "sum"), 2 * tensor)


def sums(rank):
    own = torch.arange(700_000.0) * (rank + 1)  # more than goes through at once
    assert torch.equal(sy.allreduce(own, "sum"), torch.arange(700_000.0) * 3)
    assert torch.equal(sy.allreduce(own), torch.arange(700_000.0) * 1.5)
    assert torch.equal(own, torch.arange(700_000.0) * (rank + 1))
    assert sy.allreduce(torch.tensor(1.0 + rank), "sum").shape == ()
    assert sy.allreduce(torch.ones(3, 4).t(), "sum").shape == (4, 3)
    array = sy.allreduce(np.full((2, 2), rank, dtype=np.float32), "sum")
    assert isinstance(array, np.ndarray) and (array == 1).all()
    assert sy.allreduce(torch.empty(0)).numel() == 0


def broadcasts(rank):
    model = model_of(rank)
    model(torch.randn(3, 4)).sum().backward()
    model[1].running_mean.fill_(float(rank))
    model[1].num_batches_tracked.fill_(5 + rank)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1 * (1 + rank))
    if rank == 1:
        optimizer.step()
    assert not same_everywhere(model[0].weight.detach())
    sy.broadcast_parameters(model, root_rank=1)
    sy.broadcast_buffers(model, root_rank=1)
    sy.broadcast_optimizer_state(optimizer, root_rank=1)
    assert same_everywhere(model[0].weight.detach())
    assert torch.equal(model[1].running_mean, torch.ones(4))
    assert int(model[1].num_batches_tracked) == 6
    assert optimizer.param_groups[0]["lr"] == 0.2
    assert same_everywhere(optimizer.state[model[0].weight]["exp_avg"])


def a_gradient_of_one_rank(rank):
    class Chosen(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(torch.nn.Linear(4, 1) for _ in range(3))

        def forward(self, x):
            return self.parts[rank](x)

    torch.manual_seed(1)
    model = Chosen()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), update="torch")
    model(torch.ones(1, 4)).sum().backward()
    optimizer.synchronize()
    for part in model.parts[:2]:
        assert torch.equal(part.weight.grad, torch.full((1, 4), 0.5))
    assert model.parts[2].weight.grad is None
    optimizer.step()
    optimizer.close()


def models_that_differ(rank):
    for options in ({}, {"update": "torch"}):
        model = torch.nn.Linear(4, 3 + rank)
        try:
            sy.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=1), model.named_parameters(), **options)
        except ValueError as error:
            assert "layout" in str(error) or "differ" in str(error), error
        else:
            raise AssertionError("was not refused")
    try:
        sy.broadcast_parameters(torch.nn.Linear(4, 3 + rank))
    except ValueError as error:
        assert "rank 1" in str(error), error
    else:
        raise AssertionError("was not refused")


def main():
    torch.set_num_threads(1)
    sy.init()
    for check in (sums, broadcasts, a_gradient_of_one_rank, models_that_differ):
        check(sy.rank())
    assert (sy.size(), sy.local_rank()) == (2, sy.rank())
    sy.shutdown()
    print("all is as it should be")


if __name__ == "__main__":
    main()
