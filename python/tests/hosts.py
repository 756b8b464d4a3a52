"""Two hosts on this machine: network namespaces of the test's own, joined by a cable. They share all but the network."""

import os
import shutil
import subprocess
import sys

from ranks import SCRIPTS

ADDRESSES = ["10.77.1.1", "10.77.1.2"]


def why_not():
    """Empty, or why there can be none here."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if shutil.which("ip") is None:
        return "no ip: apt-get install iproute2"
    name = f"sy-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return "" if made else "the kernel makes no network namespaces here"


class Hosts:
    def __init__(self):
        self.names = [f"sy-{os.getpid()}-{number}" for number in range(2)]

    def __enter__(self):
        for name in self.names:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", self.names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.names[1])
        for name, address in zip(self.names, ADDRESSES):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            _ip("netns", "del", name)

    def cut(self):
        """Nothing passes any more, and nobody is told."""
        _ip("-n", self.names[0], "link", "set", "cable", "down")

    def start(self, script, placed, *arguments, of_rank_0=(), **environment):
        """One process a rank: rank r on host placed[r]. Rank 0 has variables of its own."""
        common = {
            **os.environ,
            "MASTER_ADDR": ADDRESSES[placed[0]],
            "MASTER_PORT": "29511",
            "WORLD_SIZE": str(len(placed)),
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "cable",
            **environment,
        }
        return [
            subprocess.Popen(
                ["ip", "netns", "exec", self.names[host], sys.executable, str(SCRIPTS / script), *map(str, arguments)],
                env={
                    **common,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(placed[:rank].count(host)),
                    **(dict(of_rank_0) if rank == 0 else {}),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank, host in enumerate(placed)
        ]


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
