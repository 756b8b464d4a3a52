#include "experiments/lab/evaluate/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "experiments/lab/report/csv_text.h"
#include "worker/data/text_lines.h"

namespace syncopate::experiments {

std::string predictions_header(bool regression) {
  return regression ? "index,target,predicted\n" : "index,label,predicted,probability\n";
}

std::string prediction_rows(std::int64_t first, std::span<const int> labels, std::span<const float> logits,
                            const std::vector<std::string>& names) {
  const auto shown = [&](std::ptrdiff_t label) {
    if (names.empty()) return std::to_string(label);
    const std::string& name = names[static_cast<std::size_t>(label)];
    return worker::parse_number<double>(name) ? name : csv_text(name);
  };
  assert(!labels.empty() && logits.size() % labels.size() == 0);
  const std::size_t classes = logits.size() / labels.size();
  std::string rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * classes, classes);
    const auto largest = std::ranges::max_element(row);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*largest));
    rows += fmt::format("{},{},{},{:.6f}\n", first + static_cast<std::int64_t>(i), shown(labels[i]),
                        shown(largest - row.begin()), 1 / sum);
  }
  return rows;
}

std::string regression_rows(std::int64_t first, std::span<const float> targets, std::span<const float> outputs,
                            const worker::TargetScale& scale) {
  assert(targets.size() == outputs.size());
  std::string rows;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    rows += fmt::format("{},{:.9g},{:.9g}\n", first + static_cast<std::int64_t>(i),
                        scale.number(static_cast<double>(targets[i])), scale.number(static_cast<double>(outputs[i])));
  }
  return rows;
}

}  // namespace syncopate::experiments
