#include <fmt/format.h>

#include "common/text/number.h"
#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

constexpr double kBatch = 64;
constexpr int kJitterAt = 8;  // workers of the cell that the jitter comes from
constexpr int kLinkAt = 64;   // workers of the cell that the link's rate comes from

struct PizDaint {
  ModelProfile profile;
  double compute = 0;
  double jitter = 0;
  double link = 0;

  double step(int workers, int servers) const {
    const Network network{.bytes_per_second = link, .workers = workers};
    const ExchangePlan plan{.exchange = Exchange::kServers,
                            .servers = servers,
                            .sharding = Sharding::kWhole,
                            .colocated = true,
                            .protocol = ServerProtocol::kPullThenPush};
    return step_seconds(profile, workers == 1 ? compute : compute + jitter, network, plan);
  }
};

struct PizDaintCell {
  int workers = 0;
  int servers = 0;
  double throughput = 0;

  double step() const { return workers * kBatch / throughput; }
};

// The two constants depend on each other, though little: each is fitted in turn until both cells come out.
void calibrate(PizDaint& machine, const PizDaintCell& jitter_cell, const PizDaintCell& link_cell) {
  machine.link = 1e9;
  for (int round = 0; round < 50; ++round) {
    machine.jitter = 0;
    machine.jitter = jitter_cell.step() - machine.step(jitter_cell.workers, jitter_cell.servers);
    const auto step_over = [&](double link) {
      PizDaint other = machine;
      other.link = link;
      return other.step(link_cell.workers, link_cell.servers);
    };
    machine.link = solve_link(step_over, link_cell.step());
  }
}

}  // namespace

Reproduction piz_daint() {
  Reproduction daint{
      .what = "Inception-v3 on TensorFlow's parameter servers, one P100 a host, servers on the workers' hosts",
      .source = "feifeibear/large-scale-tensorflow-benchmark (Piz Daint, TensorFlow 1.1)",
      .unit = "images/s",
      .model = "Whole variables placed greedily by bytes, pulled and pushed beside the computation, with a barrier",
      .left_out = {"Rows of real data (8 cells): reading it is no part of the prediction.",
                   "4 workers: its best setting was distributed_replicated, which has a barrier of each variable."},
      .median_bar = 0.05,
      .worst_bar = 0.10};
  std::vector<PizDaintCell> cells;
  for (const PublishedRow& row : published_table("piz_daint")) {
    if (row.noted("data") != "synthetic" || row.noted("variable_update") != "parameter_server") continue;
    const std::string servers = row.text("servers");  // as in "40 (colocated)"
    cells.push_back({static_cast<int>(row.number("gpus")),
                     parse_number<int>(servers.substr(0, servers.find(' '))).value_or(1), row.number("throughput")});
  }
  const auto at = [&](int workers) {
    for (const PizDaintCell& cell : cells) {
      if (cell.workers == workers) return cell;
    }
    return PizDaintCell();
  };
  PizDaint machine{.profile = profile_named("inception3"), .compute = at(1).step()};
  calibrate(machine, at(kJitterAt), at(kLinkAt));
  daint.calibrated = {
      fmt::format("A step alone, {:.0f} ms: 1 worker.", machine.compute * 1e3),
      fmt::format("What several workers wait for the slowest, {:.1f} ms: {} workers.", machine.jitter * 1e3, kJitterAt),
      fmt::format("A link's rate, {:.2f} GB/s: {} workers.", machine.link / 1e9, kLinkAt)};
  for (const PizDaintCell& cell : cells) {
    const bool calibrates = cell.workers == 1 || cell.workers == kJitterAt || cell.workers == kLinkAt;
    daint.cells.push_back({.setup = fmt::format("servers: {}", cell.servers),
                           .workers = cell.workers,
                           .measured = cell.throughput,
                           .predicted = cell.workers * kBatch / machine.step(cell.workers, cell.servers),
                           .use = calibrates ? CellUse::kCalibrated : CellUse::kPredicted});
  }
  return daint;
}

}  // namespace syncopate::prediction
