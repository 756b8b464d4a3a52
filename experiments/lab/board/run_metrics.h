// RunMetrics: what a run has come to so far, as the text that Prometheus reads (text exposition format 0.0.4). Pure but
// for its lock: the Recorder adds, and a server's thread asks.
//
// Names follow Prometheus' conventions: base units, counters that end with _total. docs/watching.md lists them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/board/run_watcher.h"

namespace syncopate::experiments {

inline constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

class RunMetrics final : public RunWatcher {
 public:
  // Counts over all repeats of a run.
  explicit RunMetrics(const ResolvedRun& config);

  void begin(TimePoint origin) override;
  void add(int worker, const StepRecord& step) override;
  void add(const EvalRecord& eval) override;
  void worker_lost(int rank) override;
  void worker_joined(int rank) override;
  void fault_injected() override;
  void not_finite(std::int64_t step, const std::string& line) override;
  Status tick(TimePoint, TimePoint) override { return {}; }
  Status end() override;

  // Any thread.
  std::string text() const;

 private:
  struct WorkerTotals {
    std::int64_t steps = 0, samples = 0, bytes_out = 0, bytes_in = 0;
    double step_seconds = 0, wait_seconds = 0, staleness = 0;
    std::optional<double> loss;  // of the last batch; none before the first
    double accuracy = 0;         // of the same
    bool trains = false;
  };
  // A part of the text each.
  std::string text_of_workers() const;
  std::string text_of_evaluation() const;

  const std::string info_;  // what runs, as labels
  const bool learns_;
  mutable std::mutex mutex_;           // guards the following
  std::vector<WorkerTotals> workers_;  // by rank
  std::int64_t losses_ = 0, faults_ = 0, not_finite_ = 0;
  std::int64_t epoch_ = 0;
  std::int64_t repeats_ = 0;
  bool trains_ = false;
  std::optional<EvalRecord> newest_eval_;
};

}  // namespace syncopate::experiments
