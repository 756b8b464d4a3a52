// Suspicions: verdicts that are kept for a moment before they take effect, since a deeper cause may still be reported.
// Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/coordinator/verdict.h"

namespace syncopate::experiments {

struct Suspicion {
  std::optional<std::size_t> process;  // the process that reported it; none: the carrier
  Verdict verdict;
  TimePoint until{};               // when it takes effect, unless something explains it
  bool may_be_of_carrier = false;  // its carrier may have ended it because of another process
  bool is_trouble = false;         // the process lives, and a new membership epoch would help it
};

class Suspicions {
 public:
  void add(Suspicion suspicion) { kept_.push_back(std::move(suspicion)); }
  bool empty() const { return kept_.empty(); }

  // Returns and removes the oldest suspicion, once its time has come.
  std::optional<Suspicion> take_due(TimePoint now) {
    if (kept_.empty() || now < kept_.front().until) return std::nullopt;
    Suspicion due = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return due;
  }

  // Nobody has listened for this long: what explains them may only be read now.
  void forgive(Duration absence) {
    for (Suspicion& suspicion : kept_) suspicion.until += absence;
  }
  // Returns whether a process has given up waiting and ends for that reason.
  bool has_passed_deadline() const {
    return std::ranges::any_of(kept_,
                               [](const Suspicion& suspicion) { return suspicion.verdict.code == ExitCode::kTimeout; });
  }

  // A new membership epoch has resolved them.
  void forget_troubles() {
    std::erase_if(kept_, [](const Suspicion& suspicion) { return suspicion.is_trouble; });
  }
  // The process is lost: its suspicions are obsolete.
  void forget(std::size_t process) {
    std::erase_if(kept_, [&](const Suspicion& suspicion) { return suspicion.process == process; });
  }
  // The carrier has given the reason itself.
  void forget_of_carrier() {
    std::erase_if(kept_, [](const Suspicion& suspicion) { return suspicion.may_be_of_carrier; });
  }

 private:
  std::vector<Suspicion> kept_;  // in the order in which they were added
};

}  // namespace syncopate::experiments
