"""Ranks on two hosts, which are network namespaces: the same bits as on one, and losses that are named at once."""

import os
import re
import signal

import hosts
import pytest
import torch
from hosts import Hosts
from ranks import HOOKS_RAISE_RUNTIME_ERRORS, run, wait
from test_failure import AT_ONCE, raised

pytestmark = pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())


def new_secret(path, size=32):
    path.write_bytes(os.urandom(size))
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def secret(tmp_path):
    return {"SYNCOPATE_SECRET_FILE": new_secret(tmp_path / "secret")}


def succeed(processes):
    ended = wait(processes)
    assert [each.code for each in ended] == [0] * len(ended), ended
    return ended


def test_ranks_find_each_other_and_share_what_each_host_has(secret):
    with Hosts() as two:
        ended = succeed(two.start("whoami.py", [0, 1, 1], **secret))
    assert [each.out.strip() for each in ended] == [
        f"rank {rank} of 3, local {local}: 6.0" for rank, local in enumerate([0, 0, 1])
    ]


def test_weights_have_the_same_bits_as_on_one_host(tmp_path, secret):
    jobs = [
        f"{way}/mlp/{rule}{options}"
        for rule in ("momentum", "adam")
        for way, options in (
            ("ddp", ""),
            ("hook", "/wire=sockets"),
            ("optimizer", "/wire=sockets"),
            ("optimizer", "/wire=sockets/update=torch"),
            ("optimizer", "/wire=sockets/mode=ps/servers=3"),
        )
    ]
    with Hosts() as two:
        succeed(two.start("training.py", [0, 1], tmp_path / "two", 40, *jobs, **secret))
    run("training.py", 2, tmp_path / "one", 40, *jobs)
    for rank in range(2):
        one, other = (torch.load(tmp_path / f"{file}.{rank}", weights_only=False) for file in ("one", "two"))
        for job in jobs:
            for name, weight in one[job]["weights"].items():
                assert torch.equal(weight, other[job]["weights"][name]), (job, name)


@pytest.mark.parametrize("way, children", [("optimizer", "forked"), ("hook", "2")])
def test_a_killed_rank_of_another_host_is_named_at_once_though_its_children_live(way, children, secret):
    with Hosts() as two:
        ended = wait(two.start("losing.py", [0, 1, 0], "kill", way, 30, children, **secret))
    when = float(re.search(r"^at (\S+)", ended[1].out).group(1))
    for rank in (0, 2):
        if way == "hook" and HOOKS_RAISE_RUNTIME_ERRORS:
            assert "RuntimeError: PeerLost: rank 1 (pid" in ended[rank].err
            continue
        assert ended[rank].code == 3, ended[rank].err
        at, lost, _, _, text = raised(ended[rank].out)
        assert float(at) - when < AT_ONCE
        assert lost == "1" and "rank 1 (pid" in text and "is gone" in text


def test_a_host_that_is_cut_off_is_given_up_within_the_timeout(secret):
    with Hosts() as two:
        processes = two.start("losing.py", [0, 1], "stop", "optimizer", 4, **secret)
        try:
            assert processes[1].stdout.readline().startswith("at ")  # rank 0 waits for it
            two.cut()
            out, err = processes[0].communicate(timeout=60)
        finally:
            processes[1].kill()
            processes[1].communicate()
    assert processes[0].returncode == 3, err
    _, lost, _, _, text = raised(out)
    assert lost == "1" and "has not come in time" in text


def test_servers_stand_on_all_hosts_and_a_lost_one_is_named_everywhere(secret):
    with Hosts() as two:
        processes = two.start("serving.py", [0, 1, 1], 3, **secret)
        first, second = ([int(pid) for pid in processes[rank].stdout.readline().split()[1:]] for rank in (0, 1))
        assert (len(first), len(second)) == (2, 1)
        os.kill(second[0], signal.SIGKILL)
        ended = wait(processes, 60)
    for each in ended:
        assert each.code == 3, each.err
        assert re.search(r"PeerLost rank=None .*server 1 \(pid \d+ on .*\) is gone", each.out), each.out


def test_what_several_hosts_need_is_said(tmp_path, secret):
    def refusals(placed=(0, 1), **environment):
        with Hosts() as two:
            ended = wait(two.start("whoami.py", list(placed), **environment), 60)
        assert all(each.code == 1 for each in ended), ended
        return [each.err for each in ended]

    for text in refusals():
        assert "several hosts need a secret in common. Make one, (umask 077; head -c 32 /dev/urandom >FILE)" in text
    for text in refusals(SYNCOPATE_SECRET_FILE=new_secret(tmp_path / "short", 31)):
        assert "short: holds 31 bytes, and a key has 32 to 4096" in text
    for text in refusals(SYNCOPATE_WIRE="shm", SYNCOPATE_MODE="allreduce", **secret):
        assert "hosts share no memory; use wire='sockets'" in text
    for text in refusals(SYNCOPATE_ADDRESS="10.9.9.9", **secret):
        assert "10.9.9.9: must be an address of this host" in text


def test_another_secret_lets_nobody_in(tmp_path, secret):
    other = {"SYNCOPATE_SECRET_FILE": new_secret(tmp_path / "other")}
    with Hosts() as two:
        ended = wait(two.start("losing.py", [0, 1], "kill", "optimizer", 3, of_rank_0=other, **secret), 60)
    for each in ended:
        assert each.code != 0 and "is SYNCOPATE_SECRET_FILE the same on all of them?" in each.out + each.err, each


def test_rank_0_may_know_itself_by_a_name_of_its_loopback_interface(secret):
    """As Debian writes it to /etc/hosts: 127.0.1.1 is the host's own name."""
    with Hosts() as two:
        succeed(two.start("whoami.py", [0, 1], of_rank_0={"MASTER_ADDR": "localhost"}, **secret))
