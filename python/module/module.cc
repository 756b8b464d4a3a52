// syncopate._core: what Python calls. Tensors come as addresses, which the caller keeps valid; nothing here knows
// torch. Every call that may wait releases the interpreter's lock.
#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <deque>

#include "common/os/socket_user.h"
#include "library/communicator.h"
#include "library/fused_update.h"
#include "library/option_agreement.h"
#include "library/rendezvous_server.h"
#include "library/server.h"
#include "library/socket_address.h"
#include "library/strategy_exchange.h"
#include "library/sum_exchange.h"
#include "library/tcp_rendezvous.h"
#include "module/callback_rendezvous.h"
#include "module/failure.h"
#include "module/launch_place.h"
#include "module/step_file.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace syncopate::python {

using namespace library;

namespace {

using Address = std::uintptr_t;
using Tensors = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;  // name and shape

std::span<float> floats_at(Address address, std::size_t count) { return {reinterpret_cast<float*>(address), count}; }

// A group together with what it meets through.
struct JoinedGroup {
  explicit JoinedGroup(nb::callable exchange) : rendezvous(std::move(exchange)) {}

  CallbackRendezvous rendezvous;
  std::shared_ptr<Group> group;
};

// Shares both.
std::shared_ptr<Group> group_of(const std::shared_ptr<JoinedGroup>& joined) { return {joined, joined->group.get()}; }

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

ParamLayout layout_of(const Tensors& tensors) {
  ParamLayout layout;
  for (const auto& [name, shape] : tensors) layout.add(name, shape);
  return layout;
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

std::unique_ptr<SumExchange> connect_sums(const std::shared_ptr<JoinedGroup>& joined, const std::string& name,
                                          const Tensors& tensors, std::size_t bucket_bytes, const std::string& compress,
                                          bool elastic, bool average) {
  const nb::gil_scoped_release unlocked;
  const Result<CodecConfig> codec = parse_codec(compress);
  check(codec.status());
  return check(
      SumExchange::connect(group_of(joined), name, layout_of(tensors),
                           {.bucket_bytes = bucket_bytes, .codec = *codec, .elastic = elastic, .average = average}),
      *joined->group, {.operation = "connecting"});
}

std::unique_ptr<StrategyExchange> connect_strategy(const std::shared_ptr<JoinedGroup>& joined, const std::string& name,
                                                   const Tensors& tensors, const OptionTexts& options,
                                                   const std::vector<std::pair<int, int>>& started) {
  std::vector<StartedServer> servers;
  for (const auto& [number, pid] : started) servers.push_back({number, pid});
  const nb::gil_scoped_release unlocked;
  const Result<TrainingOptions> parsed = TrainingOptions::parse(options, joined->group->size());
  check(parsed.status());
  return check(StrategyExchange::connect(group_of(joined), name, layout_of(tensors), *parsed, servers), *joined->group,
               {.operation = "connecting"});
}

OptimizerConfig rule_of(const OptionTexts& options) {
  const Result<TrainingOptions> parsed = TrainingOptions::parse(options, 1);
  check(parsed.status());
  return parsed->optimizer;
}

// Each tensor is an array of its own, so that saving one does not save its neighbours. It keeps the exchange alive.
using Weights = nb::ndarray<nb::array_api, float, nb::ndim<1>, nb::device::cpu>;
Weights weights_of(nb::handle_t<StrategyExchange> self, std::size_t tensor) {
  const std::span<float> weights = nb::cast<StrategyExchange&>(self).weights(tensor);
  return Weights(weights.data(), {weights.size()}, self);
}

// `size_of(tensor)` is a tensor's number of elements.
template <typename SizeOf>
TensorMemories memories_at(const std::vector<std::vector<Address>>& addresses, const SizeOf& size_of) {
  TensorMemories memories;
  for (const std::vector<Address>& by_tensor : addresses) {
    std::vector<std::span<float>>& memory = memories.emplace_back();
    for (const Address address : by_tensor) memory.push_back(floats_at(address, size_of(memory.size())));
  }
  return memories;
}
TensorMemories memories_at(const StrategyExchange& exchange, const std::vector<std::vector<Address>>& addresses) {
  return memories_at(addresses, [&](std::size_t tensor) { return exchange.weights(tensor).size(); });
}
TensorMemories memories_at(const FusedUpdate& update, const std::vector<std::vector<Address>>& addresses) {
  return memories_at(addresses, [&](std::size_t tensor) { return update.size_of(tensor); });
}

// A tensor, and where its weights and gradient lie.
using Updated = std::tuple<std::size_t, Address, Address>;
void apply(FusedUpdate& update, const std::vector<Updated>& tensors, double learning_rate) {
  const nb::gil_scoped_release unlocked;
  for (const auto& [tensor, weights, gradient] : tensors) {
    const std::size_t size = update.size_of(tensor);
    update.apply(tensor, floats_at(weights, size), floats_at(gradient, size), learning_rate);
  }
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

NB_MODULE(_core, module) {
  translate_failures();
  // At exit Python may drop the module before objects of it; what it says of that is of no use to a user.
  nb::set_leak_warnings(false);

  module.def(
      "ranges_of",
      [](const Tensors& tensors) {
        const ParamLayout layout = layout_of(tensors);
        std::vector<std::pair<std::size_t, std::size_t>> ranges;
        for (const TensorSpec& tensor : layout.tensors()) {
          ranges.emplace_back(tensor.range.begin, tensor.range.end);
        }
        return ranges;
      },
      "tensors"_a, "Where each tensor lies in the arena, in floats: begin and end.");

  module.def(
      "listener_at",
      [](const std::string& address) {
        const Result<SocketAddress> place = resolve(address);
        const std::optional<uid_t> user = place.ok() ? user_who_listens_at(*place) : std::nullopt;
        return user ? describe_user(*user) : std::string();
      },
      "address"_a, "Who listens at \"HOST:PORT\" of this host, as far as the kernel tells.");
  module.def(
      "check_learning_rate", [](double rate) { check(check_learning_rate(rate)); }, "rate"_a,
      "Raises ValueError unless a step can be made at this rate.");

  module.def(
      "run_server",
      [](nb::callable update) {
        const ps::UpdateFunction function = [&update](Range place, std::span<float> weights,
                                                      std::span<const float> gradient, float scale, double rate) {
          const nb::gil_scoped_acquire lock;
          update(place.begin, reinterpret_cast<Address>(weights.data()), reinterpret_cast<Address>(gradient.data()),
                 scale, rate);
        };
        const nb::gil_scoped_release unlocked;
        return run_server(&function);
      },
      "update"_a,
      "The whole of a parameter server's process, whose updates the function makes: of the tensor that begins there in "
      "the arena, at the addresses of weights and gradient, with the gradient's scale and the rate. Returns its exit "
      "code. The function must raise nothing.");

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

  define_launch_place(module);
  define_step_file(module);
  nb::class_<GradientExchange>(module, "GradientExchange", "What becomes of a step's gradients.")
      .def(
          "begin_step",
          [](GradientExchange& self, double learning_rate) {
            check(self.check_rate(learning_rate));
            self.begin_step(learning_rate);
          },
          "learning_rate"_a)
      .def("has", &GradientExchange::has, "tensor"_a)
      .def(
          "gradient",
          [](GradientExchange& self, std::size_t tensor, Address address, std::size_t count, bool is_absent) {
            const nb::gil_scoped_release unlocked;
            self.gradient(tensor, floats_at(address, count), is_absent);
          },
          "tensor"_a, "address"_a, "count"_a, "is_absent"_a = false)
      .def(
          "finish_step",
          [](GradientExchange& self, std::int64_t step) {
            const nb::gil_scoped_release unlocked;
            Result<SyncStats> stats = self.finish_step();
            return check(std::move(stats), self.group(),
                         {.operation = "exchanging gradients", .step = step, .missed = self.missed()});
          },
          "step"_a, "Returns what the step's exchange has cost.")
      .def("absent_everywhere", &GradientExchange::absent_everywhere)
      .def("leave", [](GradientExchange& self) {
        const nb::gil_scoped_release unlocked;
        const Status status = self.leave();
        check(status, self.group(), {.operation = "leaving", .missed = self.missed()});
      });

  nb::class_<SumExchange, GradientExchange>(module, "SumExchange", "Means of gradients, in place.")
      .def_static("connect", &connect_sums, "group"_a, "name"_a, "tensors"_a, "bucket_bytes"_a, "compress"_a,
                  "elastic"_a, "average"_a)
      .def("say", &SumExchange::say, "number"_a, "Before begin_step(): what all ranks must say alike in this step.")
      .def("say_joined", &SumExchange::say_joined, "Before begin_step(): this rank has no more batches.")
      .def("joined", &SumExchange::joined, "After finish_step(): the ranks that have said so.")
      .def("differing", &SumExchange::differing, "After finish_step(): a rank that has said something else; -1: none.")
      .def(
          "continue_from",
          [](SumExchange& self, SumExchange& other, std::int64_t steps, int giver) {
            const nb::gil_scoped_release unlocked;
            check(self.continue_from(other, steps, giver), self.group(), {.operation = "going on"});
          },
          "other"_a, "steps"_a, "giver"_a,
          "In a new group, an operation of all ranks: goes on from what this rank has in `other`, after as many steps "
          "as "
          "the furthest rank, `giver`, has finished.");

  nb::class_<FusedUpdate>(module, "FusedUpdate", "Update rules, for tensors that lie anywhere.")
      .def(nb::init<const std::vector<std::size_t>&, const std::vector<std::size_t>&>(), "groups"_a, "sizes"_a)
      .def(
          "set_rule",
          [](FusedUpdate& self, std::size_t group, const OptionTexts& options) {
            self.set_rule(group, rule_of(options));
          },
          "group"_a, "options"_a)
      .def("apply", &apply, "tensors"_a, "learning_rate"_a, "Number, address of weights and of gradient of each.")
      .def(
          "restore",
          [](FusedUpdate& self, const std::vector<std::int64_t>& updates,
             const std::vector<std::vector<Address>>& memories) { self.restore(updates, memories_at(self, memories)); },
          "updates"_a, "memories"_a, "What the optimizer remembers: the updates of each tensor; each memory by tensor.")
      .def(
          "save",
          [](FusedUpdate& self, const std::vector<std::vector<Address>>& memories) {
            self.save(memories_at(self, memories));
            return self.updates();
          },
          "memories"_a);

  nb::class_<StrategyExchange, GradientExchange>(module, "StrategyExchange", "Gradients in, next weights out.")
      .def_static("connect", &connect_strategy, "group"_a, "name"_a, "tensors"_a, "options"_a, "started"_a,
                  "`started`: number and pid of the servers that this rank has started.")
      .def("weights", &weights_of, "tensor"_a, "Where a tensor's weights lie, by DLPack.")
      .def(
          "restore",
          [](StrategyExchange& self, std::int64_t updates, const std::vector<std::vector<Address>>& memories) {
            check(self.restore(updates, memories_at(self, memories)));
          },
          "updates"_a, "memories"_a, "Before join(), on rank 0: what the optimizer remembers, each memory by tensor.")
      .def(
          "check_one_optimizer", [](const StrategyExchange& self) { check(self.has_one_optimizer()); },
          "Raises ValueError where the optimizer of each rank remembers something else.")
      .def(
          "save",
          [](StrategyExchange& self, const std::vector<std::vector<Address>>& memories) {
            const nb::gil_scoped_release unlocked;
            return check(self.save(memories_at(self, memories)), self.group(),
                         {.operation = "reading what the optimizer remembers"});
          },
          "memories"_a,
          "Between steps, on any rank, alone: writes what the optimizer remembers, each memory by tensor. Returns how "
          "many updates have made it. Under parameter servers the weights become those of the same moment.")
      .def(
          "has_same",
          [](const StrategyExchange& self, std::size_t tensor, Address address, std::size_t count) {
            const nb::gil_scoped_release unlocked;
            return self.has_same(tensor, floats_at(address, count));
          },
          "tensor"_a, "address"_a, "count"_a, "Whether these are the bits of the gradient that was handed over.")
      .def("written_tensor", &StrategyExchange::written_tensor,
           "A tensor of whose weights some were written to since they came from servers; none where ranks have them.")
      .def_prop_ro("steps", &StrategyExchange::steps)
      .def("join", [](StrategyExchange& self) {
        const nb::gil_scoped_release unlocked;
        const Status status = self.join();
        check(status, self.group(), {.operation = "joining", .missed = self.missed()});
      });
}

}  // namespace syncopate::python
