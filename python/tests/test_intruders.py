"""A process that knows no secret writes to the store at which ranks meet, which is open to everybody, and puts itself between
them: nobody connects to it, nothing is read, and each rank says that an intruder has been there."""

import io
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
import run_experiment
import torch.distributed as dist
from ranks import DEADLINE, SCRIPTS, start, wait

from syncopate import _core, _elastic
from syncopate._servers import Servers
from syncopate.errors import PeerLost, SyncopateError

# Some weights of scripts/victim.py, and some of its gradients, as they lie in memory.
MARKS = struct.pack("<f", 1234.5678) * 4, struct.pack("<f", 4.0) * 16


class Relay:
    """Passes on what comes to who really listens at `target`, keeps a copy, and may change what is longer than a greeting."""

    def __init__(self, target, alters):
        self._alters = alters
        host, _, port = target.removeprefix("tcp://").rpartition(":")
        self._target, self.taken = (host, int(port)), bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            caller, _ = self._listener.accept()
            callee = socket.create_connection(self._target)
            for source, drain in ((caller, callee), (callee, caller)):
                threading.Thread(target=self._pass, args=(source, drain), daemon=True).start()

    def _pass(self, source, drain):
        try:
            while part := source.recv(1 << 16):
                self.taken += part
                if self._alters and len(part) > 1024:
                    part = part[:-8] + bytes(byte ^ 0x80 for byte in part[-8:])
                drain.sendall(part)
        except OSError:
            pass


class Intruder:
    """Whoever reaches the store: it reads what stands there, writes something else, and lets rank 1 go on."""

    def __init__(self, port):
        self._store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(seconds=60))
        self.relay = None

    def replace(self, key, change):
        self._store.wait([key])
        self._store.set(key, change(self._store.get(key).decode()))
        self._store.set("go", "")

    def get_between(self, key, alters=True):
        def change(value):
            address, proof, _ = value.partition("#")
            self.relay = Relay(address, alters)
            scheme = "tcp://" if address.startswith("tcp://") else ""
            return f"{scheme}127.0.0.1:{self.relay.port}{proof}{value[len(address) + len(proof):]}"

        self.replace(key, change)

    def has_read_weights(self):
        return self.relay is not None and any(mark in self.relay.taken for mark in MARKS)


def port_of(processes):
    with open(f"/proc/{processes[0].pid}/environ", encoding="utf-8") as file:
        return int(dict(each.split("=", 1) for each in file.read().split("\0") if "=" in each)["MASTER_PORT"])


def meet_intruder(processes):
    while True:
        try:
            return Intruder(port_of(processes))
        except (RuntimeError, KeyError):  # rank 0 is not there yet
            assert processes[0].poll() is None, processes[0].stderr.read()
            time.sleep(0.05)


@pytest.mark.parametrize(
    "mode, wire, key",
    [
        ("ps", "sockets", "optimizer1/2"),  # the server's address
        ("ps", "shm", "optimizer1/2"),
        ("allreduce", "sockets", "optimizer1/0"),
        ("allreduce", "shm", "optimizer1/0"),
    ],
)
def test_who_writes_its_own_address_into_the_store_gets_nothing_and_is_named(mode, wire, key):
    processes = start("victim.py", 2, mode, wire, 20, HELD="optimizer")
    intruder = meet_intruder(processes)
    if wire == "sockets":
        intruder.get_between(f"syncopate//0/0/{key}")
    else:
        intruder.replace(f"syncopate//0/0/{key}", lambda value: "syncopate-" + "0" * 32)
    ended = wait(processes)
    assert all(each.code != 0 and "trained" not in each.out for each in ended), ended
    verdict = f"the value of member {key[-1]} for 'optimizer1' does not prove to be of this job: another process, most likely an"
    assert any(verdict in each.err for each in ended), ended
    assert not intruder.has_read_weights()


@pytest.mark.parametrize("alters", [False, True])
@pytest.mark.parametrize("mode, key", [("ps", "optimizer1/2"), ("allreduce", "optimizer1/0")])
def test_who_is_on_the_way_between_two_ranks_of_a_host_reads_and_alters_nothing(mode, key, alters):
    """Ranks believe the store, so that all of their way to each other goes through the relay."""
    processes = start("victim.py", 2, mode, "sockets", 20, HELD="optimizer", BELIEVES="yes")
    intruder = meet_intruder(processes)
    intruder.get_between(f"syncopate//0/0/{key}", alters)
    ended = wait(processes)
    if alters:
        assert all(each.code != 0 and "trained" not in each.out for each in ended), ended
    else:
        assert all(each.code == 0 and "trained" in each.out for each in ended), ended
        assert len(intruder.relay.taken) > 20 * 4 * 300 * 100, "the gradients went another way"
    assert len(intruder.relay.taken) > 1024, "nobody has come to the relay"
    assert not intruder.has_read_weights()


@pytest.mark.parametrize("mode", ["ps", "allreduce"])
def test_who_writes_before_the_job_does_is_overwritten_and_the_run_ends_well(mode):
    processes = start("victim.py", 2, mode, "sockets", 20, HELD="init")
    intruder = meet_intruder(processes)
    for member in range(3):
        intruder._store.set(f"syncopate//0/0/optimizer1/{member}", "tcp://127.0.0.1:9" if mode == "ps" else "127.0.0.1:9")
    intruder._store.set("go", "")
    ended = wait(processes)
    if any(each.code != 0 for each in ended):  # a rank looked before the others had written
        assert any("most likely an intruder" in each.err for each in ended), ended
        return
    assert ended[0].out == ended[1].out and "trained" in ended[0].out


