#include "allreduce/strategy/shared_replica.h"

#include <algorithm>
#include <cassert>
#include <mutex>
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
  std::unique_lock lock(*monitor_);
  while (is_on_loan_) monitor_->wait();
  work(weights_);
  is_on_loan_ = lend && !is_closed_;
  const std::int64_t averages = std::exchange(averages_, 0);
  lock.unlock();
  monitor_->notify_all();
  return averages;
}

void SharedReplica::close() {
  {
    const std::lock_guard lock(*monitor_);
    is_closed_ = true;
  }
  monitor_->notify_all();
}

bool SharedReplica::wait_for_loan() {
  const std::lock_guard lock(*monitor_);
  while (!is_on_loan_ && !is_closed_) monitor_->wait();
  return is_on_loan_;
}

void SharedReplica::give_back(std::span<const float> mean) {
  assert(mean.empty() || mean.size() == weights_.size());
  {
    const std::lock_guard lock(*monitor_);
    std::ranges::copy(mean, weights_.begin());
    averages_ += mean.empty() ? 0 : 1;
    is_on_loan_ = false;
  }
  monitor_->notify_all();
}

void SharedReplica::average_with(std::span<const float> theirs, std::span<float> mean) {
  assert(theirs.size() == weights_.size() && mean.size() == weights_.size());
  const std::lock_guard lock(*monitor_);
  average(weights_, theirs, mean);
  clock_.processed(Processing::kSum, mean.size_bytes());
  ++averages_;
}

}  // namespace syncopate::allreduce
