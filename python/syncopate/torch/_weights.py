"""A model's weights where parameter servers have them, in memory of an exchange, and what a script must not do to them
there. Weights on a device, and those of 16 bits, stay where they are, and are written from that memory after each step."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from syncopate.torch._host_copies import HostCopies, needs_copy
from syncopate.torch._tensors import written


class ExchangedWeights:
    """Servers have the weights from take() on, and a rank that writes to its own before a step loses that;
    `servers_update`: in every later step, too."""

    def __init__(self, names: Sequence[str], parameters: Sequence[torch.nn.Parameter], servers_update: bool) -> None:
        self._names, self._parameters = names, parameters
        self._servers_update = servers_update
        self._addresses: List[int] = []
        self._places: List[torch.Tensor] = []  # in the exchange
        self._copies = HostCopies() if any(map(needs_copy, parameters)) else None
        self._joined: Optional[List[torch.Tensor]] = None  # what servers have got; until the first step
        self._versions: List[int] = []  # when they last came

    @staticmethod
    def places_in(exchange: Any, count: int) -> List[torch.Tensor]:
        return [torch.from_dlpack(exchange.weights(index)) for index in range(count)]

    def take(self, places: List[torch.Tensor]) -> None:
        """The parameters lie there from now on, or are copies of what does, with the values that are there."""
        self._places = places
        for place, parameter in zip(places, self._parameters):
            if not needs_copy(parameter):
                parameter.data = place.view(parameter.shape)
        self._copy()
        self._addresses = [parameter.data_ptr() for parameter in self._parameters]
        self._joined = [parameter.detach().clone() for parameter in self._parameters]
        self._note_versions()

    def give_back(self, weights: Optional[List[torch.Tensor]] = None) -> None:
        """The parameters lie in memory of torch's, with these values or those that they have."""
        if weights is None:
            self._copy()  # the exchange may have changed them at its end
        self._places = []
        for index, parameter in enumerate(self._parameters):
            if weights is not None:
                parameter.data = weights[index]
            elif not needs_copy(parameter):
                parameter.data = parameter.data.clone()

    def came(self) -> None:
        """They have come from the exchange."""
        self._copy()
        for parameter in self._parameters:
            written(parameter)
        self._note_versions()

    def _copy(self) -> None:
        if self._copies is not None:
            there = enumerate(zip(self._places, self._parameters))
            self._copies.send((index, place, parameter) for index, (place, parameter) in there if needs_copy(parameter))

    def _note_versions(self) -> None:
        self._versions = [parameter._version for parameter in self._parameters]

    def check(self, exchange: Any) -> None:
        """Before each step and its update. Raises RuntimeError where they have been moved, or written to in vain."""
        if self._joined is not None:
            self._check_unwritten(self._joined)
            self._joined = None
        if self._servers_update:
            self._check_unwritten_since(exchange.written_tensor())
        elif self._copies is not None:
            self._take_writes()
        for name, parameter, address in zip(self._names, self._parameters, self._addresses):
            if parameter.data_ptr() != address:
                raise RuntimeError(
                    f"parameter {name} was given other memory, by .to(), .data= or load_state_dict(assign="
                    f"True): move and load the model before DistributedOptimizer(), and copy into it afterwards"
                )

    def _take_writes(self) -> None:
        """The script's, to weights that are copies."""
        for place, parameter, version in zip(self._places, self._parameters, self._versions):
            if needs_copy(parameter) and parameter._version != version:
                place.copy_(parameter.detach().view(-1))
        self._note_versions()

    def are_others(self, exchange: Any) -> bool:
        """Whether this rank has other weights than the exchange."""
        try:
            self.check(exchange)
        except RuntimeError:
            return True
        return False

    def _check_unwritten(self, joined: List[torch.Tensor]) -> None:
        for name, parameter, values in zip(self._names, self._parameters, joined):
            if not torch.equal(parameter.detach(), values):
                raise RuntimeError(
                    f"parameter {name} was written to after the servers had its weights: load the model before "
                    f"DistributedOptimizer(), and before load_state_dict() of it"
                )

    def _check_unwritten_since(self, written: Optional[int]) -> None:
        """Writes to .data have no version, but are found in the values."""
        for index, (name, parameter, version) in enumerate(zip(self._names, self._parameters, self._versions)):
            if parameter._version != version or index == written:
                raise RuntimeError(
                    f"parameter {name} was written to by this script, and the servers, which have the weights, do not know: "
                    f"write to it before DistributedOptimizer(), or train with mode='allreduce'"
                )
