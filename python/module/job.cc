#include "module/job.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "common/os/socket_user.h"
#include "library/communicator.h"
#include "library/option_agreement.h"
#include "library/rendezvous_server.h"
#include "library/socket_address.h"
#include "library/tcp_rendezvous.h"
#include "library/training_options.h"
#include "module/failure.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace syncopate::python {

using namespace library;

namespace {

std::shared_ptr<JoinedGroup> join(int rank, int size, const std::optional<std::string>& wire, double timeout,
                                  nb::callable exchange, const std::string& shape, const std::string& meets_at,
                                  const std::string& address, const std::string& secret_file,
                                  const std::vector<int>& members, const std::shared_ptr<Tracer>& tracer) {
  auto joined = std::make_shared<JoinedGroup>(std::move(exchange));
  const nb::gil_scoped_release unlocked;
  GroupOptions options{.rank = rank,
                       .size = size,
                       .timeout = from_seconds(timeout),
                       .members = members,
                       .meets_at = meets_at,
                       .address = address,
                       .secret_file = secret_file,
                       .tracer = tracer};
  if (wire) {
    const Result<Wire> parsed = parse_wire(*wire);
    check(parsed.status());
    options.wire = *parsed;
  }
  if (!shape.empty()) {
    const Result<LinkShape> link = LinkShape::parse(shape);
    check(link.status());
    options.shape = *link;
  }
  Result<std::shared_ptr<Group>> group = Group::join(options, joined->rendezvous);
  check(group.status());
  joined->group = std::move(*group);
  return joined;
}

std::unique_ptr<RendezvousServer> start_server(const std::string& address) {
  Result<std::unique_ptr<RendezvousServer>> server = RendezvousServer::start(address);
  check(server.status());
  return std::move(*server);
}

std::unique_ptr<TcpRendezvous> made(Result<std::unique_ptr<TcpRendezvous>> rendezvous) {
  check(rendezvous.status());
  return std::move(*rendezvous);
}

std::vector<std::string> exchange(TcpRendezvous& rendezvous, const std::string& group, int rank, int size,
                                  const std::string& value, double left) {
  const nb::gil_scoped_release unlocked;
  Result<std::vector<std::string>> values =
      rendezvous.exchange(group, rank, size, value, SteadyClock().now() + from_seconds(left));
  check(values.status());
  return std::move(*values);
}

std::vector<std::string> exchange_in_group(const JoinedGroup& joined, const std::string& name,
                                           const std::string& value) {
  const nb::gil_scoped_release unlocked;
  Group& group = *joined.group;
  Result<std::vector<std::string>> values =
      group.rendezvous().exchange(name, group.rank(), group.size(), value, group.deadline());
  check(values.status());
  return std::move(*values);
}

// Holds what owns the memory that work is on until that is done, whatever becomes of the tickets.
struct HoldingCommunicator {
  std::deque<std::pair<std::uint64_t, nb::object>> held;  // by ticket; used under the interpreter's lock
  std::unique_ptr<Communicator> communicator;             // last: its end waits for the work that is running

