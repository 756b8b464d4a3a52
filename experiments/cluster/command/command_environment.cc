#include "experiments/cluster/command/command_environment.h"

#include <fmt/format.h>

namespace syncopate::experiments {

std::vector<std::pair<std::string, std::string>> command_environment(const ResolvedRun& config, int rank) {
  const bool is_in_memory = config.transport == TransportKind::kShm || config.mode == Mode::kLocal;
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", fmt::to_string(rank)},
      {"LOCAL_RANK", fmt::to_string(rank)},
      {"WORLD_SIZE", fmt::to_string(config.workers)},
      {"LOCAL_WORLD_SIZE", fmt::to_string(config.workers)},
      {"MASTER_ADDR", "127.0.0.1"},
      // One thread for each process, as our own workers have, so that replicas do not compete for the cores.
      {"OMP_NUM_THREADS", "1"},
      {"PYTHONUNBUFFERED", "1"},
      {"SYNCOPATE_MODE", is_ps(config) ? "ps" : "allreduce"},  // one worker alone sums with nobody
      {"SYNCOPATE_WIRE", is_in_memory ? "shm" : "sockets"},
      {"SYNCOPATE_TIMEOUT", fmt::format("{}", config.timeout_seconds)},
      {"SYNCOPATE_SEED", fmt::to_string(config.seed)}};
  if (config.shape && !is_in_memory) variables.emplace_back("SYNCOPATE_SHAPE", config.shape->to_string());
  const bool is_compressed = may_compress(config) && compresses(config);
  variables.emplace_back("SYNCOPATE_COMPRESS", is_compressed ? to_string(config.compress) : "none");
  if (is_ps(config)) {
    variables.emplace_back("SYNCOPATE_CONSISTENCY", config.consistency.to_string());
    variables.emplace_back("SYNCOPATE_SERVERS", fmt::to_string(config.servers));
    variables.emplace_back("SYNCOPATE_BUCKET_BYTES", fmt::to_string(config.chunk_bytes));
  } else if (config.bucket_bytes) {
    variables.emplace_back("SYNCOPATE_BUCKET_BYTES", fmt::to_string(*config.bucket_bytes));
  }
  return variables;
}

}  // namespace syncopate::experiments
