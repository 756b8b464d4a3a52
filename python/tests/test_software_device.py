"""The device in software is as strict as the tests that use it need it to be. All is checked in a process of its own, which
this file is then the script of: whoever makes the device known has it as the accelerator for good."""

import copy
import faulthandler
import io
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback

import pytest
import torch
from torch import nn
from torch.nn import functional

import software_device as software

HERE = os.path.dirname(os.path.abspath(__file__))
# It only ends tests that have failed.
DEADLINE = 300.0


def mlp():
    return nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, 30), nn.LayerNorm(30), nn.GELU(), nn.Linear(30, 5))


def conv():
    first = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(nn.Conv2d(8, 4, 3, groups=2, bias=False), nn.ConvTranspose2d(4, 3, 2), nn.ReLU())
    return nn.Sequential(first, second, nn.Flatten(), nn.Linear(48, 5))


RULES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
    "adam": lambda p: torch.optim.Adam(p, foreach=False),
    "adam, foreach": lambda p: torch.optim.Adam(p, foreach=True),
    "adamw": lambda p: torch.optim.AdamW(p, foreach=False),
    "adamw, foreach": lambda p: torch.optim.AdamW(p, foreach=True),
}


def train(make, batch, targets, loss_of, rule, device, steps=4):
    """The losses and the state of the model after some steps."""
    torch.manual_seed(5)
    model = make().to(device)
    optimizer = RULES[rule](model.parameters())
    batch, targets, losses = batch.to(device), targets.to(device), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(batch), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: tensor.cpu() for name, tensor in model.state_dict().items()}


def assert_trains_like_the_cpu(make, batch, targets, loss_of, rule, device):
    losses, state = train(make, batch, targets, loss_of, rule, "cpu")
    own_losses, own_state = train(make, batch, targets, loss_of, rule, device)
    assert own_losses == losses and len(set(losses)) > 1, (rule, losses, own_losses)
    for name, tensor in state.items():
        assert torch.equal(own_state[name], tensor), (rule, name)


def pinned(*sizes, value=None):
    tensor = torch.empty(*sizes, pin_memory=True)
    return tensor if value is None else tensor.fill_(value)


def is_unset(tensor) -> bool:
    return bool(tensor.isnan().all())


def refused(work, error=RuntimeError, text=""):
    try:
        work()
    except error as raised:
        assert text in str(raised), raised
        return True
    return False


class unchecked:
    """A context in which work that does not wait is no error."""

    def __enter__(self):
        self._before = software.check_order(False)

    def __exit__(self, *_):
        software.check_order(self._before)


def check_training_has_the_bits_of_the_cpu():
    targets = torch.randint(0, 5, (16,))
    for number, rule in enumerate(RULES):
        device = f"software:{number % 2}"
        assert_trains_like_the_cpu(mlp, torch.randn(16, 20), targets, functional.cross_entropy, rule, device)
        assert_trains_like_the_cpu(mlp, torch.randn(16, 20), torch.randn(16, 5), functional.mse_loss, rule, device)
        assert_trains_like_the_cpu(conv, torch.randn(16, 3, 12, 12), targets, functional.cross_entropy, rule, device)


def check_a_step_is_quick():
    model, batch = mlp().to("software"), torch.randn(16, 20, device="software")
    times = []
    for _ in range(20):
        start = time.monotonic()
        model(batch).sum().backward()
        times.append(time.monotonic() - start)
    assert min(times) < 0.05, times


def check_types():
    floats = (torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.complex64)
    for dtype in (*floats, torch.int64, torch.int32, torch.uint8, torch.bool):
        tensor = torch.arange(6).to(dtype)
        own = tensor.to("software")
        assert own.dtype == dtype and torch.equal(own.cpu(), tensor) and torch.equal((own == own).cpu(), tensor == tensor)
    assert torch.equal(torch.arange(4.0, device="software").to("cpu", torch.bfloat16), torch.arange(4.0).bfloat16())
    for dtype in floats[:2]:
        torch.manual_seed(5)
        model, batch = nn.Linear(4, 3, dtype=dtype), torch.randn(2, 4, dtype=dtype)
        own = copy.deepcopy(model).to("software")
        model(batch).square().sum().backward()
        own(batch.to("software")).square().sum().backward()
        assert own.weight.grad.dtype == dtype and torch.equal(own.weight.grad.cpu(), model.weight.grad)


def check_autocast():
    model, batch = mlp().to("software"), torch.randn(4, 20, device="software")
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("software")
    with torch.autocast("software", dtype=torch.bfloat16):
        out = model(batch)
        loss = functional.mse_loss(out, torch.zeros_like(out))
    assert out.dtype == torch.bfloat16 and loss.dtype == torch.float32
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(p.grad.dtype == torch.float32 and p.grad.isfinite().all() for p in model.parameters())


