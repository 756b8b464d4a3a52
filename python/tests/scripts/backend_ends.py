"""How waits for the backend end: backend_ends.py HOW SECONDS. Prints what is raised on rank 0, for each kind of wait.

HOW  abort, timeout, set (a timeout that is set later), shorter (of the wait alone: the work goes on), kill
"""

import os
import signal
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

LATER = 60.0
PRINTING = threading.Lock()

# One of our operations and three of gloo's, as rank 0 begins them, and as the others answer.
WAITS = {
    "all_reduce": (
        lambda group: dist.all_reduce(torch.ones(3), group=group, async_op=True),
        lambda group: dist.all_reduce(torch.ones(3), group=group, async_op=True),
    ),
    "all_reduce of doubles": (
        lambda group: dist.all_reduce(torch.ones(3).double(), group=group, async_op=True),
        lambda group: dist.all_reduce(torch.ones(3).double(), group=group, async_op=True),
    ),
    "recv": (
        lambda group: dist.irecv(torch.ones(3), 1, group=group),
        lambda group: dist.isend(torch.ones(3), 0, group=group),
    ),
    "gather": (
        lambda group: dist.gather(torch.ones(3), [torch.ones(3), torch.ones(3)], group=group, async_op=True),
        lambda group: dist.gather(torch.ones(3), group=group, async_op=True),
    ),
}


def told(what, call):
    begin, raised = time.monotonic(), "nothing was raised"
    try:
        call()
    except Exception as error:
        raised = f"{type(error).__name__} after {time.monotonic() - begin:.1f} s: {error}"
    with PRINTING:
        print(f"{what}: {raised}", flush=True)


def at_once(groups, call):
    """call(what, group) for each, in a thread of its own."""
    threads = [threading.Thread(target=call, args=each) for each in groups.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def of_rank_0(how, groups, store):
    works = {what: WAITS[what][0](group) for what, group in groups.items()}

    def end(what, group):
        if how == "abort":
            aborting = threading.Timer(0.3, told, (f"{what}'s abort", group.abort))
            aborting.start()
            told(what, works[what].wait)
            aborting.join(LATER / 4)
        elif how == "shorter":
            told(what, lambda: works[what].wait(timedelta(seconds=0.3)))
        else:
            told(what, works[what].wait)

    if how == "kill":
        store.set("waiting", "1")
    at_once(groups, end)
    if how == "shorter":
        store.set("late", "1")
        for what, work in works.items():
            told(f"{what} in the end", work.wait)


def of_others(how, groups, store):
    if how == "kill":
        store.wait(["waiting"], timedelta(seconds=LATER))
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "shorter":
        store.wait(["late"], timedelta(seconds=LATER))
        for what, group in groups.items():
            told(f"{what} in the end", WAITS[what][1](group).wait)


def main(how, seconds):
    torch.set_num_threads(1)
    dist.init_process_group("syncopate", timeout=timedelta(seconds=LATER))
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = {what: dist.new_group(timeout=timedelta(seconds=float(seconds))) for what in WAITS}
    if how == "set":
        set_timeout = getattr(dist, "set_timeout", dist.distributed_c10d._set_pg_timeout)  # its name before torch 2.9
        for group in groups.values():
            set_timeout(timedelta(seconds=2), group)
    store = dist.PrefixStore("ends", dist.distributed_c10d._get_default_store())
    (of_others if rank else of_rank_0)(how, groups, store)
    if how != "kill":  # rank 0 has the store
        store.set(f"ended {rank}", "1")
        store.wait([f"ended {each}" for each in range(size)], timedelta(seconds=LATER))
        store.set(f"gone {rank}", "1")
        if rank == 0:
            store.wait([f"gone {each}" for each in range(size)], timedelta(seconds=LATER))
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
