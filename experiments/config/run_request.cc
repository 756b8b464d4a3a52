#include "experiments/config/run_request.h"

#include <algorithm>

namespace syncopate::experiments {

double usual_stall_warning_seconds(double timeout_seconds) { return std::min(5.0, timeout_seconds / 4); }

std::int64_t usual_chunk_bytes(TransportKind transport) {
  return transport == TransportKind::kShm ? 256 * 1024 : 1024 * 1024;
}

int workers_of(const RunRequest& request) {
  if (request.workers) return *request.workers;
  if (!is_distributed(request)) return 1;
  return request.hosts.empty() ? 2 : total_slots(request.hosts);
}

int batch_size_of(const RunRequest& request) {
  if (request.global_batch_size) return static_cast<int>(*request.global_batch_size / workers_of(request));
  return request.batch_size.value_or(kUsualBatchSize);
}

int warmup_steps_of(const RunRequest& request) {
  const std::int64_t half = request.steps ? *request.steps / 2 : kUsualWarmupSteps;
  return request.warmup_steps.value_or(static_cast<int>(std::min<std::int64_t>(kUsualWarmupSteps, half)));
}

double learning_rate_of(const RunRequest& request) {
  return request.learning_rate.value_or(traits_of(request.optimizer).usual_rate);
}

}  // namespace syncopate::experiments
