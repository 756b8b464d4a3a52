"""What the backend has gloo do, beside a group of gloo's own: the same bits, and counted apart."""

import torch
import torch.distributed as dist

import syncopate.torch as sy

TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool)


def same(operation, *arguments):
    ours, gloos = (operation(group, *arguments) for group in (None, GLOO))
    for one, other in zip(ours, gloos):
        assert one.dtype == other.dtype and torch.equal(one, other), (operation.__name__, arguments, one, other)


def values(dtype, count=12, rank=None):
    """Of a rank; fractions that any order of sums keeps."""
    rank = dist.get_rank() if rank is None else rank
    numbers = (torch.arange(count) + 1) % 5 + rank
    return numbers % 2 == 0 if dtype is torch.bool else numbers.to(dtype)


def reduced(group, dtype, op):
    every, at_root = values(dtype), values(dtype)
    dist.all_reduce(every, op, group=group)
    dist.reduce(at_root, 1, op, group=group)
    return [every, at_root] if dist.get_rank() == 1 else [every]


def moved(group, dtype):
    rank, size = dist.get_rank(), dist.get_world_size()
    is_root = rank == 1
    gathered = [torch.empty(12, dtype=dtype) for _ in range(size)] if is_root else None
    dist.gather(values(dtype), gathered, dst=1, group=group)
    taken = torch.empty(12, dtype=dtype)
    dist.scatter(taken, [values(dtype, rank=each) for each in range(size)] if is_root else None, src=1, group=group)
    swapped = torch.empty(12, dtype=dtype)
    if dtype is not torch.bool:  # of which gloo exchanges none
        dist.all_to_all_single(swapped, values(dtype), group=group)
    return [taken, *(gathered or []), *([] if dtype is torch.bool else [swapped])]


