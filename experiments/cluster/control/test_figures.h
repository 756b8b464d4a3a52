// TestFigures: figures of an evaluation besides accuracy and loss, for data sets that are judged by more.
#pragma once

#include <optional>
#include <string>

namespace syncopate::experiments {

struct TestFigures {
  std::optional<double> auc;        // clicks only (worker/metrics.h)
  std::optional<double> hit_rate;   // rankings only: HR@10
  std::optional<double> ndcg;       // rankings only: NDCG@10
  std::optional<double> r2 = {};    // regression only: the share of the targets' variance that is predicted, 1 at most
  std::optional<double> rmse = {};  // regression only: the root of the mean squared error, in the target's own unit

  bool operator==(const TestFigures&) const = default;
};

// Figures on samples that are held out of the training set (worker/data/held_out.h).
struct ValidationFigures {
  double accuracy = 0;            // share of the labels; of regression no number
  double loss = 0;                // mean over the labels
  std::optional<double> r2 = {};  // regression only

  double quality() const { return r2.value_or(accuracy); }
  const char* quality_name() const { return r2 ? "R2" : "accuracy"; }

  bool operator==(const ValidationFigures&) const = default;
};

// What an evaluation of one snapshot comes to.
struct EvaluationScores {
  double accuracy = 0;  // on the test set: share of the labels; of regression no number
  double loss = 0;      // on the test set: mean over the labels
  TestFigures figures = {};
  std::optional<ValidationFigures> validation = {};

  bool operator==(const EvaluationScores&) const = default;
};

// Returns the headline of the test set: HR@10, AUC or R2 if there is one, else the accuracy.
double headline_of(double accuracy, const TestFigures& figures);
// Returns the figure that --target-accuracy refers to: the accuracy on what is held out, if anything is, since a test
// set by which training is ended is none; else the headline.
double target_figure_of(double accuracy, const TestFigures& figures,
                        const std::optional<ValidationFigures>& validation);
// Returns what the loss is in, for axes and beside figures: "nats", or "mean squared error".
const char* loss_unit(const TestFigures& figures);
// Returns its name: "HR@10", "AUC", "R2" or "accuracy".
const char* headline_name(const TestFigures& figures);
// Returns "validation loss 0.1240, accuracy 0.9630".
std::string to_text(const ValidationFigures& figures);
// Returns "HR@10 0.6523, NDCG@10 0.3900", "AUC 0.7912", "R2 0.4526, RMSE 53.85" or "accuracy 0.9650".
std::string to_text(double accuracy, const TestFigures& figures);

}  // namespace syncopate::experiments
