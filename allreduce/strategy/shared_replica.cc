#include "allreduce/strategy/shared_replica.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncopate::allreduce {
namespace {

void average(std::span<float> own, std::span<const float> other, std::span<float> both) {
  float* __restrict ours = own.data();
  const float* __restrict theirs = other.data();
  float* __restrict mean = both.data();
  for (std::size_t i = 0; i < own.size(); ++i) mean[i] = ours[i] = 0.5f * (ours[i] + theirs[i]);
}

}  // namespace

std::int64_t SharedReplica::change(const std::function<void(std::span<float>)>& work, bool lend) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_on_loan_; });
  work(weights_);
  is_on_loan_ = lend && !is_closed_;
  const std::int64_t averages = std::exchange(averages_, 0);
  lock.unlock();
  changed_.notify_all();
  return averages;
}

void SharedReplica::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
}

bool SharedReplica::wait_for_loan() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_on_loan_ || is_closed_; });
  return is_on_loan_;
}

void SharedReplica::give_back(std::span<const float> mean) {
  assert(mean.empty() || mean.size() == weights_.size());
  {
    const std::lock_guard lock(mutex_);
    std::ranges::copy(mean, weights_.begin());
    averages_ += mean.empty() ? 0 : 1;
    is_on_loan_ = false;
  }
  changed_.notify_all();
}

void SharedReplica::average_with(std::span<const float> theirs, std::span<float> mean) {
  assert(theirs.size() == weights_.size() && mean.size() == weights_.size());
  const std::lock_guard lock(mutex_);
  average(weights_, theirs, mean);
  ++averages_;
}

}  // namespace syncopate::allreduce
