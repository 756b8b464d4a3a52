#include <fmt/format.h>

#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

constexpr int kGpusOfHost = 16;
constexpr double kP2Link = 2.5e9;  // 20 Gb/s, as the table's column `network` says

}  // namespace

Reproduction mxnet_p2() {
  Reproduction mxnet{
      .what = "AlexNet and Inception-v3 on MXNet's parameter servers (dist_device_sync), 16 K80 a host",
      .source = "apache/mxnet, example/image-classification/README.md, at 1fd401235c",
      .unit = "images/s",
      .model =
          "Even shards on all hosts over the stated 20 Gb/s. A host adds up its GPUs' gradients first; its push "
          "follows the backward pass, and the pull the push, so that nothing overlaps",
      .left_out = {"1 to 8 GPUs (8 cells): within a host no network is crossed."},
      .median_bar = 0.06,
      .worst_bar = 0.12};
  for (const auto& [model, name] : {std::pair("alexnet", "mxnet-alexnet"), std::pair("inception-v3", "inception3")}) {
    const ModelProfile profile = profile_named(name);
    double compute = 0;
    for (const PublishedRow& row : published_table("mxnet_p2_16xlarge")) {
      const int gpus = static_cast<int>(row.number("gpus"));
      if (row.text("model") != model || gpus < kGpusOfHost) continue;
      const double samples = gpus * row.number("batch_per_gpu");
      const bool calibrates = gpus == kGpusOfHost;  // the table goes up
      if (calibrates) {
        compute = samples / row.number("throughput");
        mxnet.calibrated.push_back(
            fmt::format("{}: a step of one host, {:.0f} ms: {} GPUs.", model, compute * 1e3, kGpusOfHost));
      }
      const int hosts = gpus / kGpusOfHost;
      const Network network{.bytes_per_second = kP2Link, .workers = hosts};
      const ExchangePlan plan{.exchange = Exchange::kServers,
                              .overlap = false,
                              .servers = hosts,
                              .colocated = true,
                              .protocol = ServerProtocol::kPullThenPush};
      mxnet.cells.push_back({.setup = model,
                             .workers = gpus,
                             .measured = row.number("throughput"),
                             .predicted = samples / step_seconds(profile, compute, network, plan),
                             .use = calibrates ? CellUse::kCalibrated : CellUse::kPredicted});
    }
  }
  return mxnet;
}

}  // namespace syncopate::prediction
