#include "experiments/lab/evaluate/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace syncopate::experiments {

std::string predictions_header() { return "index,label,predicted,probability\n"; }

std::string prediction_rows(std::int64_t first, std::span<const int> labels, std::span<const float> logits) {
  assert(!labels.empty() && logits.size() % labels.size() == 0);
  const std::size_t classes = logits.size() / labels.size();
  std::string rows;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::span<const float> row = logits.subspan(i * classes, classes);
    const auto largest = std::ranges::max_element(row);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*largest));
    rows += fmt::format("{},{},{},{:.6f}\n", first + static_cast<std::int64_t>(i), labels[i], largest - row.begin(),
                        1 / sum);
  }
  return rows;
}

}  // namespace syncopate::experiments
