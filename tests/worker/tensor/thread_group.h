// ThreadGroups: workers of one process, each a thread, that have the parts of the same layers.
#pragma once

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "worker/tensor/tensor_group.h"

namespace syncopate::worker {

// What they share. The groups must not outlive it.
struct ThreadGroupState {
  explicit ThreadGroupState(int size) : shown(static_cast<std::size_t>(size)), meet(size) {}

  std::vector<std::span<float>> shown;  // by rank
  std::barrier<> meet;
};

class ThreadGroup final : public TensorGroup {
 public:
  ThreadGroup(ThreadGroupState& state, int rank) : state_(state), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(state_.shown.size()); }

  // Counts what a ring would send.
  Status sum(std::span<float> values) override {
    ++sums;
    largest = std::max(largest, values.size());
    std::vector<float> sum(values.size());
    show(values);
    for (const std::span<float>& each : state_.shown) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += each[i];
    }
    state_.meet.arrive_and_wait();
    std::ranges::copy(sum, values.begin());
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    counters_.payload_bytes_out += 2 * (size() - 1) * bytes / size();
    counters_.payload_bytes_in += 2 * (size() - 1) * bytes / size();
    return {};
  }
  Status broadcast(std::span<float> values, int root) override {
    show(values);
    if (rank_ != root) std::ranges::copy(state_.shown[static_cast<std::size_t>(root)], values.begin());
    state_.meet.arrive_and_wait();
    const auto bytes = static_cast<std::int64_t>(values.size_bytes());
    (rank_ == root ? counters_.payload_bytes_out : counters_.payload_bytes_in) += bytes;
    return {};
  }
  TransportCounters counters() const override { return counters_; }

  int sums = 0;             // so far
  std::size_t largest = 0;  // of them, in values

 private:
  void show(std::span<float> values) {
    state_.shown[static_cast<std::size_t>(rank_)] = values;
    state_.meet.arrive_and_wait();
  }

  ThreadGroupState& state_;
  const int rank_;
  TransportCounters counters_;
};

}  // namespace syncopate::worker