def check_memory_is_unset_at_first_and_once_it_is_free():
    for _ in range(2):
        assert is_unset(torch.empty(100, device="software").cpu())
        torch.empty(100, device="software").fill_(1)
    assert is_unset(pinned(100))


def check_shapes_and_views():
    own, tensor = torch.arange(12.0, device="software"), torch.arange(12.0)
    for view in (
        lambda t: t.view(3, 4).t()[1:],
        lambda t: t.as_strided((2, 3), (1, 4), 1),
        lambda t: t.view(3, 4).unfold(1, 2, 1),
        lambda t: t.view(torch.int32),
        lambda t: torch.view_as_complex(t.view(6, 2)).conj(),
        lambda t: t.split(5)[2],
    ):
        assert view(own)._is_view() == view(tensor)._is_view() and view(own).untyped_storage().data_ptr() == own.data_ptr()
        assert torch.equal(view(own).cpu(), view(tensor).resolve_conj()) and view(own).stride() == view(tensor).stride()
    own.resize_(20)
    assert torch.equal(own[:12].cpu(), tensor) and is_unset(own[12:].cpu())
    other = torch.empty(0, device="software").set_(own.untyped_storage(), 2, (2, 3), (3, 1))
    assert other.cpu().tolist() == [[2, 3, 4], [5, 6, 7]] and other.data_ptr() == own.data_ptr() + 8
    assert torch.empty_strided((2, 3), (1, 2), device="software").stride() == (1, 2)
    out = torch.empty(0, device="software", dtype=torch.int64)
    torch.nonzero(torch.tensor([1, 0, 1], device="software"), out=out)
    assert out.cpu().tolist() == [[0], [2]]
    assert "device='software:0'" in repr(own[:3])


def check_devices_are_kept_apart():
    zero, one = torch.ones(2, 2, device="software:0"), torch.ones(2, 2, device="software:1")
    assert software.device_count() == torch.accelerator.device_count() == 2 and software.is_available()
    for work in (lambda: zero + one, lambda: zero @ torch.ones(2, 2), lambda: zero.add_(torch.ones(2, 2))):
        assert refused(work, text="on the same device")
    assert refused(lambda: zero.to("software:2")) and refused(zero.numpy, TypeError)
    assert (zero + one.to("software:0") + torch.tensor(1.0)).sum().item() == 12
    with software.device(1):
        assert software.current_device() == 1 and torch.empty(1, device="software").device.index == 1
    software.set_device("software:1")
    software.set_device(0)
    assert software.current_device() == 0


def check_seeds_and_states():
    torch.manual_seed(7)
    own = torch.randn(3, device="software").cpu()
    torch.manual_seed(7)
    assert torch.equal(own, torch.randn(3))
    model, file = nn.Linear(3, 2).to("software"), io.BytesIO()
    torch.save(model.state_dict(), file)
    for place, device in ((None, "software:0"), ("software:1", "software:1"), ("cpu", "cpu")):
        file.seek(0)
        weight = torch.load(file, map_location=place)["weight"]
        assert weight.device == torch.device(device) and torch.equal(weight.cpu(), model.weight.cpu())


def check_pinned_memory():
    assert pinned(3).is_pinned() and torch.ones(3).pin_memory().is_pinned() and not torch.ones(3).is_pinned()
    assert pinned(9)[3:6].is_pinned() and torch.ones(3).pin_memory().tolist() == [1, 1, 1]
    assert torch.ones(3, device="software").to("cpu", non_blocking=True).is_pinned()  # as of CUDA


def check_a_pinned_target_has_nothing_before_it_is_waited_for():
    own, event = torch.arange(4.0, device="software"), software.Event(blocking=True)
    waits = {
        "event": event.synchronize,
        "query": lambda: [event.query() for _ in range(2)],
        "stream": lambda: software.current_stream().synchronize(),
        "device": software.synchronize,
        "kernel": lambda: own + 1,
        "blocking copy": own.cpu,
    }
    for name, wait in waits.items():
        target = pinned(8, value=-1)
        target[::2].copy_(own, non_blocking=True)
        event.record()
        assert is_unset(target[::2]) and (target[1::2] == -1).all(), name
        time.sleep(0.01)
        assert software.is_pending() and is_unset(target[::2]), name
        wait()
        assert torch.equal(target[::2], torch.arange(4.0)) and (target[1::2] == -1).all(), name
        assert not software.is_pending() and event.query(), name
    target = torch.empty(4)
    target.copy_(own, non_blocking=True)  # at once, where nothing is pinned
    assert torch.equal(target, torch.arange(4.0))


