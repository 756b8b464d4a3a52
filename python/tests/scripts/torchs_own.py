"""torch's own tests of a backend, as far as this one does what they ask for: torchs_own.py NAME...; all ranks run them one
after the other, over one group. Prints a line for each: ok, or skipped, and why. A failure ends it."""

import os
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist


def main(names):
    os.environ.setdefault("BACKEND", "syncopate")
    os.environ.update(TEMP_DIR=os.environ.get("TEMP_DIR") or tempfile.mkdtemp())
    for folder in ("barrier", "test_dir"):
        os.makedirs(os.path.join(os.environ["TEMP_DIR"], folder), exist_ok=True)
    from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

    class Tests(TestDistBackend, DistributedTest._DistTestBase):
        pass

    torch.set_num_threads(1)
    dist.init_process_group(os.environ.get("GROUP", "syncopate"))
    for name in names:
        # Tests of groups of two ranks run among eight, or more; others compute with the number.
        os.environ["WORLD_SIZE"] = "8" if "_group" in name else str(dist.get_world_size())
        test = Tests(name)
        test.rank = dist.get_rank()
        torch.manual_seed(1)  # alike on all ranks, as their setUp() has it
        print(f"{name}: ", end="", flush=True)
        try:
            getattr(test, name)()  # of a rank, it starts no processes
            print("ok", flush=True)
        except (SystemExit, unittest.SkipTest) as reason:
            print(f"skipped: {reason}", flush=True)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