  std::uint64_t hold(std::uint64_t ticket, nb::object owner) {
    for (const std::uint64_t done = communicator->done(); !held.empty() && held.front().first <= done;) {
      held.pop_front();
    }
    held.emplace_back(ticket, std::move(owner));
    return ticket;
  }
};

std::unique_ptr<HoldingCommunicator> connect(const std::shared_ptr<JoinedGroup>& joined, const std::string& name) {
  auto holding = std::make_unique<HoldingCommunicator>();
  const nb::gil_scoped_release unlocked;
  holding->communicator =
      check(Communicator::connect(group_of(joined), name), *joined->group, {.operation = "connecting"});
  return holding;
}

std::uint64_t sum(HoldingCommunicator& self, const std::vector<std::pair<Address, std::size_t>>& parts, float scale,
                  nb::object owner) {
  std::vector<std::span<float>> spans;
  for (const auto& [address, count] : parts) spans.push_back(floats_at(address, count));
  return self.hold(self.communicator->sum(std::move(spans), scale), std::move(owner));
}

std::uint64_t broadcast(HoldingCommunicator& self, Address address, std::size_t bytes, int root, nb::object owner) {
  return self.hold(self.communicator->broadcast({reinterpret_cast<std::byte*>(address), bytes}, root),
                   std::move(owner));
}

void wait(HoldingCommunicator& self, std::uint64_t ticket, const std::string& operation) {
  const nb::gil_scoped_release unlocked;
  Communicator& communicator = *self.communicator;
  const Status status = communicator.wait(ticket);
  check(status, communicator.group(), {.operation = operation, .missed = communicator.missed()});
}

SyncStats take_costs(HoldingCommunicator& self, std::int64_t waited) {
  SyncStats costs = self.communicator->take_costs();
  costs.exposed_wait = Duration(waited);
  return costs;
}

SyncStats plus(SyncStats one, const SyncStats& other) {
  one.exposed_wait += other.exposed_wait;
  one.communication += other.communication;
  one.codec += other.codec;
  one.bytes_out += other.bytes_out;
  one.bytes_in += other.bytes_in;
  return one;
}

}  // namespace

