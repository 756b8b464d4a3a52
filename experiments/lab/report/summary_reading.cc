#include "experiments/lab/report/summary_reading.h"

#include <fmt/format.h>

#include "experiments/lab/report/json_members.h"
#include "experiments/lab/report/report_json.h"

namespace syncopate::experiments {
Result<RunSummary> read_summary(std::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadJson whole, json_object_in(json));
  std::string error;
  const JsonMembers members(whole, error);
  members.require("each_repeat");
  RunSummary summary{.outcome = members.text("outcome"),
                     .events = {},
                     .device = members.object("facts").text("device"),
                     .parameters = members.count("parameters"),
                     .steps_per_epoch = members.count("steps_per_epoch"),
                     .reports = {},
                     .seeds = {}};
  if (members.has("simulated")) {
    const JsonMembers simulated = members.object("simulated");
    summary.simulated_network = simulated.text("network");
    summary.simulated_compute = simulated.text("compute");
  }
  if (members.has("resumed_from")) {
    const JsonMembers resumed = members.object("resumed_from");
    summary.resumed_at = resumed.count("step");
    summary.resumed_seconds = resumed.maybe_number("seconds");
    summary.counts_from_resume = !resumed.has("samples");
  }
  if (members.has("not_finite")) summary.not_finite = members.object("not_finite").object("first").text("text");
  const ReadJson& repeats = members.list("each_repeat");
  if (repeats.size() > kMostRepeatsRead)
    return Status::data_loss(fmt::format("each_repeat has more than {} entries", kMostRepeatsRead));
  for (const ReadJson& repeat : repeats) {
    if (!repeat.is_object()) return Status::data_loss("each_repeat must be a list of objects");
    RunReport& report = summary.reports.emplace_back(read_report(JsonMembers(repeat, error)));
    if (!summary.counts_from_resume) continue;
    report.seconds_to_target.reset();
    report.samples_to_target.reset();
  }
  for (const ReadJson& event : members.list("events")) {
    if (!event.is_string()) return Status::data_loss("events must be a list of texts");
    summary.events.push_back(event.get<std::string>());
  }
  for (const ReadJson& seed : members.list("seeds")) {
    if (!seed.is_number_unsigned()) return Status::data_loss("seeds must be a list of whole numbers");
    summary.seeds.push_back(seed.get<std::uint64_t>());
  }
  if (!error.empty()) return Status::data_loss(error);
  return summary;
}

Environment environment_of(const JsonMembers& members) {
  return {.host = members.text("host"),
          .kernel = members.text("kernel"),
          .cpu_model = members.text("cpu_model"),
          .cores = static_cast<int>(members.count("cores")),
          .memory_gib = members.number("memory_gib"),
          .compiler = members.text("compiler"),
          .build = members.text("build"),
          .vector_set = members.text("vector_set"),
          .sanitizers = members.text("sanitizers"),
          .commit = members.text("commit")};
}

Result<Environment> read_environment(std::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadJson whole, json_object_in(json));
  std::string error;
  const JsonMembers members(whole, error);
  for (const char* name : {"host", "cores"}) members.require(name);
  const Environment environment = environment_of(members);
  if (!error.empty()) return Status::data_loss(error);
  return environment;
}

}  // namespace syncopate::experiments
