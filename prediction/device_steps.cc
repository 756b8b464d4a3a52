#include "prediction/device_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "prediction/published_table.h"

namespace syncopate::prediction {
namespace {

const std::vector<PublishedRow>& device_rows() {
  static const std::vector<PublishedRow> rows = published_table("device_steps");
  return rows;
}

std::string_view device_of(std::string_view text) { return text.substr(0, text.find(':')); }

std::string_view precision_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon == text.npos ? "" : text.substr(colon + 1);
}

std::string_view family_of(std::string_view model) {
  constexpr std::string_view kTorchvision = "torchvision-";
  if (model.starts_with(kTorchvision)) model.remove_prefix(kTorchvision.size());
  return model;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

// "a100 (resnet50, bert-large-128), k80 (...)".
std::string known_pairs() {
  std::map<std::string, std::vector<std::string>> models;
  for (const PublishedRow& row : device_rows()) add_once(models[row.text("device")], row.text("model"));
  std::vector<std::string> pairs;
  for (const auto& [device, names] : models) pairs.push_back(fmt::format("{} ({})", device, fmt::join(names, ", ")));
  return fmt::format("{}", fmt::join(pairs, ", "));
}

struct MeasuredBatch {
  const PublishedRow* row;
  double size;
  double seconds;

  std::string text() const { return fmt::format("{:.4g} samples/s in batches of {}", size / seconds, size); }
};

MeasuredBatch measured_batch(const PublishedRow& row) {
  const double size = row.number("batch_size"), figure = row.number("figure");
  return {&row, size, row.text("unit") == "ms" ? figure / 1e3 : size / figure};
}

// Returns the batches of a device, model and precision, the smallest first.
Result<std::vector<MeasuredBatch>> measured_batches(std::string_view device, std::string_view model) {
  std::vector<MeasuredBatch> batches;
  std::vector<std::string> precisions;
  for (const PublishedRow& row : device_rows()) {
    if (row.text("device") != device_of(device) || row.text("model") != family_of(model)) continue;
    add_once(precisions, row.text("precision"));
    const std::string_view wanted = precision_of(device).empty() ? precisions.front() : precision_of(device);
    if (row.text("precision") == wanted) batches.push_back(measured_batch(row));
  }
  if (precisions.empty()) {
    return Status::invalid_argument(fmt::format(
        "no step of {} on it is known; there are {}. Give the time of a step: --compute=150ms", model, known_pairs()));
  }
  if (batches.empty()) {
    return Status::invalid_argument(fmt::format("of {} there are {}:{}", model, device_of(device),
                                                fmt::join(precisions, fmt::format(" and {}:", device_of(device)))));
  }
  std::ranges::sort(batches, {}, &MeasuredBatch::size);
  return batches;
}

}  // namespace

const std::vector<std::string>& device_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const PublishedRow& row : device_rows()) add_once(all, row.text("device"));
    std::ranges::sort(all);
    return all;
  }();
  return names;
}

bool names_device(std::string_view text) {
  const bool ends_in_colon = text.ends_with(':');
  return !ends_in_colon && std::ranges::find(device_names(), device_of(text)) != device_names().end();
}

Result<TypicalStep> typical_step(std::string_view device, std::string_view model, int batch_size) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<MeasuredBatch> batches, measured_batches(device, model));
  const double size = batch_size == 0 ? batches.back().size : batch_size;
  const auto above = std::ranges::lower_bound(batches, size, {}, &MeasuredBatch::size);
  TypicalStep step{.batch_size = static_cast<int>(size)};
  std::string figures;
  if (above != batches.begin() && above != batches.end() && above->size > size) {
    const MeasuredBatch &low = *(above - 1), &high = *above;
    step.seconds = low.seconds + (high.seconds - low.seconds) * (size - low.size) / (high.size - low.size);
    figures = fmt::format("between {} and {}", low.text(), high.text());
  } else {
    const MeasuredBatch& nearest = above == batches.end() ? batches.back() : *above;
    step.seconds = nearest.seconds * size / nearest.size;
    figures = (nearest.size == size ? "" : "as many as ") + nearest.text();
  }
  const PublishedRow& row = *batches.front().row;
  const std::string& note = row.text("note");
  step.basis = fmt::format("{}, {}; {}{}{} ({})", row.text("precision"), figures, row.text("system"),
                           note.empty() ? "" : ", ", note, row.text("source"));
  return step;
}

}  // namespace syncopate::prediction
