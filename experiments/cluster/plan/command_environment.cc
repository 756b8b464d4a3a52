#include "experiments/cluster/plan/command_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace syncopate::experiments {
namespace {

constexpr std::array<std::string_view, 7> kAsked = {
    "SYNCOPATE_MODE",     "SYNCOPATE_CONSISTENCY",  "SYNCOPATE_SERVERS", "SYNCOPATE_WIRE",
    "SYNCOPATE_COMPRESS", "SYNCOPATE_BUCKET_BYTES", "SYNCOPATE_ELASTIC"};

// Which of its host's workers one is, and how many these are.
struct LocalRank {
  int rank = 0;
  int size = 1;
};

LocalRank local_rank_of(const ResolvedRun& config, int rank) {
  if (!spans_hosts(config)) return {rank, config.workers};
  const std::vector<std::size_t> hosts = hosts_of_workers(hosts_of(config), config.workers);
  const std::size_t own = hosts[static_cast<std::size_t>(rank)];
  const auto first = std::ranges::find(hosts, own);
  return {rank - static_cast<int>(first - hosts.begin()), static_cast<int>(std::ranges::count(hosts, own))};
}

// Where the kernel limits the rate, the program emulates the delay alone, behind the fastest link that a shape can say.
std::string shape_text(LinkShape link) {
  constexpr std::int64_t kFastest = 1'000'000'000'000;
  if (link.bits_per_second == 0) link.bits_per_second = kFastest;
  return link.to_string();
}

}  // namespace

std::string asked_of_program(const ResolvedRun& config) {
  std::string text;
  for (const auto& [name, value] : command_environment(config, 0)) {
    if (std::ranges::find(kAsked, name) == kAsked.end()) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> command_environment(const ResolvedRun& config, int rank) {
  const bool is_in_memory = config.transport == TransportKind::kShm || !is_distributed(config);
  const LocalRank local = local_rank_of(config, rank);
  std::vector<std::pair<std::string, std::string>> variables = {
      {"RANK", fmt::to_string(rank)},
      {"LOCAL_RANK", fmt::to_string(local.rank)},
      {"WORLD_SIZE", fmt::to_string(config.workers)},
      {"LOCAL_WORLD_SIZE", fmt::to_string(local.size)},
      // One thread for each process, as our own workers have, so that replicas do not compete for the cores.
      {"OMP_NUM_THREADS", "1"},
      {"PYTHONUNBUFFERED", "1"},
      {"SYNCOPATE_MODE", has_servers(config) ? "ps" : "allreduce"},  // one worker alone sums with nobody
      {"SYNCOPATE_WIRE", is_in_memory ? "shm" : "sockets"},
      {"SYNCOPATE_TIMEOUT", fmt::format("{}", config.timeout_seconds)},
      {"SYNCOPATE_SEED", fmt::to_string(config.seed)}};
  if (!spans_hosts(config)) variables.emplace_back(kMasterAddress, "127.0.0.1");
  if (const auto link = emulated_link_of(config); link && !is_in_memory) {
    variables.emplace_back("SYNCOPATE_SHAPE", shape_text(*link));
  }
  const bool is_compressed = may_compress(config) && compresses(config);
  variables.emplace_back("SYNCOPATE_COMPRESS", is_compressed ? to_string(config.compress) : "none");
  if (config.elastic) variables.emplace_back("SYNCOPATE_ELASTIC", "1");
  if (!config.compared.empty()) variables.emplace_back("SYNCOPATE_COMPARED", config.compared);
  if (config.trace) variables.emplace_back("SYNCOPATE_TRACE", trace_plan_of(config).to_text());
  if (has_servers(config)) {
    variables.emplace_back("SYNCOPATE_CONSISTENCY", config.consistency.to_string());
    variables.emplace_back("SYNCOPATE_SERVERS", fmt::to_string(config.servers));
    variables.emplace_back("SYNCOPATE_BUCKET_BYTES", fmt::to_string(config.chunk_bytes));
  } else if (config.bucket_bytes) {
    variables.emplace_back("SYNCOPATE_BUCKET_BYTES", fmt::to_string(*config.bucket_bytes));
  }
  return variables;
}

}  // namespace syncopate::experiments
