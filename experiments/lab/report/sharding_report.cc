#include "experiments/lab/report/sharding_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/text/format.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostRows = 16;
constexpr double kUneven = 1.05;

// What a shard is to hold.
const char* measure_of(const ShardingReport& report) { return report.sharding.parts.empty() ? "the mean" : "its part"; }

// Returns "server 1", or "server 1, shard 3" if a server has several; shards are numbered over all servers.
std::string name_of_shard(const ShardingReport& report, std::size_t shard) {
  const int server = report.group.server_of_shard(static_cast<int>(shard));
  const std::string name = fmt::format("server {}", server);
  return report.group.shards_of_server(server) == 1 ? name : fmt::format("{}, shard {}", name, shard);
}

}  // namespace

bool reports_sharding(const ResolvedRun& config) {
  return has_servers_alone(config) && !runs_command(config) && !is_pipelined(config);
}

ShardingReport report_sharding(const ResolvedRun& config, const ParamLayout& layout) {
  ps::Sharding sharding = sharding_of(config);
  if (sharding.chunk_bytes == ps::kUncut) sharding.chunk_bytes = layout.dense().size() * sizeof(float);
  return {.sharding = sharding,
          .group = ps_group_of(config),
          .loads = ps::loads_of(ps::shard_map(layout, shards_of(config), sharding), sharding.parts)};
}

std::string to_text(const ShardingReport& report) {
  const ps::ShardLoads& loads = report.loads;
  const std::size_t shards = loads.bytes.size();
  std::vector<std::vector<std::string>> rows;
  const auto add_row = [&](std::size_t shard) {
    rows.push_back({"  " + name_of_shard(report, shard), format_bytes(static_cast<double>(loads.bytes[shard])),
                    fmt::format("{} chunk{}", loads.chunks[shard], loads.chunks[shard] == 1 ? "" : "s")});
  };
  if (shards <= kMostRows) {
    for (std::size_t shard = 0; shard < shards; ++shard) add_row(shard);
  } else {
    add_row(static_cast<std::size_t>(std::ranges::min_element(loads.bytes) - loads.bytes.begin()));
    add_row(static_cast<std::size_t>(std::ranges::max_element(loads.bytes) - loads.bytes.begin()));
  }
  return fmt::format("sharding {} over {} shard{}, chunks of at most {}, skew {:.2f} ({}){}\n",
                     name_of(report.sharding.policy), shards, shards == 1 ? "" : "s",
                     format_bytes(static_cast<double>(report.sharding.chunk_bytes)), loads.skew,
                     report.sharding.parts.empty() ? "largest over mean" : "fullest over its part",
                     shards <= kMostRows ? "" : "; the smallest and the largest:") +
         text_table(rows);
}

std::string hottest(const ShardingReport& report) {
  return fmt::format("{}: {} holds {:.2f} x {}", name_of(report.sharding.policy),
                     name_of_shard(report, report.loads.fullest), report.loads.skew, measure_of(report));
}

bool matters(const ShardingReport& report) {
  return report.sharding.policy != ps::ShardingPolicy::kBalanced || report.loads.skew > kUneven;
}

}  // namespace syncopate::experiments
