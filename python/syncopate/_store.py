"""A rendezvous without a framework: rank 0 answers at MASTER_ADDR and MASTER_PORT, in lines of JSON. It is plain text to
whoever reaches the port: no secret goes through it."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import Any, Dict, List, Optional, Tuple

# Between two attempts to reach a rank 0 that does not listen yet.
_PAUSE = 0.02
# How long an answer may be on its way.
_GRACE = 5.0


class Store:
    """Where members of groups leave a value each, and take those of all. Any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._groups: Dict[str, Tuple[Dict[int, str], List[int]]] = {}  # values, and who has taken them

    def meet(self, group: str, member: int, size: int, value: str, seconds: float) -> List[str]:
        """Raises TimeoutError, naming who is absent."""
        with self._changed:
            values, taken = self._groups.setdefault(group, ({}, []))
            values[member] = value
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(values) == size, max(seconds, 0.001)):
                absent = ", ".join(str(each) for each in range(size) if each not in values)
                raise TimeoutError(f"no word from rank {absent} for {group}")
            taken.append(member)
            if len(taken) == size:
                del self._groups[group]
            return [values[each] for each in range(size)]

    def listen(self, host: str, port: int) -> None:
        """Answers clients on threads that end with the process."""
        listener = socket.create_server((host, port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client, client.makefile("rw", encoding="utf-8") as lines:
            for line in lines:
                try:
                    answer: Any = self.meet(*json.loads(line))
                except TimeoutError as error:
                    answer = str(error)
                except (TypeError, ValueError):
                    return  # no rank of ours
                lines.write(json.dumps(answer) + "\n")
                lines.flush()


class StoreRendezvous:
    """A store as the core meets through it: in this process, or rank 0's at `address`."""

    def __init__(self, prefix: str, store: Optional[Store], address: Tuple[str, int], seconds: float) -> None:
        self._prefix, self._store, self._address, self._seconds = prefix, store, address, seconds
        self._lines = None if store else _connect(address, seconds)

    def another(self) -> StoreRendezvous:
        """The same for another thread."""
        return StoreRendezvous(self._prefix, self._store, self._address, self._seconds)

    def __call__(self, group: str, rank: int, size: int, value: str, seconds: float) -> List[str]:
        name = f"{self._prefix}/{group}"
        if self._store:
            return self._store.meet(name, rank, size, value, seconds)
        try:
            self._lines.write(json.dumps([name, rank, size, value, seconds]) + "\n")
            self._lines.flush()
            line = self._lines.readline()
        except socket.timeout as error:
            raise TimeoutError(f"rank 0 does not answer: {name}") from error
        answer = json.loads(line) if line else "rank 0 has ended"
        if isinstance(answer, str):
            raise TimeoutError(answer)
        return answer


def _connect(address: Tuple[str, int], seconds: float) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            client = socket.create_connection(address, max(end - time.monotonic(), 0.001))
            client.settimeout(seconds + _GRACE)  # rank 0 answers in the time that a request names, or does not live
            with client:
                return client.makefile("rw", encoding="utf-8")
        except OSError as error:
            if time.monotonic() + _PAUSE > end:
                host, port = address
                raise TimeoutError(f"rank 0 does not answer at {host}:{port} within {seconds} s: {error}") from error
            time.sleep(_PAUSE)
