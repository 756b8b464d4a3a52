"""What a script for Horovod does around DistributedOptimizer: horovod_training.py PART+PART KEY=VALUE ... Each part is a job of
its own, after which each rank prints its weights."""

import copy
import os
import signal
import sys
import time

import torch

import syncopate.torch as hvd

RATE = 0.05


def made_model(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(model, rank, step):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return (model(torch.randn(4, 6, generator=generator)) - 1).square().mean()


def made_optimizer(model, rule="sgd"):
    return {
        "sgd": lambda p: torch.optim.SGD(p, lr=RATE, momentum=0.9),
        "adam": lambda p: torch.optim.Adam(p, lr=RATE),
        "rmsprop": lambda p: torch.optim.RMSprop(p, lr=RATE),
    }[rule](model.parameters())


def batches_of(rank):
    return 3 + 4 * rank


def join(rule="sgd", **options):
    """Two epochs, in which a rank has four batches more than the one before; the order of ranks turns."""
    model = made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model, rule), model.named_parameters(), **options)
    for epoch in range(2):
        place = (hvd.rank() + epoch) % hvd.size()
        for step in range(batches_of(place)):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), 100 * epoch + step).backward()
            optimizer.step()
        print("last", hvd.join())
        hvd.allreduce(torch.ones(1))  # all of them go on
    return model


def joined_while(**options):
    """What the others may not call meanwhile."""
    model = made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model), model.named_parameters(), **options)
    for step in range(2 * hvd.rank() + 1):
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        if step == 2:
            hvd.allreduce(torch.ones(1))
    hvd.join()


def resumed(rule="adam", **options):
    """Rank 0 alone has a checkpoint, and reads it after the optimizer has been wrapped."""
    before = made_model()
    its_optimizer = made_optimizer(before, rule)
    for step in range(3):
        its_optimizer.zero_grad()
        loss_of(before, 0, step).backward()
        its_optimizer.step()
    its_optimizer.param_groups[0]["lr"] = 0.03
    model = made_model(2 + hvd.rank())
    optimizer = hvd.DistributedOptimizer(made_optimizer(model, rule), model.named_parameters(), **options)
    if hvd.rank() == 0:
        model.load_state_dict(before.state_dict())
        optimizer.load_state_dict(copy.deepcopy(its_optimizer.state_dict()))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    assert all(group["lr"] == 0.03 for group in optimizer.param_groups)
    for step in range(3, 6):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        its_optimizer.zero_grad()
        (sum(loss_of(before, rank, step) for rank in range(hvd.size())) / hvd.size()).backward()
        its_optimizer.step()
    for ours, theirs in zip(model.parameters(), before.parameters()):
        assert torch.allclose(ours, theirs, atol=1e-5), (ours, theirs)
    hvd.broadcast_parameters(model.state_dict(), root_rank=1)  # in the middle, where nothing is news
    hvd.broadcast_optimizer_state(optimizer, root_rank=1)
    loss_of(model, hvd.rank(), 6).backward()
    optimizer.step()
    return model


def clipped(**options):
    """synchronize(), what is done with means, and a step() that does not."""
    model, alone = made_model(), made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model), model.named_parameters(), **options)
    theirs = made_optimizer(alone)
    hvd.broadcast_parameters(model.named_parameters(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer.set_backward_passes_per_step(2)
    for step in range(5):
        optimizer.zero_grad()
        loss_of(model, hvd.rank(), step).backward()
        loss_of(model, hvd.rank(), step + 50).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        with optimizer.skip_synchronize():
            optimizer.step()
        theirs.zero_grad()
        losses = [loss_of(alone, rank, step) + loss_of(alone, rank, step + 50) for rank in range(hvd.size())]
        (sum(losses) / hvd.size()).backward()
        torch.nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
        theirs.step()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(model.parameters(), alone.parameters()))
    return model


def summed(**options):
    """op=Sum: as many times the mean; with rates that take that back."""
    size, models = hvd.size(), []
    for op, factor in ((hvd.Average, 1), (hvd.Sum, 1 / hvd.size())):
        model = made_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE * factor)
        optimizer = hvd.DistributedOptimizer(optimizer, model.named_parameters(), op=op, **options)
        for step in range(5):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), step).backward()
            optimizer.step()
        models.append([each.detach().clone() for each in model.parameters()])
        optimizer.close()
    assert size > 1 and all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*models))
    return model


