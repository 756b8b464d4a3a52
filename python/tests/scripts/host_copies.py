"""Copies of a device's tensors in host memory, in one process: nobody reads, or overwrites, what has not come yet."""

import gc
import threading

import torch

import software_device
from syncopate.torch._host_copies import HostCopies


def pinned(value):
    return torch.full((4,), float(value)).pin_memory()


def each_comes_in_its_turn(device):
    copies, came = HostCopies(), []
    for number in range(20):
        there = torch.full((4,), float(number), device=device)
        copies.fetch(number % 3 if number % 2 else f"of {number}", there, lambda copy: came.append(copy.tolist()))
        if number % 2:
            copies.wait()
    copies.wait()
    assert came == [[float(number)] * 4 for number in range(20)], came


def what_follows_may_fail(device):
    copies, came = HostCopies(), []

    def fail(copy):
        raise ValueError("not this one")

    for then in (came.append, fail, came.append):
        copies.fetch("key", torch.ones(4, device=device), then)
    try:
        copies.wait()
    except ValueError as error:
        assert str(error) == "not this one" and len(came) == 1, came
    else:
        raise AssertionError("an error is raised")
    copies.fetch("key", torch.ones(4, device=device), came.append)
    copies.wait()
    assert len(came) == 2, "it goes on"


def what_is_given_comes_behind_what_the_device_was_told_before(device):
    copies, tensor = HostCopies(), torch.zeros(4, device=device)
    copies.fetch("key", torch.full((4,), 2.0, device=device), lambda copy: None)
    copies.wait()
    tensor.copy_(pinned(1), non_blocking=True)
    copies.give([("key", tensor)])
    assert tensor.tolist() == [2.0] * 4


def what_is_sent_is_not_overwritten_before_it_has_gone(device):
    copies = HostCopies()
    first, second = (torch.zeros(4, device=device) for _ in range(2))
    for value, tensor in ((1, first), (2, second)):
        copies.send([("key", torch.full((4,), float(value)), tensor)])
    assert (first.tolist(), second.tolist()) == ([1.0] * 4, [2.0] * 4)


def shapes_and_types_may_change(device):
    copies, came = HostCopies(), []
    for dtype, shape in ((torch.float32, (4,)), (torch.bfloat16, (2, 3)), (torch.float16, (1,))):
        for place in ("cpu", device):
            copies.fetch("key", torch.full(shape, 1.5, dtype=dtype, device=place), lambda copy: came.append(copy.clone()))
            copies.wait()
            back = torch.zeros(shape, dtype=dtype, device=place)
            copies.give([("key", back)])
            assert back.dtype is dtype and back.cpu().float().eq(1.5).all()
    assert all(each.dtype is torch.float32 and each.eq(1.5).all() for each in came) and len(came) == 6


def its_thread_ends_with_it(device):
    copies = HostCopies()
    copies.fetch("key", torch.ones(4, device=device), lambda copy: None)
    copies.wait()
    threads = [each for each in threading.enumerate() if each.name == "syncopate copies"]
    assert threads
    before = len(threads)
    del copies
    gc.collect()
    for each in threads[-1:]:
        each.join(60)
    assert sum(each.is_alive() for each in threads) < before


def main():
    device = software_device.register().NAME
    for check in (
        each_comes_in_its_turn,
        what_follows_may_fail,
        what_is_given_comes_behind_what_the_device_was_told_before,
        what_is_sent_is_not_overwritten_before_it_has_gone,
        shapes_and_types_may_change,
        its_thread_ends_with_it,
    ):
        check(device)
    print("all come")


if __name__ == "__main__":
    main()
