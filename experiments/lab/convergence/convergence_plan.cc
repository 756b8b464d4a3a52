#include "experiments/lab/convergence/convergence_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <optional>
#include <string_view>

#include "common/text/number.h"
#include "prediction/published_table.h"

namespace syncopate::experiments {
namespace {

using prediction::PublishedRow;
using Flags = std::vector<std::string>;

constexpr std::string_view kZhang = "Zhang Gupta Lian Liu";
constexpr std::string_view kOptMl = "NicolasRR/OptML";

Flags operator+(Flags first, const Flags& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Ours of all tables: computing takes 5 ms a step, and wires are as fast as usual.
Flags small_job() {
  return {"--cluster=simulated",  "--compute=5ms",  "--network=fifo",  "--mode=ps",
          "--optimizer=momentum", "--momentum=0.9", "--warmup-steps=0"};
}

std::vector<PublishedRow> rows_of(std::string_view source) {
  std::vector<PublishedRow> rows = prediction::published_table("convergence");
  std::erase_if(rows, [&](const PublishedRow& row) { return !row.text("source").starts_with(source); });
  return rows;
}

// Returns the number at the beginning of "~18" or "90 (fails)".
std::optional<double> leading_number(std::string_view text) {
  if (text.starts_with('~')) text.remove_prefix(1);
  return parse_number<double>(std::string(text.substr(0, text.find(' '))));
}

// Softsync. The source gives test errors, in words where they are no better than hardsync's.

PublishedConvergence softsync_figure(const std::string& mode, const std::string& rate) {
  const auto accuracy_of = [](const std::string& value) -> std::optional<double> {
    const std::optional<double> error = leading_number(value);
    return error ? std::optional(1 - *error / 100) : std::nullopt;
  };
  std::optional<double> hardsync;
  for (const PublishedRow& row : rows_of(kZhang)) {
    if (row.text("mode") == "hardsync") hardsync = accuracy_of(row.text("value"));
  }
  for (const PublishedRow& row : rows_of(kZhang)) {
    if (row.text("mode") != mode || row.text("lr") != rate) continue;
    const std::string& value = row.text("value");
    const std::optional<double> accuracy = accuracy_of(value);
    return {value, accuracy, accuracy ? convergence_of(*accuracy, hardsync.value()) : Convergence::kLearns};
  }
  assert(false);
  return {};
}

// By label. The source gives test accuracies; some settings were run twice.

struct LabelsSetting {
  std::string consistency;  // "sync" or "async"
  bool by_label = false;
  int workers = 0;
};

std::vector<PublishedRow> labels_rows(const LabelsSetting& setting, std::string_view model) {
  std::vector<PublishedRow> rows = rows_of(kOptMl);
  std::erase_if(rows, [&](const PublishedRow& row) {
    // What stands behind the first semicolon is of all rows.
    const std::string note = row.text("note").substr(0, row.text("note").find(';'));
    const bool is_divided_so = note.find(setting.by_label ? "split_labels" : "split_dataset") != note.npos;
    return row.text("mode") != setting.consistency || !row.text("model_dataset").starts_with(model) ||
           row.text("model_dataset").find(" or ") != std::string::npos || !is_divided_so ||
           static_cast<int>(row.number("workers")) != setting.workers;
  });
  return rows;
}

std::vector<PublishedConvergence> labels_figures(const LabelsSetting& setting, std::string_view model) {
  std::vector<PublishedConvergence> figures;
  for (const PublishedRow& row : labels_rows(setting, model)) {
    // Held against sync with the same workers in the same file of results.
    for (const PublishedRow& reference : labels_rows({"sync", false, setting.workers}, model)) {
      if (reference.text("source") != row.text("source")) continue;
      const double accuracy = row.number("value") / 100;
      figures.push_back({row.text("value"), accuracy, convergence_of(accuracy, reference.number("value") / 100)});
    }
  }
  return figures;
}

// 36,000 samples in all, six passes over 6,000 digits.
Flags data_flags(LabelsData data, int batch, int workers) {
  constexpr int kTrained = 36000;
  if (data == LabelsData::kDigits) return {"--train-samples=6000", "--test-samples=1000", "--epochs=6"};
  return {"--dataset=fashion-mnist", fmt::format("--steps={}", kTrained / (batch * workers))};
}

ConvergenceSetting labels_setting(const LabelsSetting& setting, std::string_view published_model,
                                  const std::string& model, LabelsData data) {
  constexpr int kBatch = 8;
  const std::string split = setting.by_label ? "labels" : "random";
  Flags flags = small_job() + Flags{"--learning-rate=0.01",
                                    "--straggler=all:exp:100",
                                    "--model=" + model,
                                    fmt::format("--batch-size={}", kBatch),
                                    fmt::format("--workers={}", setting.workers),
                                    "--consistency=" + setting.consistency};
  flags = flags + data_flags(data, kBatch, setting.workers);
  if (setting.by_label) flags.push_back("--shard=labels");
  // The source's workers go through parts of their own.
  if (!setting.by_label && setting.consistency == "async") flags.push_back("--work=quota");
  return {.name = fmt::format("{}, {}, {} workers", setting.consistency, split, setting.workers),
          .series = setting.consistency + ", " + split,
          .x = static_cast<double>(setting.workers),
          .published = labels_figures(setting, published_model),
          .flags = flags};
}

ConvergenceTable labels_table(const std::vector<int>& sizes, std::string_view published_model, const std::string& model,
                              LabelsData data) {
  ConvergenceTable table{
      .name = "",
      .what = "",
      .source =
          "NicolasRR/OptML (c6132a48, summaries/), a parameter server over PyTorch's RPC on one host, batch 32, "
          "rate 0.005, momentum 0.9, 6 epochs",
      .unit = "test accuracy, %",
      .x_label = "workers",
      .ours = fmt::format("{} on {}, 36,000 samples, batch 8, rate 0.01, momentum 0.9; each step takes 5 ms and a "
                          "drawn time, 100 ms in "
                          "the mean (--straggler=all:exp:100)",
                          model, data == LabelsData::kDigits ? "6,000 generated digits" : "Fashion-MNIST"),
      .left_out =
          "runs whose workers have the whole set each, which are not one job of one size; runs with Adam, and "
          "those whose rows name no model",
      .settings = {}};
  for (const int workers : sizes) {
    const std::size_t reference = table.settings.size();
    for (const char* consistency : {"sync", "async"}) {
      for (const bool by_label : {false, true}) {
        table.settings.push_back(labels_setting({consistency, by_label, workers}, published_model, model, data));
        table.settings.back().reference = reference;
      }
    }
  }
  return table;
}

}  // namespace

ConvergenceTable softsync_claim() {
  ConvergenceTable table{
      .name = "softsync",
      .what = "n-softsync fails at the base rate where n is large, and learns at that rate over the staleness",
      .source =
          "Zhang, Gupta, Lian and Liu 2016, section 4.3: CNN on CIFAR-10, 30 workers, batch 4, momentum 0.9, 140 "
          "epochs",
      .unit = "test error, %",
      .x_label = "n of n-softsync",
      .ours =
          "mlp:784-32-10 on 6,000 generated digits, 30 workers, batch 4, rate 0.03, momentum 0.9, 3 epochs; each step "
          "takes 5 ms and a drawn time, 2 ms in the mean (--straggler=all:exp:2)",
      .left_out = "ImageNet, which this machine cannot train",
      .settings = {}};
  const Flags base =
      small_job() + Flags{"--learning-rate=0.03", "--straggler=all:exp:2", "--model=mlp:784-32-10", "--batch-size=4",
                          "--workers=30",         "--train-samples=6000",  "--test-samples=1000",   "--epochs=3"};
  table.settings.push_back({.name = "sync",
                            .series = "sync",
                            .x = 1,
                            .published = {softsync_figure("hardsync", "0.001")},
                            .flags = base + Flags{"--consistency=sync"}});
  for (const bool divides : {false, true}) {
    for (const int n : {1, 15, 30}) {
      const std::string mode = divides ? "any n in 1..30-softsync" : fmt::format("{}-softsync", n);
      const std::string rate = divides ? "rate / staleness" : "base rate";
      Flags flags = base + Flags{fmt::format("--consistency=softsync:{}", n)};
      if (divides) flags.push_back("--staleness-lr=divide");
      table.settings.push_back({.name = fmt::format("softsync:{}, {}", n, rate),
                                .series = rate,
                                .x = static_cast<double>(n),
                                .published = {softsync_figure(mode, divides ? "a0/staleness" : "a0")},
                                .flags = flags});
    }
  }
  return table;
}

ConvergenceTable labels_claim(LabelsData data) {
  ConvergenceTable table = labels_table({2, 5, 10}, "LeNet5", "mlp:784-32-32-10", data);
  table.name = data == LabelsData::kDigits ? "labels" : "labels-fashion";
  table.what = "LeNet-5 on Fashion-MNIST, its parts drawn at random or by label: async loses by labels, sync does not";
  return table;
}

ConvergenceTable deep_labels_claim(LabelsData data) {
  ConvergenceTable table = labels_table({5, 10}, "CNN", "mlp:784-64-64-64-64-10", data);
  table.name = data == LabelsData::kDigits ? "labels-deep" : "labels-deep-fashion";
  table.what = "A deeper CNN on the same data: async collapses with random parts, too, and sync does not";
  return table;
}

}  // namespace syncopate::experiments
