// Writes summary.json and environment.json as texts (results/README.md explains every key). Pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/cluster/coordinator/health_watch.h"
#include "experiments/cluster/faults/fault_record.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/evaluation_record.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/sharding_report.h"
#include "experiments/lab/trace/trace_file.h"

namespace syncopate::experiments {

// How a run on a simulated cluster was simulated. All its other times are virtual.
struct SimulationFacts {
  double wall_seconds = 0;   // that the program took, all repeats together, without measuring compute
  std::int64_t events = 0;   // that were simulated, all repeats together: the same for the same command
  std::string compute;       // the time of a worker's step, and where it comes from
  std::string processing;    // what updates, sums and codecs take; empty: no time
  std::string network;       // the model; empty: nothing is sent
  std::string profile;       // where the sizes come from, if it is a profile that trains; else empty
  std::string cluster;       // the file that describes it; else empty
  std::string without_time;  // what takes no virtual time: "evaluation, reading data"
  double timeout = 0;        // seconds that ended a wait, where the usual --timeout is too short; else 0
};

// The facts of a run besides its figures.
struct RunFacts {
  std::string run_id;
  std::string outcome = "completed";                // or the verdict line of what ended it
  std::vector<std::string> events;                  // what happened and was survived: "worker 1 lost at step 120"
  std::optional<EvaluationRecord> evaluations;      // of the last repeat
  std::map<std::string, std::string> of_workers;    // facts that the chief reports: device, collective
  std::int64_t parameters = 0;                      // number of the model's parameters
  std::int64_t steps_per_epoch = 0;                 // of one worker
  std::vector<std::uint64_t> seeds;                 // by repeat
  std::map<std::string, std::int64_t> peak_memory;  // bytes, by process: "worker 1"
  std::optional<ShardingReport> sharding;           // ps only
  // Messages that failed their checks and connections that were rejected, at any process of any repeat.
  std::map<std::string, std::int64_t> rejected_connections = {};  // by the process that noticed: see RunOutcome
  std::string straggler;                                          // what --straggler asked for; empty for none
  std::string link;  // "emulated, 1 Gb/s each way a process"; empty if the link is not emulated
  std::optional<SimulationFacts> simulation;     // empty: it ran on real hosts
  std::string data = {};                         // of own data: how many samples, of what form; else empty
  std::optional<double> best_loss;               // the lowest loss that any model can reach on the test set, if known
  std::optional<CheckpointFigures> checkpoints;  // checkpoints that the run has written, if it was to write any
  std::string resumed_from;                      // the checkpoint that it resumed from; empty for none
  std::int64_t resumed_at = 0;                   // the step of that checkpoint
  std::int64_t resumed_samples = 0;              // trained until then, by all workers
  std::optional<double> resumed_seconds;         // of training until then; empty: the checkpoint does not tell
  std::optional<HealthRecord> health;            // what was not finite, of the first repeat in which anything was
  std::vector<FaultRecord> faults;               // the faults of --fault, and the outcome of each
  // How far the time stamps of each process on another host may be wrong; empty if all share a clock.
  std::map<std::string, Duration> clock_uncertainty;
  std::optional<TraceFacts> trace = {};  // of the first repeat, if it was traced
};

std::string summary_json(std::span<const RunReport> reports, const RunFacts& facts);
// `config`, resolved, says which transport, backend and launcher ran.
std::string environment_json(const Environment& environment, const ResolvedRun& config);

}  // namespace syncopate::experiments
