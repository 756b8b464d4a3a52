// StepGraphs: gives a training step's work to a device: captured once, and from then on launched as one piece, which
// costs the host one call instead of hundreds.
//
// A graph keeps the addresses that its work was given. Those of a batch, and what each turn (turn_of) has of its own,
// are the only ones that differ between steps: there is a graph for each pair of these.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "common/device/device.h"
#include "common/status.h"
#include "worker/model.h"

namespace syncopate::worker {

class StepGraphs {
 public:
  // `device` must outlive it.
  explicit StepGraphs(Device& device) : device_(device) {}

  // Gives the work that `give` gives for a batch in the device's memory. Calls it for the first step, in which
  // libraries choose their algorithms and memory is allocated, and to capture; not where there is a graph already.
  Status launch(std::int64_t step, const BatchView& batch, const std::function<Status()>& give);

 private:
  struct Addresses {
    std::size_t turn;
    const void* values;
    const void* ids;
    auto operator<=>(const Addresses&) const = default;
  };

  Device& device_;
  bool is_warm_ = false;
  std::map<Addresses, std::unique_ptr<Graph>> graphs_;
};

}  // namespace syncopate::worker
