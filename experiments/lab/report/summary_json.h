// summary.json and environment.json as texts (results/README.md explains every key). Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/config/run_config.h"
#include "experiments/lab/report/evaluation_record.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/sharding_report.h"

namespace syncopate::experiments {

// What is known of a run beside its figures.
struct RunFacts {
  std::string run_id;
  std::string outcome = "completed";                // or the verdict line of what ended it
  std::vector<std::string> events;                  // what happened and was survived: "worker 1 lost at step 120"
  std::optional<EvaluationRecord> evaluations;      // of the last repeat
  std::map<std::string, std::string> of_workers;    // what the chief says of itself: device, collective
  std::int64_t parameters = 0;                      // of the model
  std::int64_t steps_per_epoch = 0;                 // of one worker
  std::vector<std::uint64_t> seeds;                 // by repeat
  std::map<std::string, std::int64_t> peak_memory;  // bytes, by process: "worker 1"
  std::optional<ShardingReport> sharding;           // under ps
  // Messages that did not check out and connections that were not let in, at any process of any repeat.
  std::map<std::string, std::int64_t> strangers = {};  // by who noticed: see RunOutcome
  std::string straggler;                               // what --straggler asked for; empty for none
  std::string link;                                    // "emulated, 1 Gb/s each way a process"; empty where it is real
  std::optional<double> best_loss;                     // that any model can reach on the test set, where it is known
  std::optional<CheckpointFigures> checkpoints;        // that the run has written, if it was to
  std::string resumed_from;                            // the checkpoint that it went on from; empty for none
  std::int64_t resumed_at = 0;                         // its step
  std::vector<FaultRecord> faults;                     // what --fault asked for, and what became of each
  // By how much the stamps of each process on another host may be wrong; empty where all share a clock.
  std::map<std::string, Duration> clock_uncertainty;
};

std::string summary_json(std::span<const RunReport> reports, const RunFacts& facts);
// `config`, resolved, says which transport, backend and launcher ran.
std::string environment_json(const Environment& environment, const RunConfig& config);

}  // namespace syncopate::experiments
