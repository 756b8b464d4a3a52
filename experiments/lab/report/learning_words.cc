#include "experiments/lab/report/learning_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"
#include "experiments/cluster/control/figure_text.h"

namespace syncopate::experiments {

namespace {

// The first loss is that of one batch, the last of another set: only a growth that no batch explains is told.
constexpr double kGrown = 2;

double error_of_share(double share, std::int64_t of) {
  return std::sqrt(share * (1 - share) / static_cast<double>(of));
}

// That of a guess's AUC (Mann and Whitney 1947), for as many clicks as others, where it is least.
double error_of_auc(double labels) { return std::sqrt((labels + 1) / (3 * labels * labels)); }

// Returns what cannot be told from guessing; empty: it can, or is not known.
std::string guessed(const RunReport& report, const Guessing& guessing) {
  if (guessing.labels <= 0) return {};
  const std::string count = format_count(static_cast<double>(guessing.labels));
  const TestFigures& figures = report.final_figures;
  switch (guessing.judgement) {
    case worker::Judgement::kAccuracy: {
      if (guessing.classes < 2 || !report.final_test_accuracy) return {};
      const double one_of_all = 1.0 / guessing.classes;
      const double commonest = static_cast<double>(guessing.most) / static_cast<double>(guessing.labels);
      const double chance = std::max(one_of_all, commonest);
      if (*report.final_test_accuracy > chance + 2 * error_of_share(chance, guessing.labels)) return {};
      return fmt::format("a test accuracy of {:.2f} % of {} labels cannot be told from {} ({:.2f} %)",
                         100 * *report.final_test_accuracy, count,
                         commonest > one_of_all ? "always saying the commonest class"
                                                : fmt::format("guessing among {} classes", guessing.classes),
                         100 * chance);
    }
    case worker::Judgement::kClicks: {
      if (!figures.auc || *figures.auc > 0.5 + 2 * error_of_auc(static_cast<double>(guessing.labels))) return {};
      return fmt::format("an AUC of {:.4f} of {} test samples cannot be told from guessing (0.5)", *figures.auc, count);
    }
    case worker::Judgement::kRanking: {
      constexpr double kChance = 10.0 / worker::kRankedItems;
      if (!figures.hit_rate || *figures.hit_rate > kChance + 2 * error_of_share(kChance, guessing.labels)) return {};
      return fmt::format("an HR@10 of {:.4f} of {} rankings cannot be told from guessing ({})", *figures.hit_rate,
                         count, kChance);
    }
    case worker::Judgement::kRegression:
      if (!figures.r2 || *figures.r2 > 0) return {};
      return fmt::format("an R2 of {} of {} test samples is not above that of always saying the mean (0)",
                         figure_text(*figures.r2), count);
  }
  return {};
}

}  // namespace

std::vector<std::string> learning_words(const RunReport& report, const std::optional<Guessing>& guessing) {
  std::vector<std::string> words;
  if (const std::string what = guessing ? guessed(report, *guessing) : ""; !what.empty()) {
    words.push_back("nothing shows that it has learnt: " + what);
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

std::optional<double> sampling_error(const RunReport& report) {
  const std::optional<double> headline = final_headline(report);
  if (!headline || report.test_labels <= 0) return std::nullopt;
  const auto labels = static_cast<double>(report.test_labels);
  if (report.final_figures.auc) return error_of_auc(labels);
  if (report.final_figures.r2) return 2 * (1 - *headline) / std::sqrt(labels);
  return error_of_share(*headline, report.test_labels);
}

}  // namespace syncopate::experiments
