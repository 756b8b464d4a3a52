// RateAgreement: whether all workers push the gradients of a step at the same learning rate. It knows the rates of the
// last kRemembered pushes: a worker that lags further behind is not looked at. Pure. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace syncopate::ps {

struct StatedRate {
  int worker = 0;
  double rate = 0;
};

// What two workers have said of one push.
struct RateDifference {
  StatedRate own, other;
};

class RateAgreement {
 public:
  static constexpr std::int64_t kRemembered = 256;

  // Worker `worker` makes its push `clock`, from 1, at `rate`.
  void on_push(int worker, std::int64_t clock, double rate) {
    Push& push = pushes_[index_of(clock)];
    if (push.clock > clock) return;
    if (push.clock < clock) push = {.clock = clock, .first = {worker, rate}};
    if (!push.differing && rate != push.first.rate) push.differing = {worker, rate};
  }

  // For an answer to the push: how another worker's rate differs from this worker's, if that is known by now.
  std::optional<RateDifference> difference(int worker, std::int64_t clock, double rate) const {
    const Push& push = pushes_[index_of(clock)];
    if (push.clock != clock || !push.differing) return std::nullopt;
    const StatedRate& other = rate == push.first.rate ? *push.differing : push.first;
    return RateDifference{{worker, rate}, other};
  }

 private:
  struct Push {
    std::int64_t clock = 0;
    StatedRate first;
    std::optional<StatedRate> differing = {};  // the first that is not as `first`
  };

  static std::size_t index_of(std::int64_t clock) { return static_cast<std::size_t>(clock % kRemembered); }

  std::array<Push, kRemembered> pushes_{};
};

}  // namespace syncopate::ps