def check_a_pinned_source_is_read_late():
    source, own = pinned(4, value=1), torch.empty(4, device="software")
    own.copy_(source, non_blocking=True)
    source.fill_(2)
    assert own.cpu().tolist() == [2] * 4
    own.copy_(source, non_blocking=True)
    software.synchronize()
    source.fill_(3)
    assert own.cpu().tolist() == [2] * 4
    unpinned = torch.ones(4)
    own.copy_(unpinned, non_blocking=True)
    unpinned.fill_(2)
    assert own.cpu().tolist() == [1] * 4
    own.copy_(pinned(4, value=5), non_blocking=True)  # which the copy keeps
    assert own.cpu().tolist() == [5] * 4
    # The same memory there and back.
    source.fill_(6)
    own.copy_(source, non_blocking=True)
    source.copy_(own * 2, non_blocking=True)
    software.synchronize()
    assert source.tolist() == [12] * 4 and own.cpu().tolist() == [6] * 4


def check_streams_are_independent():
    a, b = software.Stream(), software.Stream()
    own, first, second = torch.ones(4, device="software"), pinned(4), pinned(4)
    a.wait_stream(software.current_stream())
    b.wait_stream(software.current_stream())
    with software.stream(a):
        assert software.current_stream() == a
        first.copy_(own, non_blocking=True)
    with software.stream(b):
        second.copy_(own, non_blocking=True)
    software.default_stream().synchronize()
    b.synchronize()
    assert second.tolist() == [1] * 4 and is_unset(first) and software.is_pending(a)
    event = a.record_event()
    b.wait_event(event)
    with unchecked():
        b.synchronize()
        assert first.tolist() == [1] * 4
        # A copy that is not waited for: old values.
        with software.stream(a):
            own.copy_(pinned(4, value=2), non_blocking=True)
        assert own.cpu().tolist() == [1] * 4
        software.current_stream().wait_stream(a)
        assert own.cpu().tolist() == [2] * 4
    software.synchronize()
    assert not software.is_pending(a) and not software.is_pending(b)


def check_who_does_not_wait_is_refused():
    stream, own, target = software.Stream(), torch.ones(8, device="software") * 2, pinned(8)

    def copy_on_stream(of=own):
        with software.stream(stream):
            target[: len(of)].copy_(of, non_blocking=True)

    assert refused(copy_on_stream, text="has not waited for it")
    stream.wait_stream(software.current_stream())
    copy_on_stream()
    assert refused(lambda: own.add_(1), text="has not waited for it")  # which the stream still reads
    software.current_stream().wait_event(stream.record_event())
    own.add_(1)
    stream.wait_stream(software.current_stream())
    copy_on_stream(own[:4])
    own[4:].add_(1)  # which nobody reads
    stream.synchronize()
    own.add_(1)  # since the host has waited
    software.synchronize()
    copy_on_stream()
    software.synchronize()
    assert target.tolist() == [4] * 4 + [5] * 4


def check_memory_of_another_stream_needs_to_be_recorded():
    stream, target = software.Stream(), pinned(4)
    for is_recorded in (False, True):
        own = torch.ones(4, device="software")
        stream.wait_stream(software.current_stream())
        with software.stream(stream):
            target.copy_(own, non_blocking=True)
        if is_recorded:
            own.record_stream(stream)
        del own
        stream.synchronize()
        assert target.tolist() == [1] * 4 if is_recorded else is_unset(target)


def check_backward_on_another_stream():
    stream, model = software.Stream(1), mlp().to("software:1")
    batch, seen = torch.randn(4, 20).to("software:1"), []
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: seen.append((software.current_device(), threading.get_ident())))
    stream.wait_stream(software.current_stream(1))
    with software.stream(stream):
        model(batch).sum().backward()
    software.current_stream(1).wait_stream(stream)
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert len(seen) == 8 and all(device == 1 and thread != threading.get_ident() for device, thread in seen)


