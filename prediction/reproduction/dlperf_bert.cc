#include <fmt/format.h>

#include <map>

#include "prediction/published_table.h"
#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

constexpr int kOneHost = 8;       // GPUs of a host
constexpr int kTwoHosts = 16;     // where the link's rate comes from
constexpr int kUsualBatch = 32;   // the same
constexpr double kBucket = 25e6;  // bytes: the default of PyTorch's DistributedDataParallel

// The throughput of one framework, by batch and GPUs.
using ByBatch = std::map<int, std::map<int, double>>;

double bert_step(const ModelProfile& profile, double compute, int gpus, double link) {
  const Network network{.bytes_per_second = link, .workers = gpus, .workers_per_host = kOneHost};
  return step_seconds(profile, compute, network, {.exchange = Exchange::kRing, .bucket_bytes = kBucket});
}

std::map<std::string, ByBatch> frameworks() {
  std::map<std::string, ByBatch> all;
  for (const PublishedRow& row : published_table("dlperf_bert")) {
    if (!row.text("note").starts_with("FP32")) continue;
    const std::string system = row.text("system");  // as in "OneFlow W/O clip bsz=96"
    const int batch = static_cast<int>(row.number("batch_per_gpu"));
    all[system.substr(0, system.find(" bsz="))][batch][static_cast<int>(row.number("gpus"))] = row.number("throughput");
  }
  return all;
}

}  // namespace

Reproduction dlperf_bert() {
  Reproduction dlperf{
      .what = "BERT-base in float32 by five frameworks on V100s, 8 a host, over 100 Gb/s InfiniBand",
      .source = "Oneflow-Inc/DLPerf, reports/dlperf_benchmark_test_report_v1.md",
      .unit = "sentences/s",
      .model = "A step of one host, and a ring of all GPUs in buckets of 25 MB beside the backward pass",
      .left_out = {"Mixed precision: whether gradients travel in half precision is not stated.",
                   "Other pages of the source: they have the measurements of the report again.",
                   "1 GPU: within a host nothing is predicted."},
      .median_bar = 0.04,
      .worst_bar = 0.12};
  dlperf.calibrated = {"A step of one host: 8 GPUs of each framework and batch."};
  const ModelProfile profile = profile_named("bert-base-128");
  for (const auto& [name, batches] : frameworks()) {
    const auto compute = [&](int batch) { return kOneHost * batch / batches.at(batch).at(kOneHost); };
    const double two_hosts = kTwoHosts * kUsualBatch / batches.at(kUsualBatch).at(kTwoHosts);
    const double link =
        solve_link([&](double rate) { return bert_step(profile, compute(kUsualBatch), kTwoHosts, rate); }, two_hosts);
    dlperf.calibrated.push_back(
        fmt::format("{}: a link's rate, {:.2f} GB/s: {} GPUs at batch {}.", name, link / 1e9, kTwoHosts, kUsualBatch));
    for (const auto& [batch, cells] : batches) {
      for (const auto& [gpus, measured] : cells) {
        if (gpus < kOneHost) continue;
        const double step = gpus == kOneHost ? compute(batch) : bert_step(profile, compute(batch), gpus, link);
        const bool calibrates = gpus == kOneHost || (gpus == kTwoHosts && batch == kUsualBatch);
        dlperf.cells.push_back({.setup = fmt::format("{}, batch {}", name, batch),
                                .workers = gpus,
                                .measured = measured,
                                .predicted = gpus * batch / step,
                                .use = calibrates ? CellUse::kCalibrated : CellUse::kPredicted});
      }
    }
  }
  return dlperf;
}

}  // namespace syncopate::prediction
