// TestFigures: figures of an evaluation besides accuracy and loss, for data sets that are judged by more.
#pragma once

#include <optional>
#include <string>

namespace syncopate::experiments {

struct TestFigures {
  std::optional<double> auc;       // clicks only (worker/metrics.h)
  std::optional<double> hit_rate;  // rankings only: HR@10
  std::optional<double> ndcg;      // rankings only: NDCG@10

  bool operator==(const TestFigures&) const = default;
};

// Returns the figure that --target-accuracy refers to: HR@10 or AUC if there is one, else the accuracy.
double headline_of(double accuracy, const TestFigures& figures);
// Returns its name: "HR@10", "AUC" or "accuracy".
const char* headline_name(const TestFigures& figures);
// Returns "HR@10 0.6523, NDCG@10 0.3900", "AUC 0.7912" or "accuracy 0.9650".
std::string to_text(double accuracy, const TestFigures& figures);

}  // namespace syncopate::experiments
