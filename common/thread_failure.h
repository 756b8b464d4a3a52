// ThreadFailure: carries what a thread throws (because memory ran out, say) to the threads that wait for its work, so
// that the exception ends them, as without the thread, instead of the whole process. Any thread.
#pragma once

#include <exception>
#include <mutex>
#include <utility>

namespace syncopate {

class ThreadFailure {
 public:
  // Does the work, and keeps what it throws. Returns false if it has thrown.
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
  // Rethrows the first exception that was kept, if any, at each call.
  void rethrow() const {
    const std::lock_guard lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace syncopate
