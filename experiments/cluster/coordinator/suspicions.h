// Suspicions: verdicts that are kept for a moment before they are acted on, since they may have a deeper cause that is
// yet to be heard of. Pure.
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
  std::optional<std::size_t> process;  // who reported it; none: what carries them
  Verdict verdict;
  TimePoint until{};               // when it is acted on, unless something explains it
  bool may_be_of_carrier = false;  // its carrier may have ended it because of another one
  bool is_trouble = false;         // the process lives, and a new generation would help it
};

class Suspicions {
 public:
  void add(Suspicion suspicion) { kept_.push_back(std::move(suspicion)); }
  bool empty() const { return kept_.empty(); }

  // The one that arose first, once its time has come. It is not kept any more.
  std::optional<Suspicion> take_due(TimePoint now) {
    if (kept_.empty() || now < kept_.front().until) return std::nullopt;
    Suspicion due = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return due;
  }

  // Nobody has listened for so long: what explains them may be heard only now.
  void forgive(Duration absence) {
    for (Suspicion& suspicion : kept_) suspicion.until += absence;
  }
  // Somebody has given up waiting, and ends for that.
  bool has_passed_deadline() const {
    return std::ranges::any_of(kept_,
                               [](const Suspicion& suspicion) { return suspicion.verdict.code == ExitCode::kTimeout; });
  }

  // A new generation has helped them.
  void forget_troubles() {
    std::erase_if(kept_, [](const Suspicion& suspicion) { return suspicion.is_trouble; });
  }
  // It is lost: nothing more is to be said of it.
  void forget(std::size_t process) {
    std::erase_if(kept_, [&](const Suspicion& suspicion) { return suspicion.process == process; });
  }
  // The carrier has said itself why.
  void forget_of_carrier() {
    std::erase_if(kept_, [](const Suspicion& suspicion) { return suspicion.may_be_of_carrier; });
  }

 private:
  std::vector<Suspicion> kept_;  // in the order in which they arose
};

}  // namespace syncopate::experiments
