#include "experiments/config/options/option_groups.h"

namespace syncopate::experiments {
namespace {

OptionSpec fault() {
  OptionSpec option{
      .group = "Job",
      .name = "fault",
      .placeholder = "LIST",
      .sentence =
          "Lets things go wrong: kill:server0@step200 kills a process when that step begins, "
          "stop:worker1@10s+3s stops one for 3 s, cut:worker2@5s+2s lets its links carry nothing for 2 s, "
          "delay:, duplicate: and reorder:server0@5s+2s let messages from it come late, twice, or out of order for "
          "2 s, nan:worker1@step50 plants a NaN in the gradient that it computes then, random:7 draws a few kills, "
          "stops and cuts that the run outlasts, random:7:any also such as end it, "
          "churn:4s kills a worker every 4 s in the mean.",
      .range =
          "kill:, stop:, cut:, delay:, duplicate:, reorder: or nan:, then worker, server or standby and a rank, "
          "evaluator, "
          "any-worker or any-server, then @stepN or @TIME since training began, then +TIME but for kill and nan; "
          "random:SEED "
          "or random:SEED:any; churn:TIME; several between commas, or given several times",
      .usual = "none",
      .is_text = true};
  option.is_list = true;
  option.set = [](RunRequest& request, const std::string& value) -> Status {
    const Result<FaultSchedule> parsed = FaultSchedule::parse(value);
    if (!parsed.ok()) return parsed.status().in("--fault=" + value);
    if (parsed->empty()) return Status::invalid_argument("--fault=: names no fault; leave it out");
    request.faults = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.faults.to_string(); };
  return option;
}

}  // namespace

void add_fault_options(std::vector<OptionSpec>& table) { table.push_back(fault()); }

}  // namespace syncopate::experiments
