// Converts exceptions to a Status. Our own code throws none, but memory, threads or descriptors may run out in any
// library, anywhere.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "common/status.h"

namespace syncopate {

// Returns resource exhausted, with what ran out and which limit to raise, if that is known; otherwise internal.
Status status_of(const std::exception_ptr& thrown);

// Does the work, which returns a Status or nothing, and returns that Status or the one of what it throws.
template <typename Work>
Status caught(Work&& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      std::forward<Work>(work)();
      return Status();
    } else {
      return std::forward<Work>(work)();
    }
  } catch (...) {
    return status_of(std::current_exception());
  }
}

}  // namespace syncopate
