#include "experiments/cluster/process/shared_work.h"

#include <algorithm>

namespace syncopate::experiments {
namespace {

constexpr Duration kDrawFor = std::chrono::milliseconds(50);

// Returns whether so few of the batches drawn last are left that it is time to draw again.
bool is_time(std::size_t left, std::int64_t drawn) { return static_cast<std::int64_t>(left) <= 3 * drawn / 4; }

}  // namespace

Status SharedWork::begin(std::int64_t first_step) {
  batches_.forget_orders();
  if (taken_ && first_step > *taken_) held_.pop_front();
  taken_.reset();
  step_begin_.reset();
  anew_ = true;
  under_way_ = over_ = false;
  for (const std::int64_t number : held_) batches_.order(number);
  return {};
}

void SharedWork::go_back() {
  held_.clear();
  taken_.reset();
}

Result<std::optional<std::int64_t>> SharedWork::next(std::int64_t step) {
  const TimePoint now = clock_.now();
  if (taken_) {
    held_.pop_front();
    // The mean is smoothed, so that a single slow or fast step changes it little.
    if (step_begin_)
      step_time_ = step_time_ == Duration() ? now - *step_begin_ : (3 * step_time_ + (now - *step_begin_)) / 4;
    taken_.reset();
  }
  const bool draws = !over_ && is_time(held_.size(), last_drawn_);
  if (draws && !under_way_) request();
  if (under_way_) SYNCOPATE_RETURN_IF_ERROR(take(held_.empty()));
  if (held_.empty()) return std::optional<std::int64_t>();
  taken_ = step;
  step_begin_ = clock_.now();
  return std::optional(held_.front());
}

std::int64_t SharedWork::wanted() const {
  if (step_time_ <= Duration()) return 1;
  return std::clamp<std::int64_t>(kDrawFor / step_time_, 1, 1000);
}

void SharedWork::request() {
  ControlClient::BatchRequest request{.wanted = wanted(), .anew = anew_};
  if (anew_) request.held.assign(held_.begin(), held_.end());
  queue_.request(request);
  anew_ = false;
  under_way_ = true;
}

Status SharedWork::take(bool wait) {
  if (wait) activity_.set("waiting for a batch", activity_.step());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<BatchRange> drawn, queue_.take(wait));
  if (!drawn) return {};
  under_way_ = false;
  over_ = drawn->size() == 0;
  if (!over_) last_drawn_ = drawn->size();
  for (std::int64_t number = drawn->begin; number < drawn->end; ++number) {
    held_.push_back(number);
    batches_.order(number);
  }
  return {};
}

}  // namespace syncopate::experiments