def dense(**options):
    """An embedding whose gradients are sparse."""
    models = []
    for sparse in (False, True):
        torch.manual_seed(1)
        model = torch.nn.EmbeddingBag(10, 4, sparse=sparse)
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        optimizer = hvd.DistributedOptimizer(optimizer, sparse_as_dense=sparse, **options)
        for step in range(3):
            optimizer.zero_grad()
            model(torch.tensor([[hvd.rank(), step]])).square().sum().backward()
            optimizer.step()
        models.append(model.weight.detach().clone())
        optimizer.close()
    assert torch.equal(*models)
    return model


def compressed(**options):
    """Compression.fp16 is the codec fp16."""
    models = []
    for way in ({"compression": hvd.Compression.fp16}, {"compress": "fp16"}, {}):
        model = made_model()
        optimizer = hvd.DistributedOptimizer(made_optimizer(model), model.named_parameters(), **way, **options)
        hvd.broadcast_parameters(model.state_dict(), root_rank=1)  # all have them: nobody writes, which servers do not allow
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), step).backward()
            optimizer.step()
        models.append(torch.cat([each.detach().flatten() for each in model.parameters()]))
        optimizer.close()
    assert torch.equal(models[0], models[1]) and not torch.equal(models[0], models[2])
    assert torch.allclose(models[0], models[2], atol=1e-2)
    return model


def elastic(killed=1, at=5, **options):
    """Rank `killed` is killed before that step of the second epoch. Each rank says what it does, and in which order."""
    model = made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model), model.named_parameters(), **options)
    member = hvd.rank()
    data = list(range(120))
    sampler = hvd.elastic.ElasticSampler(data, seed=3)
    state = hvd.elastic.TorchState(model, optimizer, sampler=sampler, epoch=0, batch=0)
    seen = []
    called = []

    def on_reset():
        called.append(hvd.size())
        for group in optimizer.param_groups:
            group["lr"] = RATE * hvd.size() / 3

    state.register_reset_callbacks([on_reset])

    @hvd.elastic.run
    def train(state, factor):
        assert factor == 2
        print("begins", state.epoch, hvd.size(), flush=True)
        while state.epoch < 2:
            for index in range(0, len(sampler) - len(sampler) % 4, 4):
                if (member, state.epoch, state.batch) == (killed, 1, at):
                    os.kill(os.getpid(), signal.SIGKILL)
                mine = list(sampler)[index : index + 4]
                optimizer.zero_grad()
                loss_of(model, hvd.rank(), state.epoch * 100 + state.batch).backward()
                optimizer.step()
                if state.epoch == 1:
                    seen.extend(mine)
                sampler.record_batch(index // 4, 4)
                state.batch += 1
                state.commit()
            state.epoch, state.batch = state.epoch + 1, 0
            sampler.set_epoch(state.epoch)

    train(state, factor=2)
    print("reset", called, "rate", round(optimizer.param_groups[0]["lr"], 6))
    had = hvd.allgather_object(seen)
    print("had", len({each for part in had for each in part}), sum(map(len, had)))
    return model


def restored(**options):
    """restore() returns to what commit() has kept: weights, the optimizer's memory, and values."""
    model = made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model, "adam"), model.named_parameters(), **options)
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, batch=0)

    def steps(first, last):
        for state.batch in range(first, last):
            optimizer.zero_grad()
            loss_of(model, hvd.rank(), state.batch).backward()
            optimizer.step()

    def weights():
        return torch.cat([each.detach().flatten() for each in model.parameters()])

    steps(0, 3)
    state.commit()
    kept = weights()
    steps(3, 6)
    once = weights()
    state.restore()
    assert state.batch == 2 and torch.equal(weights(), kept)
    steps(3, 6)
    assert torch.equal(weights(), once)
    return model


def left(**options):
    """Nobody calls shutdown(), and rank 0, which has the servers, is at its end long before the others are."""
    model = made_model()
    optimizer = hvd.DistributedOptimizer(made_optimizer(model), model.named_parameters(), **options)
    for step in range(3 + 20 * hvd.rank()):
        loss_of(model, hvd.rank(), step).backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.05 * hvd.rank())
    print("ends")
    sys.exit(0)


def main(parts, *options):
    torch.set_num_threads(1)
    options = dict(option.split("=") for option in options)
    timeout = float(options.pop("timeout", 30))
    options = {name: int(value) if value.isdigit() else value for name, value in options.items()}
    for part in parts.split("+"):
        hvd.init(elastic=part == "elastic", timeout=timeout)
        model = globals()[part](**options)
        bits = hash(tuple(x for p in model.parameters() for x in p.detach().flatten().tolist()))
        print(f"{part} bits {bits} sum {sum(p.detach().double().sum().item() for p in model.parameters()):.6f}", flush=True)
        hvd.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
