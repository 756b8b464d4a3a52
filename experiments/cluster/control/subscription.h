// Subscription: that a callback is registered somewhere. It ends with its owner, so that nobody has to take the
// callback back by hand on each way out of a function.
#pragma once

#include <functional>
#include <utility>

namespace syncopate::experiments {

class [[nodiscard]] Subscription {
 public:
  Subscription() = default;  // to nothing
  // `end` unregisters the callback, and returns once it does not run any more.
  explicit Subscription(std::function<void()> end) : end_(std::move(end)) {}
  Subscription(Subscription&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Subscription& operator=(Subscription&& other) noexcept {
    if (this != &other) {
      reset();
      end_ = std::exchange(other.end_, nullptr);
    }
    return *this;
  }
  ~Subscription() { reset(); }

  // Ends it now. The callback does not run any more once this has returned; so the callback itself must not call this.
  void reset() {
    if (const std::function<void()> end = std::exchange(end_, nullptr)) end();
  }

 private:
  std::function<void()> end_;
};

}  // namespace syncopate::experiments
