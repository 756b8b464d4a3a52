#include <fmt/format.h>

#include <map>

#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

constexpr double kHorovodBatch = 64;
constexpr int kHorovodGpusOfHost = 4;
constexpr const char* kCalibrating = "VGG16";

const std::map<std::string, std::string>& profiles_of_models() {
  static const std::map<std::string, std::string> names = {
      {"VGG16", "vgg16"}, {"ResNet-101", "resnet101"}, {"InceptionV3", "inception3"}};
  return names;
}

// One way to reduce on one cluster: images a second by model.
struct HorovodSetup {
  std::string network;
  std::string system;
  int gpus = 0;
  std::map<std::string, double> throughput;
};

std::vector<HorovodSetup> horovod_setups() {
  std::vector<HorovodSetup> setups;
  for (const PublishedRow& row : published_table("horovod")) {
    if (row.text("unit") != "images/s" || row.text("mode") == "ps") continue;
    const int gpus = static_cast<int>(row.number("gpus"));
    if (setups.empty() || setups.back().system != row.text("system") || setups.back().gpus != gpus) {
      setups.push_back({row.text("network"), row.text("system"), gpus, {}});
    }
    setups.back().throughput[row.text("model")] = row.number("throughput");
  }
  std::erase_if(setups,
                [](const HorovodSetup& setup) { return setup.throughput.size() < profiles_of_models().size(); });
  return setups;
}

double horovod_step(const ModelProfile& profile, double compute, int gpus, double link) {
  const Network network{.bytes_per_second = link, .workers = gpus, .workers_per_host = kHorovodGpusOfHost};
  return step_seconds(profile, compute, network, {.exchange = Exchange::kRing});
}

void add_setup(Reproduction& table, const HorovodSetup& setup, const HorovodSetup& alone) {
  const auto compute = [&](const std::string& model) { return kHorovodBatch / alone.throughput.at(model); };
  const double samples = setup.gpus * kHorovodBatch;
  const std::string label = fmt::format("{}, {}", setup.network.substr(0, setup.network.find(',')), setup.system);
  const ModelProfile vgg = profile_named(profiles_of_models().at(kCalibrating));
  const auto vgg_over = [&](double link) { return horovod_step(vgg, compute(kCalibrating), setup.gpus, link); };
  const double link = solve_link(vgg_over, samples / setup.throughput.at(kCalibrating));
  table.calibrated.push_back(fmt::format("{}: a link's rate, {:.2f} GB/s: {}.", label, link / 1e9, kCalibrating));
  for (const auto& [model, measured] : setup.throughput) {
    const ModelProfile profile = profile_named(profiles_of_models().at(model));
    table.cells.push_back({.setup = fmt::format("{}, {}", label, model),
                           .workers = setup.gpus,
                           .measured = measured,
                           .predicted = samples / horovod_step(profile, compute(model), setup.gpus, link),
                           .use = model == kCalibrating ? CellUse::kCalibrated : CellUse::kPredicted});
  }
}

}  // namespace

Reproduction horovod_images() {
  Reproduction table{
      .what = "Three image models by Horovod's allreduce on 16 and 64 GPUs, 4 a host",
      .source = "horovod/horovod, README.md of 2017-09-05",
      .unit = "images/s",
      .model = "A ring of all GPUs, a tensor at a time, beside the backward pass; fusion is not modelled",
      .left_out = {"Parameter servers (12 cells): how many there were, and where, is not stated.",
                   "128 and 512 GPUs (6 cells): efficiencies rounded to percents, without their own single GPU.",
                   "An example of output (1 cell): neither GPU nor network is stated."},
      .median_bar = 0.12,
      .worst_bar = 0.25};
  table.calibrated = {"A step alone: 1 GPU of each model and cluster."};
  const HorovodSetup* alone = nullptr;
  const std::vector<HorovodSetup> setups = horovod_setups();
  for (const HorovodSetup& setup : setups) {
    if (setup.gpus > 1) {
      add_setup(table, setup, *alone);
      continue;
    }
    alone = &setup;  // stands before its cluster
    for (const auto& [model, measured] : setup.throughput) {
      table.cells.push_back({.setup = fmt::format("{}, {}", setup.network.substr(0, setup.network.find(',')), model),
                             .workers = 1,
                             .measured = measured,
                             .predicted = measured,
                             .use = CellUse::kCalibrated});
    }
  }
  return table;
}

}  // namespace syncopate::prediction
