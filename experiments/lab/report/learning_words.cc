#include "experiments/lab/report/learning_words.h"

#include <fmt/format.h>

#include <cmath>

#include "common/text/format.h"

namespace syncopate::experiments {

// The first loss is that of one batch, the last of another set: only a growth that no batch explains is told.
constexpr double kGrown = 2;

std::vector<std::string> learning_words(const RunReport& report, const std::optional<Guessing>& guessing) {
  std::vector<std::string> words;
  if (guessing && guessing->classes > 1 && guessing->labels > 0 && report.final_test_accuracy) {
    const double chance = 1.0 / guessing->classes;
    const double error = std::sqrt(chance * (1 - chance) / static_cast<double>(guessing->labels));
    if (*report.final_test_accuracy <= chance + 2 * error) {
      words.push_back(
          fmt::format("nothing shows that it has learnt: a test accuracy of {:.2f} % of {} labels cannot be told from "
                      "guessing among {} classes ({:.2f} %)",
                      100 * *report.final_test_accuracy, format_count(static_cast<double>(guessing->labels)),
                      guessing->classes, 100 * chance));
    }
  }
  const bool of_test = report.final_test_loss.has_value();
  const std::optional<double> last = of_test ? report.final_test_loss : report.final_train_loss;
  const std::optional<double> first = report.first_train_loss;
  if (first && last && std::isfinite(*first) && std::isfinite(*last) && *last > kGrown * *first) {
    words.push_back(fmt::format("the loss has grown: {:.4g} {}, {:.4g} in the first step", *last,
                                of_test ? "on the test set at the end" : "over the last steps", *first));
  }
  return words;
}

}  // namespace syncopate::experiments
