#include "worker/straggling.h"

#include <algorithm>
#include <utility>

namespace syncopate::worker {

Straggling::Straggling(StragglingOptions options, const Clock& clock, std::function<bool(Duration)> wait)
    : options_(std::move(options)), clock_(clock), wait_(std::move(wait)) {}

void Straggling::begin_step(std::int64_t step) {
  slowdown_ = options_.stragglers.at(options_.seed, options_.worker, step);
  begin_ = clock_.now();
  credit_ = std::clamp(waited_ + credit_ - delay_, Duration::zero(), delay_);
  delay_ = waited_ = {};
  stretch_ = slowdown_.stretch;
}

void Straggling::begin_pass(double cost) {
  if (!options_.by_cost) return;
  slowdown_.stretch = stretch_ + cost;
  slowdown_.extra = std::max(slowdown_.extra, delay_);
  begin_ = clock_.now() - waited_;
}

void Straggling::catch_up() {
  const TimePoint before = clock_.now();
  delay_ = slowdown_.delay(before - begin_ - waited_, options_.longest);
  const Duration due = delay_ - waited_ - credit_;
  if (due <= Duration::zero() || interrupted_) return;
  interrupted_ = !wait_(due);
  waited_ += clock_.now() - before;
}

}  // namespace syncopate::worker
