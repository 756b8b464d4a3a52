// Where a run is shown while it goes on, as its options ask for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/board/http_server.h"
#include "experiments/lab/board/run_metrics.h"
#include "experiments/lab/board/tensorboard_log.h"

namespace syncopate::experiments {

// Serves a run's metrics, over all repeats (--metrics).
class MetricsService {
 public:
  // Returns null unless it is asked for. Fails with invalid argument if the port cannot be had.
  static Result<std::unique_ptr<MetricsService>> start(const ResolvedRun& config);

  RunMetrics& metrics() { return *metrics_; }
  // Returns "metrics: http://127.0.0.1:9100/metrics".
  std::string text() const;

 private:
  MetricsService() = default;

  std::unique_ptr<RunMetrics> metrics_;
  std::unique_ptr<HttpServer> server_;  // last, so that it ends before what it serves
};

// The watchers of one repeat.
class RunBoards {
 public:
  // `metrics`, which may be null, outlives the boards. Fails as TensorBoardLog::create does.
  static Result<RunBoards> create(const ResolvedRun& config, RunMetrics* metrics, int repeat, std::int64_t total_steps,
                                  std::int64_t first_step);

  // They live as long as this object stays where it is.
  std::vector<RunWatcher*> watchers();

 private:
  RunMetrics* metrics_ = nullptr;
  std::optional<TensorBoardLog> tensorboard_;
};

}  // namespace syncopate::experiments
