#include "experiments/coordinator/evaluation_backlog.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace syncopate::experiments {
namespace {

// "3", "3 and 5", "1, 3 and 5 to 7"
std::string ranges_text(const std::set<std::int64_t>& numbers) {
  std::vector<std::string> ranges;
  for (auto first = numbers.begin(); first != numbers.end();) {
    auto last = first;
    for (auto next = std::next(last); next != numbers.end() && *next == *last + 1; ++next) last = next;
    const bool is_pair = *last == *first + 1;
    ranges.push_back(first == last ? fmt::format("{}", *first + 1)
                                   : fmt::format("{}{}{}", *first + 1, is_pair ? ", " : " to ", *last + 1));
    first = std::next(last);
  }
  std::string text;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == ranges.size() ? " and " : ", ") + ranges[i];
  }
  return text;
}

std::string text_of(const std::set<std::int64_t>& epochs, bool final) {
  std::string text = epochs.empty() ? "" : (epochs.size() == 1 ? "epoch " : "epochs ") + ranges_text(epochs);
  if (final) text += text.empty() ? "the final weights" : ", and the final weights";
  return text;
}

}  // namespace

void EvaluationBacklog::on_snapshot(std::int64_t epoch, bool final, std::size_t bytes) {
  bytes_of_each_ = bytes;
  if (!given_up_) {
    missing_.erase(epoch);  // all may have gone back, and trained it again
    waiting_.push_back({epoch, final});
  } else if (final) {
    is_final_missing_ = true;
  } else {
    missing_.insert(epoch);
  }
}

bool EvaluationBacklog::on_evaluation(std::int64_t epoch, bool final) {
  const auto waited = std::ranges::find(waiting_, Waiting{epoch, final});
  if (waited == waiting_.end()) return false;
  waiting_.erase(waited);
  missing_.erase(epoch);
  return true;
}

void EvaluationBacklog::give_up() {
  given_up_ = true;
  for (const Waiting& one : waiting_) {
    if (one.final) {
      is_final_missing_ = true;
    } else {
      missing_.insert(one.epoch);
    }
  }
  waiting_.clear();
}

std::string EvaluationBacklog::waiting_text() const {
  std::set<std::int64_t> epochs;
  bool final = false;
  for (const Waiting& one : waiting_) {
    if (one.final) {
      final = true;
    } else {
      epochs.insert(one.epoch);
    }
  }
  return text_of(epochs, final);
}

std::string EvaluationBacklog::missing_text() const { return text_of(missing_, is_final_missing_); }

}  // namespace syncopate::experiments
