#include "module/step_file.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <utility>

#include "common/os/core_wait.h"
#include "common/step_file.h"
#include "common/sync_strategy.h"
#include "common/trace/trace_plan.h"
#include "module/failure.h"

namespace nb = nanobind;
using namespace nanobind::literals;

namespace syncopate::python {
namespace {

// What run_experiment is told; time.monotonic_ns() is SteadyClock's. Used by the thread that trains.
struct StepFile {
  StepFileWriter writer;
  std::optional<CoreWait> core_wait = CoreWait::of_this_thread();
  Duration until_step{};                     // core_wait at the end of the last step
  Duration until_waiting{};                  // and before this one's gradients are waited for
  std::shared_ptr<Tracer> tracer = nullptr;  // null: nothing is traced, or all has been told
};

const std::map<std::string, TraceKind> kPhases = {{"step", TraceKind::kStep},
                                                  {"data", TraceKind::kData},
                                                  {"forward", TraceKind::kForward},
                                                  {"backward", TraceKind::kBackward},
                                                  {"synchronise", TraceKind::kSynchronise},
                                                  {"update", TraceKind::kUpdate}};

std::unique_ptr<StepFile> create_step_file(const std::string& path, const std::shared_ptr<Tracer>& tracer) {
  Result<StepFileWriter> writer = StepFileWriter::create(path);
  check(writer.status());
  auto file = std::make_unique<StepFile>(std::move(*writer));
  file->tracer = tracer;
  if (tracer) tracer->begin_step(0);
  return file;
}

std::shared_ptr<Tracer> make_tracer(const std::string& plan) {
  static const SteadyClock clock;
  const Result<TracePlan> parsed = TracePlan::parse(plan);
  check(parsed.status());
  return parsed->make_tracer(clock);
}

void tell_trace(StepFile& file, ToldTrace told) {
  if (!told.events.empty() || told.dropped > 0) file.writer.add(told, SteadyClock().now());
}

// Between steps, when no thread records anything.
void end_trace(StepFile& file) {
  if (!file.tracer) return;
  Tracer::Recorded recorded = std::exchange(file.tracer, nullptr)->take();
  tell_trace(file, {.events = std::move(recorded.events), .dropped = recorded.dropped});
}

void add_phase(StepFile& file, const std::string& phase, std::int64_t step, std::int64_t begin, std::int64_t end) {
  if (!file.tracer || !file.tracer->in_step()) return;
  file.tracer->add({.kind = kPhases.at(phase),
                    .number = step,
                    .begin = TimePoint(Duration(begin)),
                    .end = TimePoint(Duration(end))});
}

// Servers answer the last traced push in the step behind it.
void begin_traced_step(StepFile& file, std::int64_t step) {
  if (!file.tracer) return;
  file.tracer->begin_step(step);
  if (step > file.tracer->steps().last + 1) end_trace(file);
}

void add_server_trace(StepFile& file, std::int64_t server, const std::vector<TraceNumbers>& events,
                      std::int64_t dropped) {
  ToldTrace told{.server = server, .events = {}, .dropped = dropped};
  for (const TraceNumbers& numbers : events) {
    const std::optional<TraceEvent> event = trace_event_in(numbers);
    if (event) {
      told.events.push_back(*event);
    } else {
      ++told.dropped;
    }
  }
  tell_trace(file, std::move(told));
}

std::int64_t exchanged(StepFile& file) {
  if (file.core_wait) file.until_waiting = file.core_wait->total();
  return SteadyClock().now().time_since_epoch().count();
}

// For step(), which may come later.
std::pair<std::int64_t, std::int64_t> end_step(StepFile& file) {
  if (!file.core_wait) return {-1, 0};
  const Duration total = file.core_wait->total();
  const Duration before = std::exchange(file.until_step, total);
  return {(total - before).count(), (file.until_waiting - before).count()};
}

void add_step(StepFile& file, std::int64_t step, const std::array<std::int64_t, 8>& times, std::int64_t samples,
              double loss, double accuracy, const SyncStats& stats) {
  const auto& [begin, end, data, forward, backward, update, core_wait, compute_core_wait] = times;
  StepRecord record{.step = step,
                    .end = TimePoint(Duration(end)),
                    .total = Duration(end - begin),
                    .data = Duration(data),
                    .forward = Duration(forward),
                    .backward = Duration(backward),
                    .core_wait = core_wait < 0 ? std::nullopt : std::optional(Duration(core_wait)),
                    .compute_core_wait = Duration(compute_core_wait),
                    .sync = stats,
                    .samples = samples,
                    .loss = loss,
                    .accuracy = accuracy};
  record.sync.optimizer += Duration(update);
  file.writer.add(record, record.end);
}

void add_evaluation(StepFile& file, std::int64_t step, std::int64_t taken, double loss, double accuracy, double epoch) {
  file.writer.add(
      ToldEvaluation{
          .step = step, .taken = TimePoint(Duration(taken)), .loss = loss, .accuracy = accuracy, .epoch = epoch},
      SteadyClock().now());
}

void add_fact(StepFile& file, const std::string& name, const std::string& value) {
  file.writer.add(ToldFact{name, value}, SteadyClock().now());
}

void add_server(StepFile& file, std::int64_t server, const std::vector<std::int64_t>& figures) {
  file.writer.add(ToldServer{.server = server, .figures = server_figures_in(figures)}, SteadyClock().now());
}

}  // namespace

void define_step_file(nb::module_& module) {
  nb::class_<Tracer>(module, "Tracer", "Records what a process does in traced steps.")
      .def_static("make", &make_tracer, "plan"_a, "`plan`: as SYNCOPATE_TRACE has it.")
      .def("begin_membership", &Tracer::begin_membership, "number"_a);

  nb::class_<StepFile>(module, "StepFile", "What run_experiment is told of this process's training.")
      .def_static("create", &create_step_file, "path"_a, "tracer"_a.none() = nb::none())
      .def(
          "step", &add_step, "step"_a, "times"_a, "samples"_a, "loss"_a, "accuracy"_a, "stats"_a,
          "Adds a step. `times` are its begin and its end, what its data, forward, backward and update took of it, and "
          "what end_step() has returned for it, in nanoseconds of time.monotonic_ns().")
      .def("exchanged", &exchanged, "Gradients are about to be waited for. Returns the time.")
      .def("end_step", &end_step,
           "The step has ended. Returns how long it has waited for a core, and of that before "
           "exchanged(); -1 if that is not known.")
      .def("evaluation", &add_evaluation, "step"_a, "taken"_a, "loss"_a, "accuracy"_a, "epoch"_a)
      .def("fact", &add_fact, "name"_a, "value"_a)
      .def("server", &add_server, "server"_a, "figures"_a, "What a server, which has ended, says that it has done.")
      .def("phase", &add_phase, "phase"_a, "step"_a, "begin"_a, "end"_a,
           "Records a part of the step that is under way, if that is traced.")
      .def("begin_step", &begin_traced_step, "step"_a, "The step before has ended, and is recorded.")
      .def("end_trace", &end_trace, "Between steps: tells what has been traced; no more is.")
      .def("server_trace", &add_server_trace, "server"_a, "events"_a, "dropped"_a)
      .def("flush", [](StepFile& self) { check(self.writer.flush()); });
}

}  // namespace syncopate::python
