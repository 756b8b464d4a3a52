// CheckpointCourse: when checkpoints are taken, at which step, and what becomes of them. Pure: it is told what happened
// and when, and says what is to be done. The coordinator carries it out.
//
// Where all workers move together, everybody cuts at one and the same step. One of every N steps follows from the
// count, and nobody has to be told; one of every S seconds is ordered for a step that is far enough ahead for everybody
// to hear of it in time. Who has passed that step says so; the attempt is then given up, and the next one is ordered
// further ahead. Where workers go at their own pace there is no step that all share: they are told to cut at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/config/checkpoint_interval.h"

namespace syncopate::experiments {

// What one writer says of one checkpoint.
struct CheckpointReport {
  enum class Kind {
    kWritten,  // its part is on the disk
    kBusy,     // it was still writing the one before
    kPassed,   // it was told too late: it is beyond that step
    kFailed,   // it could not
  };
  Kind kind = Kind::kWritten;
  std::int64_t generation = 0;
  std::int64_t step = 0;
  StoredPart part = {};     // of kWritten
  std::string reason = {};  // of kFailed
  Duration stall{};         // for so long training stood still
};

struct CheckpointAction {
  enum class Kind {
    kOrder,     // tell all writers to cut at `step`, or at once
    kComplete,  // all parts are written: write the manifest, then say on_complete
    kGiveUp,    // remove what has been written of it
    kReport,    // show `text` to the person: the run goes on
  };
  Kind kind;
  std::int64_t generation = 0;
  std::int64_t step = 0;
  std::vector<StoredPart> parts = {};
  std::string text = {};
};

// What there is to say about a run's checkpoints in the end.
struct CheckpointFigures {
  std::int64_t asked = 0;  // that the interval comes to in the steps, or the time, that there were
  std::int64_t completed = 0;
  std::int64_t left_out = 0;              // of those asked for, for whatever reason
  std::string why_left_out = {};          // the reason of most, and what would help; empty where none is left out
  std::optional<std::int64_t> last_step;  // of the newest that is complete
  Duration stall{};                       // of the worker that stood still longest, all together
};

class CheckpointCourse {
 public:
  // `together`: workers move together. The run begins with step `first_step`.
  CheckpointCourse(const CheckpointInterval& interval, bool together, std::int64_t first_step = 0)
      : interval_(interval), together_(together), first_step_(first_step), furthest_(first_step) {}

  // Training goes on in a new generation, with these writers: "worker-0", "shard-1". From where is not known until
  // steps are heard of. What was under way is given up.
  void on_generation(std::int64_t generation, std::vector<std::string> writers, TimePoint now);
  // A worker has been heard to have finished so many steps.
  void on_steps(const std::string& worker, std::int64_t steps_done, TimePoint now);
  void on_report(const std::string& writer, const CheckpointReport& report);
  // A worker, be it a writer or not, is gone; others may go on in this generation. If it was to write, what was under
  // way is given up, and it is awaited no more.
  void on_lost(const std::string& writer);
  // How writing the manifest went.
  void on_complete(std::int64_t step, const Status& status);
  void on_tick(TimePoint now);

  // What is to be done, in order. Empties the list.
  std::vector<CheckpointAction> take_actions();
  CheckpointFigures figures() const;

 private:
  struct Attempt {
    std::map<std::string, StoredPart> parts;  // by writer
  };

  // Of all workers that have been heard: where they move together the furthest, ahead of whom a step must be; else the
  // slowest, by whom a checkpoint goes.
  std::int64_t heard() const;
  bool is_due(TimePoint now) const;
  void order(TimePoint now);
  // For the figures, `why` is the reason of many, and `remedy` what would help.
  struct Reason {
    std::string why, remedy;
    auto operator<=>(const Reason&) const = default;
  };
  void give_up(std::int64_t step, const std::string& report, const Reason& reason);
  void give_up_all(const std::string& reason);
  std::int64_t asked() const;
  std::int64_t steps_within(Duration duration) const;

  const CheckpointInterval interval_;
  const bool together_;
  const std::int64_t first_step_;
  std::int64_t furthest_;           // that all have come to, over all generations
  std::optional<TimePoint> begun_;  // training
  TimePoint last_heard_{};
  std::int64_t generation_ = 0;
  std::vector<std::string> writers_;
  std::map<std::int64_t, Attempt> attempts_;   // by step, of this generation
  std::set<std::int64_t> given_up_;            // of this generation: what still comes of them is not wanted
  std::map<std::string, std::int64_t> heard_;  // by worker, steps done in this generation
  std::optional<std::int64_t> ordered_;        // and not over yet
  std::optional<TimePoint> next_;              // by time
  std::optional<std::int64_t> next_step_;      // by steps, where they are ordered
  // Records come every 200 ms, and orders are given every 100 ms: so old is what has been heard.
  Duration ahead_ = std::chrono::milliseconds(500);
  // For the pace: since when, from which step.
  std::optional<TimePoint> pace_since_;
  std::int64_t pace_from_ = 0;
  double steps_a_second_ = 0;

  std::int64_t completed_ = 0, left_out_ = 0;
  std::map<Reason, std::int64_t> reasons_;  // how many were left out for it
  std::optional<std::int64_t> last_step_;
  std::map<std::string, Duration> stalls_;  // by writer
  bool reported_ = false;                   // that one was left out, since the last that was complete
  std::vector<CheckpointAction> actions_;
};

}  // namespace syncopate::experiments
