"""Every operation that Horovod has, against torch's own on what all ranks have: horovod_operations.py [elastic]."""

import sys

import torch

import syncopate.torch as hvd

KINDS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8)


def values(rank, shape, dtype=torch.float32):
    """What a rank has; small whole numbers, whose sums are exact in every type."""
    return torch.randint(1, 5, shape, generator=torch.Generator().manual_seed(7 * rank + 1)).to(dtype)


def reductions(size):
    for dtype in KINDS:
        for shape in ((), (5,), (3, 4, 2), (0, 3)):
            own = values(hvd.rank(), shape, dtype)
            everyone = torch.stack([values(rank, shape, dtype) for rank in range(size)])
            total = everyone.double().sum(0).to(dtype)
            exact = dtype.is_floating_point
            mean = total / size if exact else torch.div(total, size, rounding_mode="trunc")
            assert torch.equal(hvd.allreduce(own, op=hvd.Sum), total), dtype
            assert torch.allclose(hvd.allreduce(own), mean, rtol=1e-6), dtype
            assert torch.equal(hvd.allreduce(own, average=False), total)
            assert torch.equal(hvd.allreduce(own, op=hvd.Min), everyone.amin(0))
            assert torch.equal(hvd.allreduce(own, op=hvd.Max, name="most"), everyone.amax(0))
            assert torch.equal(hvd.allreduce(own, op=hvd.Product), everyone.double().prod(0).to(dtype))
            assert torch.equal(hvd.allreduce(own, op=hvd.Sum, prescale_factor=2.0, postscale_factor=3.0), 6 * total)
            assert torch.equal(hvd.allreduce(own, op=hvd.Sum, compression=hvd.Compression.fp16), total)
            into = own.clone()
            assert hvd.allreduce_(into, op=hvd.Sum) is into and torch.equal(into, total)
    turned = values(hvd.rank(), (6, 4)).t()
    assert torch.equal(hvd.allreduce(turned, op=hvd.Sum), sum(values(rank, (6, 4)).t() for rank in range(size)))
    assert torch.equal(hvd.allreduce_(turned, op=hvd.Sum), sum(values(rank, (6, 4)).t() for rank in range(size)))
    small, large = hvd.grouped_allreduce([torch.ones(2), torch.ones(3, dtype=torch.int64)], op=hvd.Sum)
    assert small.tolist() == [size] * 2 and large.tolist() == [size] * 3
    pair = [torch.ones(2), torch.ones(3)]
    assert hvd.grouped_allreduce_(pair, op=hvd.Sum)[1] is pair[1] and pair[1].tolist() == [size] * 3
    for rows in (2 * size, 2 * size + 1):
        own = values(hvd.rank(), (rows, 3))
        total = sum(values(rank, (rows, 3)) for rank in range(size))
        parts = total.tensor_split(size)
        assert torch.equal(hvd.reducescatter(own, op=hvd.Sum), parts[hvd.rank()])
        assert torch.allclose(hvd.reducescatter(own), parts[hvd.rank()] / size)
        assert torch.equal(hvd.reducescatter(own, None, hvd.Compression.fp16, hvd.Sum), parts[hvd.rank()])
        both = hvd.grouped_reducescatter([own, own.double()], op=hvd.Sum)
        assert torch.equal(both[1], parts[hvd.rank()].double())


