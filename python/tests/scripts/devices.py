"""Training on the device in software, beside the same on the CPU; and in 16 bits on both: devices.py FILE."""

import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import software_device
import syncopate.torch as sy
from syncopate.torch._figures import nccls
from syncopate.torch._process_group import SyncopateGroup
from syncopate.torch._sums import Sums

STEPS = 6
RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, eps=1e-4),  # 1e-8 is no number of 16 bits
}


def model_on(device, dtype):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 5)).to(device, dtype)


def batches(device, dtype):
    torch.manual_seed(7)
    for _ in range(STEPS):
        x = torch.randn(sy.size(), 8, 12)[sy.rank()]
        yield x.to(device, dtype), torch.randint(0, 5, (sy.size(), 8))[sy.rank()].to(device)


def values_of(model):
    return [p.detach().cpu().float() for p in model.parameters()]


def train(device, dtype, rule, clips=False, **options):
    model = model_on(device, dtype)
    optimizer = sy.DistributedOptimizer(RULES[rule](model.parameters()), model.named_parameters(), bucket_mb=0.002, **options)
    for x, y in batches(device, dtype):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        if clips:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
    for parameter in model.parameters():
        assert parameter.device.type == torch.device(device).type and parameter.dtype is dtype
    optimizer.close()
    return values_of(model)


def by_hook(device, dtype):
    model = model_on(device, dtype)
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.002, process_group=dist.new_group(backend="syncopate"))
    ddp.register_comm_hook(sy.HookState(), sy.allreduce_hook)
    optimizer = RULES["adam"](model.parameters())
    for x, y in batches(device, dtype):
        optimizer.zero_grad()
        cross_entropy(ddp(x), y).backward()
        optimizer.step()
    return values_of(model)


def assert_same(ours, others, what, dtype=torch.float32):
    """To the last bit in float32. In 16 bits torch itself may round otherwise on a device."""
    assert len(ours) == len(others) > 0, what
    allowed = 0.0 if dtype is torch.float32 else 2 * torch.finfo(dtype).eps
    for one, other in zip(ours, others):
        assert (one - other).abs().max() <= allowed, (what, (one - other).abs().max())


def gradients_are_means_in_float32(device, dtype):
    model = model_on(device, dtype)
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters())
    x, y = next(batches(device, dtype))
    own = torch.autograd.grad(cross_entropy(model(x), y), list(model.parameters()))
    cross_entropy(model(x), y).backward()
    for parameter, gradient in zip(model.parameters(), own):
        every = sy.allgather(gradient.float().cpu().unsqueeze(0))
        assert parameter.grad.dtype is dtype
        assert torch.equal(parameter.grad.cpu(), every.mean(0).to(dtype)), dtype
    optimizer.step()
    optimizer.close()


def ends_and_begins_again_from_servers(device):
    """What servers remember is read while weights are on the device, and goes on there."""
    model = model_on(device, torch.float32)
    optimizer = sy.DistributedOptimizer(RULES["adam"](model.parameters()), model.named_parameters(), mode="ps")
    for number, (x, y) in enumerate(batches(device, torch.float32)):
        if number == STEPS // 2:
            optimizer.load_state_dict(optimizer.state_dict())
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.close()
    return values_of(model)


def written_gradients_are_refused(device):
    model = model_on(device, torch.float32)
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters(), mode="ps")
    x, y = next(batches(device, torch.float32))
    cross_entropy(model(x), y).backward()
    kept = model[0].weight.grad.clone()
    software_device.synchronize()  # its copies may be under way
    model[0].weight.grad.mul_(2)
    refused("was changed between backward() and step()", optimizer.step)
    model[0].weight.grad = kept  # another tensor, which is not what went
    refused("was changed between backward() and step()", optimizer.step)


class OverDevices(nn.Module):
    """Branches on several devices, whose backwards autograd runs at once, on a thread each."""

    def __init__(self, devices):
        super().__init__()
        torch.manual_seed(1)
        self.devices = devices
        self.branches = nn.ModuleList(nn.Sequential(*[nn.Linear(8, 8) for _ in range(6)]).to(each) for each in devices)

    def forward(self, x):
        return sum(branch(x.to(device)).sum().to("cpu") for branch, device in zip(self.branches, self.devices))


def train_over(devices, **options):
    model = OverDevices(devices)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), bucket_mb=0.001, **options)
    torch.manual_seed(5 + sy.rank())
    for number in range(12):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).backward()
        optimizer.step()
        assert optimizer._exchange.step == number + 1
    optimizer.close()
    return values_of(model)


def scaled_gradients_are_refused_where_they_have_gone(device):
    model = model_on(device, torch.float32)
    optimizer = sy.DistributedOptimizer(RULES["sgd"](model.parameters()), model.named_parameters(), mode="ps")
    scaler = torch.amp.GradScaler(device, init_scale=1024.0)
    x, y = next(batches(device, torch.float32))
    scaler.scale(cross_entropy(model(x), y)).backward()
    software_device.synchronize()
    refused("was changed between backward() and step()", lambda: scaler.step(optimizer))


def written_weights_count_where_ranks_have_their_own(device):
    """Under local-sgd."""
    model = model_on(device, torch.float32)
    optimizer = RULES["sgd"](model.parameters())
    optimizer = sy.DistributedOptimizer(optimizer, model.named_parameters(), mode="ps", consistency="local-sgd:8")
    for number, (x, y) in enumerate(batches(device, torch.float32)):
        if number == 2:
            with torch.no_grad():
                model[0].weight.fill_(0.25)
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    optimizer.close()
    return values_of(model)


