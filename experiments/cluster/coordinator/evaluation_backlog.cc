#include "experiments/cluster/coordinator/evaluation_backlog.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::experiments {
namespace {

std::string text_of(std::size_t snapshots, bool final) {
  std::string text = snapshots == 0 ? "" : fmt::format("{} snapshot{}", snapshots, snapshots == 1 ? "" : "s");
  if (final) text += text.empty() ? "the final weights" : " and the final weights";
  return text;
}

}  // namespace

void EvaluationBacklog::on_snapshot(std::int64_t point, bool final, std::size_t bytes) {
  bytes_of_each_ = bytes;
  if (!given_up_) {
    waiting_.push_back({point, final});
  } else if (final) {
    is_final_missing_ = true;
  } else {
    ++missing_;
  }
}

bool EvaluationBacklog::on_evaluation(std::int64_t point, bool final) {
  const auto waited = std::ranges::find(waiting_, Waiting{point, final});
  if (waited == waiting_.end()) return false;
  waiting_.erase(waited);
  return true;
}

void EvaluationBacklog::give_up() {
  given_up_ = true;
  for (const Waiting& one : waiting_) {
    if (one.final) {
      is_final_missing_ = true;
    } else {
      ++missing_;
    }
  }
  waiting_.clear();
}

std::string EvaluationBacklog::waiting_text() const {
  const auto finals = static_cast<std::size_t>(std::ranges::count(waiting_, true, &Waiting::final));
  return text_of(waiting_.size() - finals, finals > 0);
}

std::string EvaluationBacklog::missing_text() const { return text_of(missing_, is_final_missing_); }

}  // namespace syncopate::experiments