void define_job(nb::module_& module) {
  module.def(
      "listener_at",
      [](const std::string& address) {
        const Result<SocketAddress> place = resolve(address);
        const std::optional<uid_t> user = place.ok() ? user_who_listens_at(*place) : std::nullopt;
        return user ? describe_user(*user) : std::string();
      },
      "address"_a, "Who listens at \"HOST:PORT\" of this host, as far as the kernel tells.");
  nb::class_<RendezvousServer>(module, "RendezvousServer", "Where ranks meet, in rank 0's process.")
      .def_static("start", &start_server, "address"_a, "Listens at \"HOST:PORT\"; port 0 is any that is free.")
      .def(
          "require_proof",
          [](RendezvousServer& self, const TcpRendezvous& rendezvous, const JoinedGroup& group) {
            self.require_proof(rendezvous.prefix(), group.group->keys());
          },
          "rendezvous"_a, "group"_a, "From now on, nobody else meets in the names of this job.")
      .def_prop_ro("address", &RendezvousServer::address);
  nb::class_<TcpRendezvous>(module, "TcpRendezvous", "A member's side of a RendezvousServer, for Group.join().")
      .def_static(
          "make",
          [](const std::string& address, const std::string& prefix) {
            return made(TcpRendezvous::make(address, prefix));
          },
          "address"_a, "prefix"_a)
      .def(
          "another", [](const TcpRendezvous& self) { return made(self.another()); }, "The same for another thread.")
      .def("__call__", &exchange, "group"_a, "rank"_a, "size"_a, "value"_a, "seconds"_a);

  nb::class_<JoinedGroup>(module, "Group", "The ranks of a job, connected.")
      .def_static("join", &join, "rank"_a, "size"_a, "wire"_a.none(), "timeout"_a, "exchange"_a, "shape"_a = "",
                  "meets_at"_a = "", "address"_a = "", "secret_file"_a = "", "members"_a = std::vector<int>(),
                  "tracer"_a.none() = nb::none())
      .def_static(
          "check_options",
          [](const OptionTexts& options, int workers) {
            const Result<TrainingOptions> parsed = TrainingOptions::parse(options, workers);
            check(parsed.status());
            return parsed->texts();
          },
          "options"_a, "workers"_a, "Returns what they come to. Raises ValueError for options that no job can have.")
      .def(
          "agree",
          [](const std::shared_ptr<JoinedGroup>& self, const std::string& name, const OptionTexts& options,
             const std::string& operation) {
            const nb::gil_scoped_release unlocked;
            check(agree_on_options(*self->group, name, options), *self->group, {.operation = operation});
          },
          "name"_a, "options"_a, "operation"_a = "connecting",
          "An operation of all ranks: raises ValueError on each, naming what differs, unless all have the same "
          "options. `operation` says in the message what they were about to do.")
      .def(
          "give_secret", [](const JoinedGroup& self, int file) { check(self.group->give_secret(file)); }, "file"_a,
          "Writes what a server needs to be admitted to a pipe.")
      .def("exchange", &exchange_in_group, "name"_a, "value"_a,
           "Returns the values of all ranks under a name that is used once. Others' values are not believed.")
      .def(
          "prove",
          [](const JoinedGroup& self, const std::string& place, const std::string& value) {
            return with_proof(self.group->keys(), place, value);
          },
          "place"_a, "value"_a, "Returns the value with a proof that it is of this job, to stand at a place.")
      .def(
          "proven",
          [](const JoinedGroup& self, const std::string& place, const std::string& text) {
            return proven(self.group->keys(), place, text);
          },
          "place"_a, "text"_a, "Returns the value of what prove() has returned; None for any other text.")
      .def_prop_ro("rank", [](const JoinedGroup& self) { return self.group->rank(); })
      .def_prop_ro("size", [](const JoinedGroup& self) { return self.group->size(); })
      .def_prop_ro("wire", [](const JoinedGroup& self) { return self.group->wire() == Wire::kShm ? "shm" : "sockets"; })
      .def_prop_ro("address", [](const JoinedGroup& self) { return self.group->address(); })
      .def(
          "servers_to_start",
          [](const JoinedGroup& self, int servers) { return self.group->servers_to_start(servers); }, "servers"_a,
          "Which of so many servers this rank starts.")
      .def_prop_ro("shape",
                   [](const JoinedGroup& self) {
                     const std::optional<LinkShape>& shape = self.group->shape();
                     return shape ? shape->to_string() : std::string();
                   })
      .def_prop_ro("timeout", [](const JoinedGroup& self) { return seconds(self.group->timeout()); })
      .def(
          "set_timeout",
          [](const JoinedGroup& self, double timeout) { self.group->set_timeout(from_seconds(timeout)); }, "timeout"_a,
          "Seconds, for operations that begin from now on.")
      .def(
          "losses",
          [](const JoinedGroup& self) {
            std::vector<std::pair<int, std::string>> losses;
            for (const Loss& loss : self.group->watch().losses())
              losses.emplace_back(loss.process.rank, describe(loss));
            return losses;
          },
          "Who is lost so far: the rank when the job began, -1 for a server, and a text.")
      .def(
          "tell_losses", [](const JoinedGroup& self, int file) { self.group->watch().tell(file); }, "file"_a,
          "From now on, a server is told by its input which ranks are lost.")
      .def(
          "forgive", [](const JoinedGroup& self) { self.group->watch().forgive(); },
          "From now on, processes may end: nobody is told.");

  nb::class_<HoldingCommunicator>(
      module, "Communicator",
      "Sums and broadcasts, in the order in which they are asked for. `owner` has the memory "
      "that they are on, and is held until they are done.")
      .def_static("connect", &connect, "group"_a, "name"_a)
      .def("sum", &sum, "parts"_a, "scale"_a, "owner"_a, "Begins to sum (address, floats) in place; returns a ticket.")
      .def("broadcast", &broadcast, "address"_a, "bytes"_a, "root"_a, "owner"_a,
           "Begins a broadcast; returns a ticket.")
      .def(
          "barrier", [](HoldingCommunicator& self) { return self.communicator->barrier(); },
          "Begins a barrier; returns a ticket.")
      .def("wait", &wait, "ticket"_a, "operation"_a, "Returns when the work of this ticket is done.")
      .def(
          "done", [](const HoldingCommunicator& self) { return self.communicator->done(); },
          "Returns the last ticket whose work is done, or has failed.")
      .def(
          "interrupt", [](HoldingCommunicator& self) { self.communicator->interrupt(); },
          "What is not done fails, as does all that comes later.")
      .def("take_costs", &take_costs, "waited"_a,
           "Returns what sums have cost since the last call, of which the caller has waited so many nanoseconds.");

  nb::class_<SyncStats>(module, "SyncStats", "What a step's synchronisation costs.")
      .def_prop_ro("exposed_wait", [](const SyncStats& self) { return seconds(self.exposed_wait); })
      .def("plus", &plus, "other"_a, "Of two exchanges of all ranks' sums.");
}

}  // namespace syncopate::python