def check_a_reducer_of_gradients():
    """Hooks copy gradients to the host on a stream, a thread changes them there and copies them back on another one."""
    down, up = software.Stream(), software.Stream()

    def train_with(leave_out):
        torch.manual_seed(5)
        models = [mlp() for _ in range(2)]
        models[1].load_state_dict(models[0].state_dict())
        models[1].to("software")
        rules = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
        jobs, events, buffers = queue.SimpleQueue(), queue.SimpleQueue(), {}

        def take(parameter):
            buffer = buffers.setdefault(parameter, pinned(parameter.shape))
            if leave_out != "stream":
                down.wait_stream(software.current_stream())
            with software.stream(down):
                buffer.copy_(parameter.grad, non_blocking=True)
            jobs.put((parameter, buffer, down.record_event()))

        def change():
            for parameter, buffer, event in iter(jobs.get, None):
                if leave_out != "event":
                    event.synchronize()
                buffer.mul_(2)
                with software.stream(up):
                    parameter.grad.copy_(buffer, non_blocking=True)
                events.put(up.record_event())

        for parameter in models[1].parameters():
            parameter.register_post_accumulate_grad_hook(take)
        thread = threading.Thread(target=change)
        thread.start()
        try:
            for _ in range(3):
                batch = torch.randn(16, 20)
                models[0](batch).square().sum().mul(2).backward()
                models[1](batch.to("software")).square().sum().backward()
                for _ in buffers:
                    event = events.get(timeout=10)
                    if leave_out != "wait":
                        software.current_stream().wait_event(event)
                for rule in rules:
                    rule.step()
                    rule.zero_grad()
        finally:
            jobs.put(None)
            thread.join()
        return all(torch.equal(own.cpu(), one) for one, own in zip(*(model.state_dict().values() for model in models)))

    assert train_with(None)
    for leave_out in ("stream", "wait"):
        assert refused(lambda: train_with(leave_out), text="has not waited for it")
    with unchecked():
        assert train_with(None) and train_with("stream")  # whose kernels run at once
        assert not train_with("wait") and not train_with("event")


def check_threads():
    own, targets, errors = torch.arange(1000.0, device="software"), [pinned(1000) for _ in range(4)], []

    def copy_often(target):
        try:
            stream, event = software.Stream(), software.Event()
            software.synchronize()
            for _ in range(100):
                with software.stream(stream):
                    target.copy_(own, non_blocking=True)
                    event.record()
                event.synchronize()
                assert torch.equal(target, torch.arange(1000.0))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=copy_often, args=(target,)) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def check_waits_let_other_threads_run():
    own, target, event = torch.ones(2**24, device="software"), pinned(2**24), software.Event()
    stream, ticks, is_over = software.current_stream(), [], threading.Event()

    def tick():
        while not is_over.wait(0.0005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    for wait in (event.synchronize, stream.synchronize, software.synchronize):
        for _ in range(8):
            target.copy_(own, non_blocking=True)
        event.record()
        start = time.monotonic()
        wait()
        end = time.monotonic()
        assert any(start < t < end for t in ticks), (wait, end - start)
    is_over.set()
    thread.join()


def check_events_measure_time():
    own, target = torch.ones(1000, device="software"), pinned(1000)
    first, second = (software.Event(enable_timing=True) for _ in range(2))
    first.record()
    target.copy_(own, non_blocking=True)
    second.record()
    second.synchronize()
    assert 0 < first.elapsed_time(second) < 10000


def check_a_forked_process_has_no_device():
    own = torch.ones(3, device="software")
    child = os.fork()
    if child == 0:
        is_refused = refused(lambda: torch.ones(3, device="software")) and refused(lambda: own + 1)
        os._exit(0 if is_refused and not software.is_available() else 1)
    assert os.waitpid(child, 0)[1] == 0 and own.sum().item() == 3


CHECKS = {name: check for name, check in globals().items() if name.startswith("check_")}


def main():
    """Prints what became of each check as JSON."""
    faulthandler.dump_traceback_later(DEADLINE - 10, exit=True)
    software.register()
    failures = {}
    for name, check in CHECKS.items():
        try:
            check()
        except Exception:
            failures[name] = traceback.format_exc()
    print(json.dumps(failures))


def run(*arguments):
    ours = {"PYTHONPATH": HERE, "OMP_NUM_THREADS": "1", "SOFTWARE_DEVICES": "2", "SOFTWARE_ORDER": "1"}
    environment = {**os.environ, **ours}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=DEADLINE)


@pytest.fixture(scope="module")
def failures():
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15):
        pytest.skip("the device is written for PyTorch 2.15")
    if shutil.which("ninja") is None or shutil.which(os.environ.get("CXX", "c++")) is None:
        pytest.skip("no ninja or no compiler to build the device with")
    ended = run(__file__)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CHECKS)
def test_software_device(failures, name):
    assert name not in failures, failures[name]


@pytest.mark.parametrize("access", ["ctypes.string_at(t.data_ptr(), 1)", "ctypes.memset(t.data_ptr(), 0, 1)"])
def test_the_host_dies_of_the_devices_memory(failures, access):
    make = "import ctypes, torch, software_device; software_device.register(); t = torch.ones(3, device='software')"
    ended = run("-c", f"{make}; print('made', flush=True); {access}; print('unharmed')")
    assert ended.stdout == "made\n" and ended.returncode == -signal.SIGSEGV, (ended.returncode, ended.stderr)


if __name__ == "__main__":
    main()
