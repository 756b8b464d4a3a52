// HealthWatch: what processes report that is not a finite number, and what follows from it. Pure. Several report the
// same within a moment, the later of them of steps that the first has spoilt: so the first report waits for that long,
// and the earliest step is what is told, once.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/on_nan.h"
#include "worker/not_finite.h"

namespace syncopate::experiments {

// What of a run was not finite, for its record.
struct HealthRecord {
  std::string process;  // "worker 1"; the evaluator has seen it in the weights of that step
  worker::NotFinite first;
  OnNan on_nan = OnNan::kStop;
  std::int64_t left_out = 0;  // steps of all where they move together, else of single workers
};

// Returns "step 50: on worker 1 the gradient of dense1.weight is nan (loss nan)".
std::string to_text(const HealthRecord& record);

class HealthWatch {
 public:
  // `together`: workers move together, so that what is left out is a step of all of them.
  HealthWatch(OnNan on_nan, bool together) : on_nan_(on_nan), together_(together) {}

  void on_report(const std::string& process, const worker::NotFinite& what, TimePoint now);

  struct Finding {
    std::int64_t step = 0;
    std::string line;  // for a person
    bool ends_run = false;
  };
  // Returns what is to be told now, if anything. At the end of a run nothing more is waited for.
  std::optional<Finding> take_due(TimePoint now, bool is_end = false);
  // Returns none if all was finite, as far as it was looked at.
  std::optional<HealthRecord> record() const;

 private:
  const OnNan on_nan_;
  const bool together_;
  std::optional<HealthRecord> first_;                        // the earliest so far
  std::set<std::pair<std::int64_t, std::string>> left_out_;  // by step, and by process unless all move together
  TimePoint due_{};
  bool is_ending_ = false;
  bool is_told_ = false;
};

}  // namespace syncopate::experiments
