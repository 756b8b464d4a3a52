#include "experiments/lab/board/run_boards.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "experiments/lab/report/summary_text.h"

namespace syncopate::experiments {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "localhost";
}

std::string text_of(const ResolvedRun& config) {
  std::string text = fmt::format("{}: {}, batch {} a worker, results in `{}`", describe(config), model_on_data(config),
                                 config.batch_size, config.output);
  if (config.cluster == ClusterKind::kSimulated) {
    text += "\n\n**Simulated**: all times are virtual, and count from when the simulation began.";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<MetricsService>> MetricsService::start(const ResolvedRun& config) {
  std::unique_ptr<MetricsService> service;
  if (!config.metrics) return service;
  service.reset(new MetricsService);
  service->metrics_ = std::make_unique<RunMetrics>(config);
  HttpPage page{.path = "/metrics", .content_type = kMetricsContentType, .body = [metrics = service->metrics_.get()] {
                  return metrics->text();
                }};
  Result<std::unique_ptr<HttpServer>> server = HttpServer::start(*config.metrics, std::move(page));
  if (!server.ok()) return server.status().in(fmt::format("--metrics={}", *config.metrics));
  service->server_ = std::move(*server);
  return service;
}

std::string MetricsService::text() const {
  return fmt::format("metrics: http://127.0.0.1:{}/metrics", server_->port());
}

Result<RunBoards> RunBoards::create(const ResolvedRun& config, RunMetrics* metrics, int repeat,
                                    std::int64_t total_steps, std::int64_t first_step) {
  RunBoards boards;
  boards.metrics_ = metrics;
  if (!config.tensorboard) return boards;
  const std::string of_repeat = config.repeat > 1 ? fmt::format("/repeat-{}", repeat) : "";
  SYNCOPATE_ASSIGN_OR_RETURN(
      boards.tensorboard_,
      TensorBoardLog::create({.folder = config.output + "/tensorboard" + of_repeat,
                              .wall_clock = seconds_since_1970,
                              .host = host_name(),
                              .text = text_of(config),
                              .workers = config.workers,
                              .total_steps = total_steps,
                              .first_step = first_step,
                              .learns = !is_profile(config),
                              .holds_out = config.validation.has_value(),
                              .has_staleness = has_servers(config) || gossips_asynchronously(config)}));
  return boards;
}

std::vector<RunWatcher*> RunBoards::watchers() {
  std::vector<RunWatcher*> all;
  if (metrics_ != nullptr) all.push_back(metrics_);
  if (tensorboard_) all.push_back(&*tensorboard_);
  return all;
}

}  // namespace syncopate::experiments