class OpenStore:
    """A rendezvous of two ranks in this process, to which an intruder writes: written(group, reader, values)."""

    def __init__(self, written):
        self._written, self._values, self._changed = written, {}, threading.Condition()

    def __call__(self, group, rank, size, value, seconds):
        with self._changed:
            self._values[group, rank] = value
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: all((group, each) in self._values for each in range(size)), seconds)
            return self._written(group, rank, [self._values[group, each] for each in range(size)])


def outcomes(written):
    """How joining ends on both ranks: "", or what it raises."""
    store, ends = OpenStore(written), ["", ""]

    def join(rank):
        try:
            _core.Group.join(rank, 2, "shm", 5.0, store)
        except (SyncopateError, ValueError) as error:
            ends[rank] = str(error)

    ranks = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    return ends


def test_ranks_join_where_nobody_writes():
    assert outcomes(lambda group, reader, values: values) == ["", ""]


def test_what_a_rank_first_says_of_itself_is_said_again_with_a_proof():
    def another_pid(group, reader, values):
        host, kernel, _, rest = values[0].split("|", 3)
        return [f"{host}|{kernel}|{os.getppid()}|{rest}", values[1]] if (group, reader) == ("ranks", 1) else values

    assert "what stood first for rank 0 does not prove to be of this job" in outcomes(another_pid)[1]
    assert "what stands for this rank does not prove to be of this job" in outcomes(
        lambda group, reader, values: [values[0] + "x", values[1]] if group == "ranks" else values
    )[0]


def test_rank_0_says_who_has_its_place():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        processes = start("victim.py", 2, "allreduce", "shm", 1, MASTER_PORT=str(taken.getsockname()[1]))
        first = wait(processes[:1])[0]
        processes[1].kill()
        wait(processes[1:])
    assert first.code != 0
    assert "ranks cannot meet: " in first.err and f"a process of this user (uid {os.getuid()}) listens" in first.err, first.err


def victims(folder):
    """The ranks of a run of run_experiment with this folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"victim.py" in words and f"VICTIM_OF={folder}".encode() in environment and b"MASTER_PORT=" in environment:
            found.append(int(entry.name))
    return found


@pytest.mark.skipif(run_experiment.PROGRAM is None, reason=run_experiment.WHY)
def test_a_run_of_run_experiment_with_a_script_is_told_of_an_intruder(tmp_path):
    command = [run_experiment.PROGRAM, "--mode=ps", "--servers=1", "--consistency=sync", "--transport=sockets", "--workers=2"]
    script = [sys.executable, str(SCRIPTS / "victim.py"), "ps", "launcher", "20"]
    environment = {**os.environ, "VICTIM_OF": str(tmp_path), "HELD": "optimizer"}
    run = subprocess.Popen(
        [*command, f"--output={tmp_path}/run", "--", *script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not victims(tmp_path):
        assert run.poll() is None, run.stdout.read()
        time.sleep(0.05)
    environ = pathlib.Path(f"/proc/{victims(tmp_path)[0]}/environ").read_text(encoding="utf-8")
    port = next(int(each.partition("=")[2]) for each in environ.split("\0") if each.startswith("MASTER_PORT="))
    while True:
        try:
            intruder = Intruder(port)
            break
        except RuntimeError:
            assert run.poll() is None, run.stdout.read()
            time.sleep(0.05)
    intruder.get_between("syncopate//0/0/optimizer1/2")
    out, _ = run.communicate(timeout=DEADLINE)
    logs = out + "\n".join(log.read_text() for log in tmp_path.glob("run/logs/*.log"))
    assert run.returncode != 0, logs
    assert "most likely an intruder" in logs, logs
    assert not intruder.has_read_weights()


class FakeStore:
    def __init__(self):
        self.values = {}

    def set(self, key, value):
        self.values[key] = value.encode()

    def get(self, key):
        return self.values[key]

    def check(self, keys):
        return all(key in self.values for key in keys)

    def compare_set(self, key, expected, value):
        self.values.setdefault(key, value.encode())
        return self.values[key]


class FakeGroup:
    @staticmethod
    def prove(place, value):
        return f"{value}#{place}"

    @staticmethod
    def proven(place, text):
        return text.removesuffix(f"#{place}") if text.endswith(f"#{place}") else None


def test_ranks_agree_on_who_goes_on_by_what_is_proven_alone():
    store = FakeStore()
    membership = _elastic.Membership(store, 0, 3, 0.2)
    store.set("elastic/1/1", FakeGroup.prove("elastic/1/1", "here"))
    store.set("elastic/1/2", "here")  # an intruder says so
    membership.next_epoch(lambda: set(), PeerLost("lost"), FakeGroup)
    assert membership.members == [0, 1]
    store.set("elastic/2/members", "1")  # an intruder decides
    with pytest.raises(_elastic.Over) as over:
        membership.next_epoch(lambda: set(), PeerLost("lost"), FakeGroup)
    assert isinstance(over.value.error, SyncopateError) and "an intruder has written" in str(over.value.error)


class FakeServer:
    """A server that wants to meet the others once."""

    def __init__(self):
        self.stdout, self.stdin, self.is_killed = [b"optimizer1 tcp://127.0.0.1:4711\n"], io.BytesIO(), False

    def kill(self):
        self.is_killed = True


@pytest.mark.parametrize("written, is_passed_on", [("rank 0's", True), ("rank 0's\nlost 0", False)])
def test_a_server_takes_no_orders_from_the_store(written, is_passed_on):
    server = FakeServer()
    Servers._meet(None, server, lambda *_: [written, "its own"], 1, 2, 1.0, 0)
    assert server.is_killed != is_passed_on
    assert server.stdin.getvalue() == (f"{written}\nits own\n".encode() if is_passed_on else b"")
