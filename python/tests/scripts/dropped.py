"""Work whose handle nobody keeps: dropped.py COUNT. What was begun is ended, and nothing else is written to."""

import sys
import threading

import torch
import torch.distributed as dist

import syncopate.torch as sy

ELEMENTS = 5000


def begin(number, kept):
    """Begins an operation on tensors that only it has, or of which `kept` gets the one that receives, and what it comes to."""
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = lambda dtype=torch.float32: torch.full((ELEMENTS,), rank + 1, dtype=dtype)
    others = lambda: [torch.empty(ELEMENTS) for _ in range(size)]
    total = size * (size + 1) // 2
    kind = number % 10
    if kind == 0:
        dist.all_reduce(mine(), async_op=True)
    elif kind == 1:
        kept.append((mine(torch.int64), total))
        dist.all_reduce(kept[-1][0], async_op=True)
    elif kind == 2:
        kept.append((mine(), total))
        dist.all_reduce(kept[-1][0], async_op=True)
    elif kind == 3:
        kept.append((mine(), 2))
        dist.broadcast(kept[-1][0], 1, async_op=True)
    elif kind == 4:
        received = others()
        kept.append((received[1], 2))
        dist.all_gather(received, mine(), async_op=True)
    elif kind == 5:
        dist.all_reduce_coalesced([mine(), mine()], async_op=True)
    elif kind == 6:
        dist.reduce_scatter(torch.empty(ELEMENTS), [mine() for _ in range(size)], async_op=True)
    elif kind == 7:
        dist.all_reduce(torch.ones(ELEMENTS, 2)[:, 0], async_op=True)  # its memory is a copy
    elif kind == 8:
        dist.gather(mine(), others() if rank == 0 else None, async_op=True)
    else:
        dist.barrier(async_op=True)


def main(count):
    torch.set_num_threads(1)
    dist.init_process_group("syncopate")
    sy.init()
    kept, changed = [], 0
    for number in range(int(count)):
        begin(number, kept)
        zeros = [torch.zeros(ELEMENTS) for _ in range(8)]
        if number % 50 == 49:
            dist.barrier()
        changed += sum(int(each.any()) for each in zeros)
    mean = sy.allreduce(torch.full((ELEMENTS,), float(dist.get_rank())))
    futures = [dist.all_reduce(torch.ones(ELEMENTS), async_op=True).get_future() for _ in range(20)]
    assert all(future.wait()[0].eq(dist.get_world_size()).all() for future in futures)
    dist.barrier()
    assert mean.eq((dist.get_world_size() - 1) / 2).all()
    for tensor, value in kept:
        assert tensor.eq(value).all(), (tensor, value)
    dist.all_reduce(torch.ones(ELEMENTS), async_op=True)
    sy.shutdown()
    dist.destroy_process_group()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("syncopate")]
    print(f"changed: {changed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
