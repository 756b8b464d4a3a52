"""What cannot work is refused in one line that says what would be right. In this process, a job of its own."""

import pytest
import torch

import syncopate.torch as sy


@pytest.fixture(autouse=True)
def job():
    sy.init()
    yield
    sy.shutdown()


def linear():
    return torch.nn.Linear(4, 3)


def refused(part, call, *arguments, kind=ValueError, **options):
    with pytest.raises(kind) as raised:
        call(*arguments, **options)
    text = str(raised.value)
    assert part in text and "\n" not in text, text


def wrap(model, rule=torch.optim.SGD, rule_options=None, **options):
    optimizer = rule(model.parameters(), **(rule_options or {"lr": 0.1}))
    return sy.DistributedOptimizer(optimizer, model.named_parameters(), **options)


def test_types_and_places_of_tensors():
    refused("torch.bfloat16 or torch.float16; use .float()", wrap, linear().double())
    refused("is of torch.bfloat16 on cpu", wrap, linear().to(torch.bfloat16), update="own")
    refused("and has no values", wrap, torch.nn.Linear(2, 2, device="meta"))
    refused("use .to_dense()", sy.allreduce, torch.ones(2, 2).to_sparse())
    refused("and has no values", sy.allreduce, torch.ones(2, device="meta"))


def test_sparse_gradients():
    embedding = torch.nn.Embedding(10, 4, sparse=True)
    optimizer = wrap(embedding, update="torch")
    refused("use sparse=False", embedding(torch.tensor([1, 2])).sum().backward)
    optimizer.close()


def test_optimizers():
    model = linear()
    refused("Adam", wrap, model, torch.optim.LBFGS)
    refused("RAdam, LARS and LAMB, and not of NAdam", wrap, model, torch.optim.NAdam)
    groups = [{"params": [model.weight]}, {"params": [model.bias], "momentum": 0.9}]
    grouped = torch.optim.SGD(groups, lr=0.1, momentum=0.5)
    refused("may differ in lr and weight_decay", sy.DistributedOptimizer, grouped, model.named_parameters(), mode="ps")
    refused("no torch.optim.Optimizer", sy.DistributedOptimizer, model)
    refused("not in named_parameters", sy.DistributedOptimizer, torch.optim.SGD(model.parameters(), lr=1), [])
    stepped = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 4)).sum().backward()
    stepped.step()
    stepped.state[model.weight]["step"] += 1
    refused("count one number for all", sy.DistributedOptimizer, stepped, model.named_parameters(), mode="ps")


def test_options():
    model = linear()
    refused("'allreduce' or 'ps'", wrap, model, mode="gossip")
    refused("'own' or 'torch'", wrap, model, update="mine")
    refused("get weights then", wrap, model, mode="ps", update="torch", consistency="easgd:4")
    refused("is for mode='ps'", wrap, model, consistency="async")
    refused("is for mode='ps'", wrap, model, push="step")
    refused("leave it out, or use mode='ps'", wrap, model, mode="allreduce", servers=2)
    refused("'backward' or 'step'", wrap, model, mode="ps", push="later")
    refused("bounded:k", wrap, model, mode="ps", consistency="bounded")
    refused("at least 1", wrap, model, mode="ps", servers=0)
    refused("1 to 1024", wrap, model, mode="ps", servers=1025)
    refused("powersgd:K", wrap, model, compress="zip")
    refused("use mode='allreduce'", wrap, model, mode="ps", compress="powersgd:2")
    refused("at least 1", wrap, model, backward_passes_per_step=0)
    refused("above 0", wrap, model, bucket_mb=0)
    refused("'mean' or 'sum'", sy.allreduce, torch.ones(1), "max")
    refused("0 to 0", sy.broadcast_parameters, model, root_rank=1)
    refused("once a process", sy.init, kind=sy.SyncopateError)


def test_what_needs_a_job():
    sy.shutdown()
    refused("call syncopate.torch.init(), or syncopate.numpy.init(), first", sy.rank, kind=sy.SyncopateError)
    refused("'shm' or 'sockets'", sy.init, wire="pigeons")
    refused("seconds above 0", sy.init, timeout=0)
    sy.init()


def test_means_where_servers_have_none():
    refused("use mode='allreduce'", wrap(linear(), mode="ps").synchronize)


def test_an_update_that_ranks_share():
    refused("is for mode='allreduce'", wrap, linear(), update="sharded", mode="ps")
    refused("takes norms of whole tensors", wrap, linear(), sy.LAMB, update="sharded")
    refused("codes sums that every rank gets", wrap, linear(), update="sharded", compress="int8")
    refused("leave op out", wrap, linear(), update="sharded", op=sy.Sum)
    refused("use 'stop'", wrap, linear(), update="sharded", on_nan="skip")
    refused("'own' or 'torch' or 'sharded'", wrap, linear(), update="other")
    refused("not of NAdam", wrap, linear(), torch.optim.NAdam, update="sharded")
