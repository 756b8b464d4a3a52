// TestFigures: what an evaluation says beside accuracy and loss, where the data set is judged by more.
#pragma once

#include <optional>
#include <string>

namespace syncopate::experiments {

struct TestFigures {
  std::optional<double> auc;       // of clicks (worker/metrics.h)
  std::optional<double> hit_rate;  // of rankings: HR@10
  std::optional<double> ndcg;      // NDCG@10

  bool operator==(const TestFigures&) const = default;
};

// What --target-accuracy is about: HR@10 or AUC where there is one, else the accuracy.
double headline_of(double accuracy, const TestFigures& figures);
// Its name: "HR@10", "AUC" or "accuracy".
const char* headline_name(const TestFigures& figures);
// "HR@10 0.6523, NDCG@10 0.3900", "AUC 0.7912" or "accuracy 0.9650".
std::string to_text(double accuracy, const TestFigures& figures);

}  // namespace syncopate::experiments