def refused(part, call):
    try:
        call()
    except RuntimeError as error:
        assert part in str(error), error
    else:
        raise AssertionError(part)


class ByGloo:
    """In place of NCCL's group."""

    def __init__(self, group):
        self.group, self.calls, self.was_aborted = group, 0, False

    def allreduce_coalesced(self, tensors, options):
        assert options.reduceOp == dist.ReduceOp.AVG
        self.calls += 1
        for tensor in tensors:
            total = tensor.cpu()
            dist.all_reduce(total, group=self.group)
            tensor.copy_(total / sy.size())
        return self

    def wait(self):
        pass

    def abort(self):
        self.was_aborted = True


def sums_where_they_lie(device, gloo):
    group, original = ByGloo(gloo), Sums._group_of_gpus
    Sums._group_of_gpus = lambda self: group
    try:
        weights = {rule: train(device, torch.float32, rule) for rule in RULES}
        assert group.calls >= 2 * STEPS * len(RULES), group.calls
        model = model_on(device, torch.float32)
        unused = nn.Linear(2, 2).to(device)
        parameters = [*model.named_parameters(), *unused.named_parameters("unused")]
        optimizer = sy.DistributedOptimizer(torch.optim.SGD([p for _, p in parameters], lr=0.1), parameters)
        for number, (x, y) in enumerate(batches(device, torch.float32)):
            if number == 3 + sy.rank():
                break
            optimizer.zero_grad()
            loss = cross_entropy(model(x), y)
            if number == 0 and sy.rank() == 1:
                loss = loss + unused(x[:, :2]).sum()
            loss.backward()
            assert (unused.weight.grad is None) == (number > 0), number
            optimizer.step()
        assert sy.join() == 1, "rank 1 has had a batch more"
        optimizer.param_groups[0]["lr"] = 0.1 + sy.rank()
        optimizer.zero_grad()
        try:
            cross_entropy(model(x), y).backward()
        except ValueError as error:
            assert "lr: 0.1 on rank 0, 1.1 on rank 1" in str(error), error
        else:
            raise AssertionError("rates differ")
        return weights
    finally:
        Sums._group_of_gpus = original


class Asked:
    """In place of a NCCL group beside one of the backend."""

    def __init__(self):
        self.by = []

    def __getattr__(self, name):
        return lambda *arguments: self.by.append((name, arguments[0]))


def the_backend_leaves_devices_to_nccl(device):
    group, asked, original = dist.new_group(backend="syncopate"), Asked(), SyncopateGroup.nccl
    SyncopateGroup.nccl = lambda self, of, is_of_all: asked if of.type == device else original(self, of, is_of_all)
    try:
        there, here = torch.ones(2, device=device), torch.ones(2)
        group.allreduce([there], dist.AllreduceOptions())
        group._allgather_base(torch.empty(4, device=device), there)
        dist.all_reduce(here, group=group)
        dist.barrier(group=group)
    finally:
        SyncopateGroup.nccl = original
    assert [name for name, _ in asked.by] == ["allreduce", "_allgather_base"] and asked.by[0][1] == [there], asked.by
    assert here.tolist() == [2.0, 2.0], "the CPU's are ours"
    assert nccls.calls["allgather_base"] == 1 and nccls.bytes >= 8


def main():
    torch.set_num_threads(1)
    device = software_device.register().NAME
    dist.init_process_group("gloo")
    gloo = dist.new_group()
    sy.init()
    for rule in RULES:
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for options in ({"mode": "allreduce", "update": "torch"}, {"mode": "ps"}, {"mode": "ps", "push": "step", "clips": True}):
                ours = train(device, dtype, rule, **options)
                assert_same(ours, train("cpu", dtype, rule, **options), (rule, dtype, options), dtype)
    for dtype in (torch.bfloat16, torch.float16):
        for place in ("cpu", device):
            gradients_are_means_in_float32(place, dtype)
    for dtype in (torch.float32, torch.bfloat16):
        assert_same(by_hook(device, dtype), by_hook("cpu", dtype), ("hook", dtype), dtype)
    assert_same(ends_and_begins_again_from_servers(device), ends_and_begins_again_from_servers("cpu"), "state")
    for each in (sy.allreduce, sy.allgather, lambda t: sy.broadcast(t, 1), sy.alltoall):
        values = torch.arange(4.0).view(2, 2) + sy.rank()
        there = each(values.to(device))
        assert there.device.type == device and torch.equal(there.cpu(), each(values)), each
    whole = train("cpu", torch.float32, "adam", update="torch")
    assert_same(sums_where_they_lie(device, gloo)["adam"], whole, "where they lie")
    places = ["cpu", f"{device}:0", f"{device}:1"]
    sys.setswitchinterval(1e-5)
    for options in ({"update": "torch"}, {"mode": "ps"}):
        assert_same(train_over(places, **options), train_over(["cpu"] * 3, **options), ("several devices", options))
    sys.setswitchinterval(5e-3)
    ours, others = (written_weights_count_where_ranks_have_their_own(each) for each in (device, "cpu"))
    assert_same(ours, others, "written weights")
    the_backend_leaves_devices_to_nccl(device)
    scaled_gradients_are_refused_where_they_have_gone(device)
    written_gradients_are_refused(device)
    print("all is as on the CPU", flush=True)
    dist.barrier()  # so that none is gone while another is told what differs


if __name__ == "__main__":
    main()
