#include "experiments/cluster/control/test_figures.h"

#include <fmt/format.h>

#include "experiments/cluster/control/figure_text.h"

namespace syncopate::experiments {

double headline_of(double accuracy, const TestFigures& figures) {
  return figures.hit_rate.value_or(figures.auc.value_or(figures.r2.value_or(accuracy)));
}

double target_figure_of(double accuracy, const TestFigures& figures,
                        const std::optional<ValidationFigures>& validation) {
  return validation ? validation->quality() : headline_of(accuracy, figures);
}

const char* headline_name(const TestFigures& figures) {
  if (figures.hit_rate) return "HR@10";
  if (figures.auc) return "AUC";
  return figures.r2 ? "R2" : "accuracy";
}

const char* loss_unit(const TestFigures& figures) { return figures.r2 ? "mean squared error" : "nats"; }

std::string to_text(const ValidationFigures& figures) {
  return fmt::format("validation loss {}, {} {}", figure_text(figures.loss), figures.quality_name(),
                     figure_text(figures.quality()));
}

std::string to_text(double accuracy, const TestFigures& figures) {
  std::string text = fmt::format("{} {}", headline_name(figures), figure_text(headline_of(accuracy, figures)));
  if (figures.ndcg) text += fmt::format(", NDCG@10 {:.4f}", *figures.ndcg);
  if (figures.rmse) text += fmt::format(", RMSE {:.4g}", *figures.rmse);
  return text;
}

}  // namespace syncopate::experiments
