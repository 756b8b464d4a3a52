#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

// The rows of one setup, which differ in the number of GPUs alone: throughput by GPUs.
struct PageSetup {
  std::string label;
  double batch = 0;
  bool crosses_sockets_at_8 = false;
  std::map<int, double> throughput;

  double step(int gpus) const { return gpus * batch / throughput.at(gpus); }
};

std::string short_name(const std::string& system) { return system.substr(system.find(" on ") + 4); }

// In the order of the page.
std::vector<PageSetup> setups_of_page() {
  std::vector<PageSetup> setups;
  for (const PublishedRow& row : published_table("tensorflow_page")) {
    const std::string& system = row.text("system");
    if (row.noted("data") != "synthetic" || system.ends_with("cluster")) continue;
    const std::string update = row.noted("variable_update");
    const std::string label = fmt::format("{}, {}, batch {}, {}", short_name(system), row.text("model"),
                                          row.text("batch_per_gpu"), row.text("mode"));
    auto setup = std::ranges::find(setups, label, &PageSetup::label);
    if (setup == setups.end()) {
      const bool nvlink = system.ends_with("DGX-1") && update.find("with NCCL") != std::string::npos;
      setup = setups.insert(setups.end(), {label, row.number("batch_per_gpu"), nvlink, {}});
    }
    setup->throughput[static_cast<int>(row.number("gpus"))] = row.number("throughput");
  }
  return setups;
}

}  // namespace

Reproduction tensorflow_page() {
  Reproduction page{
      .what = "Four image models on 1 to 8 GPUs of one host: DGX-1, Google Compute Engine and EC2",
      .source = "tensorflow/docs, performance/benchmarks.md (tf_cnn_benchmarks 9165a70)",
      .unit = "images/s",
      .model =
          "The step of one GPU, and what the exchange and its barrier add to it from 2 GPUs on, whatever their number",
      .left_out =
          {"Rows of real data (74 cells): AlexNet and VGG16 wait for their input there.",
           "8 GPUs of a DGX-1 by NCCL (3 cells, shown): 1 and 2 GPUs say nothing of the way between its two sockets.",
           "The EC2 cluster (20 cells): its barrier of each variable is not modelled."},
      .median_bar = 0.05,
      .worst_bar = 0.12};
  page.calibrated = {"A step alone: 1 GPU of each setup.", "What the exchange adds: 2 GPUs of each setup."};
  for (const PageSetup& setup : setups_of_page()) {
    const double alone = setup.step(1);
    const double added = setup.step(2) - alone;
    for (const auto& [gpus, measured] : setup.throughput) {
      const double step = gpus == 1 ? alone : alone + added;
      page.cells.push_back({.setup = setup.label,
                            .workers = gpus,
                            .measured = measured,
                            .predicted = gpus * setup.batch / step,
                            .use = gpus <= 2                                 ? CellUse::kCalibrated
                                   : gpus == 8 && setup.crosses_sockets_at_8 ? CellUse::kLeftOut
                                                                             : CellUse::kPredicted});
    }
  }
  return page;
}

}  // namespace syncopate::prediction
