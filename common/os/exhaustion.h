// What is thrown becomes a Status here: of our own code nothing is, but memory, threads or descriptors may run out in
// any library, at any place.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "common/status.h"

namespace syncopate {

// Resource exhausted, with what ran out and which limit to raise, where that is known; else internal.
Status status_of(const std::exception_ptr& thrown);

// Does the work, which returns a Status or nothing; what it throws is the Status.
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
