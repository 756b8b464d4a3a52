// Names what cost a run its time, says what to change, and predicts what that gains. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/why/run_pace.h"
#include "experiments/lab/why/waterfall.h"

namespace syncopate::experiments {

// A cause costs at least this part of the mean step; less is not named.
inline constexpr double kNamedPart = 0.05;

struct Cause {
  std::string name;      // "straggler"; of a part, or "tiny batch"
  std::string phrase;    // as a sentence has it: "a straggler"
  double ms = 0;         // of the mean step
  std::string evidence;  // a clause: "worker 3 computes 4.0 x as long as most"
  std::string change;    // an imperative clause: "give worker 3 a faster host"
  // What the change would make of the job's rate, in samples a second, by `by`: "the waterfall without this part" or a
  // closed form. Empty: that is not predicted.
  std::optional<double> predicted_rate;
  std::string by;
};

// Returns the causes that cost enough to be named, the one that costs most first. Parts of which nothing can be said
// ("other") are none.
std::vector<Cause> causes_of(const Waterfall& waterfall, const RunPace& pace);

// What the ideal step is of: "worker 0 computes fastest, x 4 workers".
std::string ideal_text(const Waterfall& waterfall, const RunPace& pace);

// Whether waits for others' computing may be among those of the exchange: where workers wait for others within
// messages, and some compute for unequal times.
bool may_wait_for_computing(const Waterfall& waterfall, const RunPace& pace);

// Returns what is known of a part, for a table: its figures, or that something was not recorded; may be empty.
std::string evidence_of(PartKind kind, const Waterfall& waterfall, const RunPace& pace);

}  // namespace syncopate::experiments