def gathers(size):
    me = hvd.rank()
    for dtype in (*KINDS, torch.bool):
        for rows in (lambda rank: 2, lambda rank: rank, lambda rank: 3 * (rank == 0)):
            everyone = [values(rank, (rows(rank), 3), dtype) for rank in range(size)]
            assert torch.equal(hvd.allgather(everyone[me]), torch.cat(everyone)), dtype
    uneven = hvd.grouped_allgather([torch.full((me + 1,), me), torch.full((2, 2), float(me))])
    assert uneven[0].tolist() == [rank for rank in range(size) for _ in range(rank + 1)] and len(uneven[1]) == 2 * size
    for root in range(size):
        own = values(me, (4, 2), torch.int64).t()
        assert torch.equal(hvd.broadcast(own, root_rank=root), values(root, (4, 2), torch.int64).t())
        assert torch.equal(hvd.broadcast_(own, root, name="weights"), values(root, (4, 2), torch.int64).t())
        assert torch.equal(own, values(root, (4, 2), torch.int64).t())
        assert hvd.broadcast_object({"from": me, "text": "x" * (me + 3)}, root) == {"from": root, "text": "x" * (root + 3)}
    assert hvd.allgather_object(["a"] * me) == [["a"] * rank for rank in range(size)]
    # Rank i has i + 1 rows for each rank, of which each says whose they are.
    own = torch.tensor([[me, to] for to in range(size) for _ in range(me + 1)])
    expected = [[rank, me] for rank in range(size) for _ in range(rank + 1)]
    assert hvd.alltoall(own).tolist() == expected
    rows, counts = hvd.alltoall(own, splits=torch.tensor([me + 1] * size), name="rows")
    assert rows.tolist() == expected and counts.tolist() == [rank + 1 for rank in range(size)]
    one, counts = hvd.alltoall(own, [me + 1] + [0] * (size - 1))  # all for rank 0, and the rest for nobody
    assert len(one) == (size * (size + 1) // 2 if me == 0 else 0) and counts.sum() == len(one)
    dense = torch.zeros(size + 1)
    dense[me : me + 2] = torch.tensor([1.0, 2.0])
    total = hvd.synchronize(hvd.sparse_allreduce_async(dense.to_sparse(), "embedding", hvd.Sum)).to_dense()
    assert total.tolist() == [1.0] + [3.0] * (size - 1) + [2.0]
    hvd.barrier()


def handles(size):
    """Many under way at a time, waited for in another order."""
    me = hvd.rank()
    begun = []
    for number in range(20):
        begun.append((hvd.allreduce_async(torch.full((1000,), float(me + number)), op=hvd.Sum), "sum", number))
        begun.append((hvd.allreduce_async_(torch.full((10,), me + number), op=hvd.Max), "most", number))
        begun.append((hvd.broadcast_async(torch.full((10,), me * number), number % size), "root", number))
        begun.append((hvd.allgather_async(torch.full((me + 1,), number)), "all", number))
    for handle, kind, number in reversed(begun):
        result = hvd.synchronize(handle)
        assert hvd.poll(handle) and hvd.synchronize(handle) is result
        expected = {
            "sum": size * number + size * (size - 1) / 2,
            "most": size - 1 + number,
            "root": number % size * number,
            "all": number,
        }[kind]
        assert (result == expected).all() and (kind != "all" or len(result) == size * (size + 1) // 2), kind
    both = hvd.grouped_allreduce_async([torch.ones(1), torch.ones(2)], op=hvd.Sum)
    assert [each.tolist() for each in hvd.synchronize(both)] == [[size], [size] * 2]


def gradients(size):
    me = hvd.rank()
    factor = torch.arange(1.0, 4.0) * (me + 1)
    factors = sum(torch.arange(1.0, 4.0) * (rank + 1) for rank in range(size))

    def gradient_of(operation, shape=(3,), each=lambda out: factor):
        own = torch.ones(shape, requires_grad=True)
        out = operation(own)
        (out * each(out)).sum().backward()
        return own.grad

    assert torch.equal(gradient_of(lambda t: hvd.allreduce(t, op=hvd.Sum)), factors)
    assert torch.allclose(gradient_of(hvd.allreduce), factors / size)
    assert torch.allclose(gradient_of(lambda t: hvd.broadcast(t, 0)), factors / size * (me == 0))
    counts = [rank + 1 for rank in range(size)]
    place = torch.arange(float(sum(counts))) * (me + 1)
    mean = torch.arange(float(sum(counts))) * sum(counts) / size
    got = gradient_of(hvd.allgather, (me + 1,), lambda out: place)
    assert torch.allclose(got, mean.split(counts)[me])
    # What goes to rank i comes back from there, times i + 1.
    got = gradient_of(hvd.alltoall, (size, 2), lambda out: float(me + 1))
    assert got.tolist() == [[rank + 1.0] * 2 for rank in range(size)]
    got = gradient_of(lambda t: hvd.reducescatter(t, op=hvd.Sum), (size, 2), lambda out: float(me + 1))
    assert got.tolist() == [[size * (rank + 1.0)] * 2 for rank in range(size)]


def batch_norm(size):
    """Against torch's own on all ranks' batches, whose sizes differ."""
    me = hvd.rank()
    batches = [torch.randn(rank + 2, 3, 4, 4, generator=torch.Generator().manual_seed(rank)) for rank in range(size)]
    theirs, ours = torch.nn.BatchNorm2d(3), hvd.SyncBatchNorm(3)
    for step in range(2):
        whole = torch.cat(batches).requires_grad_()
        mine = batches[me].clone().requires_grad_()
        expected, got = theirs(whole), ours(mine)
        (expected.sin().sum()).backward()
        (got.sin().sum()).backward()
        counts = [len(each) for each in batches]
        assert torch.allclose(got, expected.split(counts)[me], atol=1e-5)
        assert torch.allclose(mine.grad, whole.grad.split(counts)[me], atol=1e-5)
        assert torch.allclose(ours.running_mean, theirs.running_mean, atol=1e-6)
        assert torch.allclose(ours.running_var, theirs.running_var, atol=1e-6)
    assert torch.allclose(ours.eval()(batches[me]), theirs.eval()(batches[me]), atol=1e-5)


def refused(text, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ValueError as error:
        assert text in str(error) and "\n" not in str(error), str(error)
        return
    raise AssertionError(f"not refused: {text}")


def refusals(size):
    me = hvd.rank()
    one = torch.ones(1)
    refused("op=Adasum", hvd.allreduce, one, op=hvd.Adasum)
    refused("give op alone", hvd.allreduce, one, average=True, op=hvd.Sum)
    refused("process_set=", hvd.allreduce, one, process_set=3)
    refused("new_group()", hvd.ProcessSet, [0, 1])
    refused("new_group()", hvd.add_process_set, [0])
    refused("that of all ranks stays", hvd.remove_process_set, hvd.global_process_set)
    refused(f"0 to {size - 1}", hvd.broadcast, one, size)
    refused("splits", hvd.alltoall, one, [2] * size)
    refused("without dimensions", hvd.reducescatter, torch.tensor(1.0))
    refused("of 0 dimensions", hvd.allgather, torch.tensor(1.0))
    if size > 1:
        refused("alike but for the first", hvd.allgather, torch.ones(2, 2 + (me == size - 1)))
        refused("alike but for the first", hvd.allgather, torch.ones(2, dtype=torch.int64 if me else torch.int32))
    refused("must be dense", hvd.broadcast, one.to_sparse(), 0)
    refused("leave it out", hvd.join, device=0)
    refused("0 DistributedOptimizers", hvd.join)
    refused("run_experiment --trace", hvd.start_timeline, "file")
    assert hvd.allreduce(one, op=hvd.Sum).item() == size  # all go on


def main(*options):
    torch.set_num_threads(1)
    hvd.init(elastic="elastic" in options)
    size = hvd.size()
    assert (hvd.local_size(), hvd.cross_size(), hvd.cross_rank()) == (size, 1, 0) and hvd.is_homogeneous()
    assert not (hvd.mpi_built() or hvd.nccl_built() or hvd.gloo_enabled() or hvd.mpi_threads_supported())
    assert hvd.global_process_set.size() == size and hvd.global_process_set.included()
    for check in (reductions, gathers, handles, gradients, batch_norm, refusals):
        check(size)
        print(check.__name__, flush=True)
    hvd.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
