// ThreadFailure: carries what a thread throws (memory that ran out, say) to those who wait for its work, so that it
// ends there, as it would have without the thread, and not here, as the whole process. Any thread.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace syncopate {

class ThreadFailure {
 public:
  // Does the work; keeps what it throws. False if it has thrown.
  template <typename Work>
  bool carry(Work&& work) {
    try {
      std::forward<Work>(work)();
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!thrown_) thrown_ = std::current_exception();
      return false;
    }
  }

  bool any() const {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(thrown_);
  }
  // Throws what was kept first, if anything was: each time.
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace syncopate
