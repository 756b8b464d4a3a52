// CallbackRendezvous: a function of Python's as a Rendezvous, whatever store stands behind it.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "common/rendezvous.h"

namespace syncopate::python {

class CallbackRendezvous final : public Rendezvous {
 public:
  // exchange(group, rank, size, value, seconds) returns the values of all members as a list, or raises.
  explicit CallbackRendezvous(nanobind::callable exchange) : exchange_(std::move(exchange)) {}

  // Called without the interpreter's lock.
  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    const nanobind::gil_scoped_acquire locked;
    try {
      const double left = seconds(deadline - SteadyClock().now());
      auto values =
          nanobind::cast<std::vector<std::string>>(exchange_(group, rank, size, value, left > 0 ? left : 0.0));
      if (values.size() == static_cast<std::size_t>(size)) return values;
      return Status::internal("the rendezvous returned another number of values than there are members");
    } catch (const nanobind::python_error& error) {
      return Status::deadline_exceeded(std::string("the rendezvous failed: ") + error.what());
    }
  }

 private:
  nanobind::callable exchange_;
};

}  // namespace syncopate::python