def ring(group, dtype, tag=0):
    """Each sends to the next, by every way that there is."""
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    places = [torch.zeros(12, dtype=dtype) for _ in range(3)]
    receiving = dist.irecv(places[0], before, group=group, tag=tag)
    sending = dist.isend(values(dtype), after, group=group, tag=tag)
    receiving.wait()
    sending.wait()
    operations = [
        dist.P2POp(dist.isend, values(dtype) * 2 if dtype is not torch.bool else values(dtype), after, group),
        dist.P2POp(dist.irecv, places[1], before, group),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    if rank == 0:
        dist.send(values(dtype), after, group=group)
        dist.recv(places[2], before, group=group)
    else:
        dist.recv(places[2], before, group=group)
        dist.send(values(dtype), after, group=group)
    return places


def any_source(group):
    if dist.get_rank() != 0:
        dist.send(torch.full((3,), dist.get_rank()), 0, group=group)
        return []
    places = {}
    for _ in range(dist.get_world_size() - 1):
        place = torch.zeros(3, dtype=torch.int64)
        places[dist.recv(place, group=group)] = place
    return [places[rank] for rank in sorted(places)]


def sparse(group):
    tensor = torch.sparse_coo_tensor([[0, 3 + dist.get_rank()]], [1.0, 2.0], (8,), check_invariants=False)
    work = dist.all_reduce(tensor, group=group, async_op=True)
    work.wait()
    return [work.get_future().wait()[0].to_dense(), work.result()[0].to_dense(), tensor.to_dense()]


def strided(group):
    """Tensors that are not contiguous, of types and operations that gloo has: gloo itself would refuse them, or not see it."""
    image = torch.arange(2.0 * 3 * 4 * 4).view(2, 3, 4, 4).double().contiguous(memory_format=torch.channels_last)
    columns = torch.arange(12).view(3, 4)[:, 1:3]
    if group is None:
        dist.all_reduce(image)
        dist.all_reduce(columns, dist.ReduceOp.MAX)
        return [image, columns]
    flat = [image.contiguous(), columns.contiguous()]
    dist.all_reduce(flat[0], group=group)
    dist.all_reduce(flat[1], dist.ReduceOp.MAX, group=group)
    return flat


def objects(group):
    rank, size = dist.get_rank(), dist.get_world_size()
    own = {"rank": rank, "text": "x" * (10 * rank)}
    everybody, scattered, passed = [None] * size, [None], [None]
    gathered = [None] * size if rank == 0 else None
    dist.all_gather_object(everybody, own, group=group)
    dist.gather_object(own, gathered, group=group)
    dist.scatter_object_list(scattered, [own] * size if rank == 0 else None, group=group)
    if rank == 0:
        dist.send_object_list([own], 1, group=group)
    if rank == 1:
        dist.recv_object_list(passed, 0, group=group)
        assert passed == [{"rank": 0, "text": ""}]
    assert [each["rank"] for each in everybody] == list(range(size)) and scattered[0]["rank"] == 0
    assert gathered is None or [each["rank"] for each in gathered] == list(range(size))
    return []


def out_of_order():
    """What two ranks exchange is done in any order, is known to be done without a wait, and lives without a handle."""
    rank = dist.get_rank()
    places = [torch.zeros(4) for _ in range(2)]
    if rank == 0:
        works = [dist.irecv(place, 1, tag=tag) for tag, place in enumerate(places)]
        followed = works[1].get_future().then(lambda future: future.value()[0] * 2)
        assert followed.wait().eq(20).all() and not works[0].is_completed()
        dist.barrier()
        works[0].wait()
        assert works[0].is_completed() and places[0].eq(5).all()
    else:
        if rank == 1:
            dist.isend(torch.full((4,), 10.0), 0, tag=1)
        dist.barrier()
        if rank == 1:
            dist.isend(torch.full((4,), 5.0), 0, tag=0)
    dist.barrier()


def coalesced_gather(group):
    own = [values(torch.float32), values(torch.float32)[:5].clone()]  # gloo wants one type
    outputs = [[torch.empty_like(each) for each in own] for _ in range(dist.get_world_size())]
    dist.all_gather_coalesced(outputs, own, group=group)
    return [each for of_rank in outputs for each in of_rank]


def split():
    """Of a group: those that are named, in their order; the others have none."""
    size = dist.get_world_size()
    ranks = list(range(size))[1:]
    part = dist.split_group(split_ranks=[ranks])
    if dist.get_rank() == 0:
        assert part == dist.GroupMember.NON_GROUP_MEMBER
        return
    assert dist.get_backend(part) == "syncopate" and dist.get_process_group_ranks(part) == ranks
    ours, gloos = torch.ones(3) * dist.get_rank(), torch.ones(3).double()
    dist.all_reduce(ours, group=part)
    dist.all_reduce(gloos, group=part)
    assert ours.eq(sum(ranks)).all() and gloos.eq(len(ranks)).all()
    dist.destroy_process_group(part)


def refused(part, call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ValueError as error:
        assert part in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(part)


def refusals():
    """By name, before anything is sent; the group stays as it is."""
    refused("SUM of torch.int16: the backend 'syncopate' has reductions of float32,", dist.all_reduce, torch.ones(2).short())
    refused("BAND of torch.float64: the backend 'syncopate' has SUM,", dist.all_reduce, torch.ones(2).double(), dist.ReduceOp.BAND)
    refused("AVG of torch.int64", dist.reduce, torch.ones(2).long(), 0, dist.ReduceOp.AVG)
    rank, size = dist.get_rank(), dist.get_world_size()
    outputs = [torch.ones(3 if (rank, giver) == (0, 1) else 2) for giver in range(size)]
    told = "rank 1 has 2 elements for rank 0, which has room for 3"  # to all, also those whose own sizes are right
    refused(told, dist.all_to_all, outputs, [torch.ones(2) for _ in range(size)])
    dist.all_reduce(torch.ones(2).double())


def counted():
    """By operation; what is ours is not there."""
    before = sy.gloo_figures()
    dist.all_reduce(torch.ones(10))
    dist.broadcast(torch.ones(10, dtype=torch.int64), 0)
    dist.all_gather_into_tensor(torch.empty(10 * dist.get_world_size()), torch.ones(10))
    dist.reduce_scatter_tensor(torch.empty(10), torch.ones(10 * dist.get_world_size()))
    dist.barrier()
    assert sy.gloo_figures() == before
    dist.all_reduce(torch.ones(10, dtype=torch.float64))
    dist.all_reduce(torch.ones(5), dist.ReduceOp.MAX)
    after = sy.gloo_figures()
    assert after["calls"]["all_reduce"] - before["calls"]["all_reduce"] == 2
    assert after["bytes"] - before["bytes"] == 10 * 8 + 5 * 4 and after["waited"] > before["waited"]


def main():
    global GLOO
    torch.set_num_threads(1)
    dist.init_process_group("syncopate")
    GLOO = dist.new_group(backend="gloo")
    assert sy.gloo_figures()["calls"] == {}
    for dtype in TYPES:
        for op in ("SUM", "MAX", "MIN", "PRODUCT"):
            if dtype is not torch.bool or op == "SUM":
                same(reduced, dtype, getattr(dist.ReduceOp, op))
        same(moved, dtype)
        same(ring, dtype)
    same(ring, torch.float32, 7)
    for operation in (any_source, sparse, strided, objects, coalesced_gather):
        same(operation)
    out_of_order()
    if hasattr(dist, "split_group") and hasattr(dist.ProcessGroup, "split_group"):
        split()
    refusals()
    counted()
    dist.destroy_process_group()
    print("all is as over gloo")


if __name__ == "__main__":
    main()
