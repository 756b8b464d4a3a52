// TensorLinks: a worker's sums, in the midst of its passes, with those that have the other parts of its layers. One
// thread; it is the trainer's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/pass_costs.h"
#include "worker/tensor/tensor_group.h"

namespace syncopate::worker {

class TensorLinks {
 public:
  // Weights are gathered in pieces of so many.
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  // All must outlive the links. The tracer may be null.
  TensorLinks(TensorGroup& group, const Clock& clock, Tracer* tracer) : group_(group), costs_(clock, tracer) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  PassCosts& costs() { return costs_; }

  // Sums activations, or their gradients. After the first failure nothing is sent or received any more: it is returned
  // by each call, and by status().
  Status sum(std::span<float> values) {
    return counted([&] { return group_.sum(values); }, "summing activations");
  }
  // Copies the root's weights.
  Status broadcast(std::span<float> values, int root) {
    return counted([&] { return group_.broadcast(values, root); }, "gathering weights");
  }

  const Status& status() const { return status_; }

 private:
  template <typename Work>
  Status counted(const Work& work, const char* what) {
    if (!status_.ok()) return status_;
    const TransportCounters before = group_.counters();
    status_ = costs_.counted(work, what);
    const TransportCounters sent = group_.counters() - before;
    costs_.count_bytes(sent.payload_bytes_out, sent.payload_bytes_in);
    return status_;
  }

  TensorGroup& group_;
  PassCosts costs_;
  Status status_;
};

// Where a model's layers find the links, which are there only once the worker is connected.
struct TensorSums {
  std::vector<std::size_t> each;  // of a batch's sums, in values; known once the model is built
  std::size_t largest = 0;        // of them
  TensorLinks* links = nullptr;   // before the first step, and until they end

  void reserve(std::size_t values) {
    each.push_back(values);
    largest = std::max(largest, values);
  }
  void sum(std::span<float> values) const { static_cast<void>(links->sum(values)); }  // they keep a failure
};

}  // namespace syncopate::worker
