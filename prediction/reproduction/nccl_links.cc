#include <fmt/format.h>

#include "common/text/number.h"
#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

// Returns bytes a second of "delay 1ms  bandwidth 5Gbps".
double link_rate(const std::string& link) {
  const std::string word = "bandwidth ";
  const std::size_t begin = link.find(word) + word.size();
  return parse_number<double>(link.substr(begin, link.find("Gbps") - begin)).value_or(0) * 1e9 / 8;
}

}  // namespace

Reproduction nccl_links() {
  Reproduction nccl{
      .what = "NCCL's allreduce between 4 and 16 hosts, with links slowed down by netem",
      .source = "BinhangYuan/tc_cluster_setting, results/allreduce.md",
      .unit = "s",
      .model =
          "2(p-1) S / (pB) with the rate that netem was given. Its delay is left out: NCCL keeps "
          "many slices on the way at once, so that they wait for it together",
      .left_out = {"Broadcast and reduce (24 cells): they are no exchange of a step, and their time depends "
                   "on slices that the source does not state."},
      .median_bar = 0.03,
      .worst_bar = 0.06};
  for (const PublishedRow& row : published_table("nccl_emulated_links")) {
    if (row.text("collective") != "allreduce") continue;
    const Network network{.bytes_per_second = link_rate(row.text("link")),
                          .workers = static_cast<int>(row.number("ranks"))};
    nccl.cells.push_back({.setup = fmt::format("{:.0f} MiB, {}", row.number("bytes") / (1 << 20), row.text("link")),
                          .workers = network.workers,
                          .measured = row.number("time_s"),
                          .predicted = ring_seconds(row.number("bytes"), network)});
  }
  return nccl;
}

}  // namespace syncopate::prediction
