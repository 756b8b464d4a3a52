#include "experiments/lab/convergence/convergence_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

namespace syncopate::experiments {
namespace {

constexpr double kChanceOfTen = 0.1;
constexpr double kLearnsFrom = 0.9, kCollapsesBelow = 1.0 / 3;  // parts of the way from chance to the reference

double mean_accuracy(const MeasuredConvergence& measured) {
  const double sum = std::accumulate(measured.accuracies.begin(), measured.accuracies.end(), 0.0);
  return sum / static_cast<double>(measured.accuracies.size());
}

}  // namespace

const char* name_of(Convergence value) {
  switch (value) {
    case Convergence::kLearns:
      return "learns";
    case Convergence::kFallsShort:
      return "falls short";
    case Convergence::kCollapses:
      return "collapses";
  }
  return "";
}

Convergence convergence_of(double accuracy, double reference) {
  assert(reference > kChanceOfTen);
  const double way = (accuracy - kChanceOfTen) / (reference - kChanceOfTen);
  if (way >= kLearnsFrom) return Convergence::kLearns;
  return way < kCollapsesBelow ? Convergence::kCollapses : Convergence::kFallsShort;
}

ConvergenceVerdict verdict_of(const ReproducedConvergence& reproduced, std::size_t setting) {
  const ConvergenceSetting& published = reproduced.table.settings[setting];
  const MeasuredConvergence& measured = reproduced.measured[setting];
  // A reference that itself learns nothing has nothing to say of others: then none of them learns.
  const double reference = std::max(mean_accuracy(reproduced.measured[published.reference]), 2 * kChanceOfTen);
  const auto [least, most] = std::ranges::minmax(measured.accuracies);
  ConvergenceVerdict verdict{.mean = mean_accuracy(measured), .least = least, .most = most, .kinds = {}, .agreeing = 0};
  for (const double accuracy : measured.accuracies) {
    const Convergence kind = convergence_of(accuracy, reference);
    verdict.kinds.push_back(kind);
    const bool is_published =
        std::ranges::find(published.published, kind, &PublishedConvergence::kind) != published.published.end();
    if (is_published) ++verdict.agreeing;
  }
  return verdict;
}

std::string text_of(const ConvergenceVerdict& verdict) {
  if (verdict.reproduced()) return "reproduced";
  if (verdict.agreeing == 0) return "not reproduced";
  return fmt::format("with {} of {} seeds", verdict.agreeing, verdict.kinds.size());
}

std::string kinds_text(std::span<const Convergence> kinds) {
  std::string text;
  for (const Convergence kind : {Convergence::kLearns, Convergence::kFallsShort, Convergence::kCollapses}) {
    if (std::ranges::find(kinds, kind) == kinds.end()) continue;
    text += (text.empty() ? "" : ", ") + std::string(name_of(kind));
  }
  return text;
}

}  // namespace syncopate::experiments
