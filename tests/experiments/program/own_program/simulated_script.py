"""A script whose ranks are simulated, without torch: it meets run_experiment by the package's own _ranks.py. Its model has
one weight, 4 at first, and loss w * w / 2, whose gradient is w: each update by rate R makes it (1 - R) times as large.

simulated_script.py WAY STEPS [WHAT RANK STEP]: WAY is means or weights; in this step this rank does something else.
"""

import os
import struct
import sys
import time

sys.path.insert(0, os.environ["SYNCOPATE_PACKAGE"])
from syncopate import _ranks  # noqa: E402

_ranks.become()
link = _ranks.link()
way, steps = sys.argv[1], int(sys.argv[2])
what, whose, when = (sys.argv[3:] + ["", "-1", "-1"])[:3]
RATE = 0.5


def floats(place, count):
    return [struct.unpack_from("f", link.arena.view(), 4 * (place + i))[0] for i in range(count)]


def mean(value):
    link.mail.grow(4)
    struct.pack_into("f", link.mail.view(), 0, value)
    link.meet("sum", 4, scale=1 / link.size)
    return struct.unpack_from("f", link.mail.view())[0]


print(f"rank {link.rank} of {link.size}", flush=True)
if what == "refuse":
    link.refuse("this script cannot do that")
link.arena.grow(2 * 16 * 4)
gradient = 0 if way == "means" else 4 * 16  # means take its place
options = {"bucket_bytes": "1048576"}
if way == "weights":
    options.update(optimizer="sgd", servers=os.environ["SYNCOPATE_SERVERS"], consistency=os.environ["SYNCOPATE_CONSISTENCY"])
link.ask(**{"is": "exchange"}, tensors=[["w", [1]]], options=options, takes_means=way == "means", gives_in_step=False)
weight = 4.0 if way == "means" or link.rank == 0 else 9.0  # servers begin with rank 0's
struct.pack_into("f", link.arena.view(), 0, weight)
link.ask(**{"is": "join"})
for step in range(steps):
    if whose in ("all", str(link.rank)) and step == int(when):
        if what == "fail":
            raise SystemExit("the data of this rank is gone")
        if what == "die":
            os.kill(os.getpid(), 9)
        if what == "hang":
            print("hangs", flush=True)
            time.sleep(1000)
        if what == "end":
            break
        if what == "meet":
            mean(1)
    if way == "weights":
        weight = floats(0, 1)[0]
    struct.pack_into("f", link.arena.view(), gradient, weight)
    took = 1000000 * (link.rank + 1)  # ns: rank 1 is half as fast as rank 0
    link.ask(**{"is": "step"}, rate=RATE, before=took // 2, ready=[took // 2], samples=8, absent=[])
    if way == "means":
        weight -= RATE * floats(0, 1)[0]
    link.say(**{"is": "learnt"}, step=step, loss=weight * weight / 2, accuracy=None)
    if step % 5 == 4:
        link.say(**{"is": "evaluation"}, step=step + 1, loss=weight * weight / 2, accuracy=0.5, epoch=step / 5)
if what == "mean":
    print("mean", mean(link.rank), flush=True)
link.ask(**{"is": "leave"})
print("weight", floats(0, 1)[0] if way == "weights" else weight, flush=True)
