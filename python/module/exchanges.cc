#include "module/exchanges.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/finite.h"
#include "library/fused_update.h"
#include "library/strategy_exchange.h"
#include "library/sum_exchange.h"
#include "module/failure.h"
#include "module/job.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace syncopate::python {

using namespace library;

namespace {

using Tensors = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;  // name and shape

ParamLayout layout_of(const Tensors& tensors) {
  ParamLayout layout;
  for (const auto& [name, shape] : tensors) layout.add(name, shape);
  return layout;
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

}  // namespace

void define_exchanges(nb::module_& module) {
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
      "all_finite",
      [](Address address, std::size_t count) {
        const nb::gil_scoped_release unlocked;
        return all_finite(floats_at(address, count));
      },
      "address"_a, "count"_a, "Whether so many floats are all finite numbers.");

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
