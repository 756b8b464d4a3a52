// CheckpointPolicy: the policy of checkpoints: when one is taken, at which step, and what becomes of it. Pure: it
// receives events with their times and returns actions, which the coordinator carries out.
//
// If all workers move together, all writers take the checkpoint at the same step. For one every N steps that step
// follows from the count, and no message is needed. One every S seconds is ordered for a step far enough ahead for the
// order to reach all writers in time. A writer that is already past that step reports it; the attempt is then given up,
// and the next one is ordered further ahead. If workers go at their own pace there is no common step: they are ordered
// to take the checkpoint at once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/config/interval.h"

namespace syncopate::experiments {

// One writer's report about one checkpoint.
struct CheckpointReport {
  enum class Kind {
    kWritten,  // its part is on the disk
    kBusy,     // it was still writing the previous one
    kPassed,   // the order came too late: it is past that step
    kFailed,   // it could not write its part
    kNothing,  // it has nothing to write, in this membership epoch
  };
  Kind kind = Kind::kWritten;
  std::int64_t membership_epoch = 0;
  std::int64_t step = 0;
  StoredPart part = {};     // kWritten only
  std::string reason = {};  // kFailed only
  Duration stall{};         // how long training stood still
  TimePoint taken{};        // when the state was copied
};

struct CheckpointAction {
  enum class Kind {
    kOrder,     // tell all writers to take a checkpoint at `step`, or at once
    kComplete,  // all parts are written: write the manifest, then call on_complete
    kGiveUp,    // remove what has been written of it
    kReport,    // show `text` to the user; the run goes on
  };
  Kind kind;
  std::int64_t membership_epoch = 0;
  std::int64_t step = 0;
  std::vector<StoredPart> parts = {};
  std::string text = {};
  Duration trained = {};  // kComplete: from the beginning of training until the last part was copied
};

// The figures about a run's checkpoints at its end.
struct CheckpointFigures {
  std::int64_t asked = 0;  // number that the interval asks for in the steps, or the time, of the run
  std::int64_t completed = 0;
  std::int64_t left_out = 0;              // how many of those were not completed, for whatever reason
  std::string why_left_out = {};          // the most frequent reason, and what would help; empty if none was left out
  std::optional<std::int64_t> last_step;  // step of the newest complete checkpoint
  Duration stall{};                       // total of the worker that stood still longest
};

class CheckpointPolicy {
 public:
  // `together`: whether workers move together. The run begins with step `first_step`.
  CheckpointPolicy(const CheckpointInterval& interval, bool together, std::int64_t first_step = 0)
      : interval_(interval), together_(together), first_step_(first_step), furthest_(first_step) {}

  // Training goes on in a new membership epoch, with these writers: "worker-0", "shard-1". Its first step is unknown
  // until a worker reports steps. Attempts in progress are given up.
  void on_membership(std::int64_t membership_epoch, std::vector<std::string> writers, TimePoint now);
  // A worker has reported that it has finished this many steps.
  void on_steps(const std::string& worker, std::int64_t steps_done, TimePoint now);
  void on_report(const std::string& writer, const CheckpointReport& report);
  // A worker, whether it is a writer or not, was lost; others may go on in this membership epoch. If it was a writer,
  // attempts in progress are given up, and its parts are not expected any more.
  void on_lost(const std::string& writer);
  // Reports the result of writing the manifest.
  void on_complete(std::int64_t step, const Status& status);
  // One more is wanted, as soon as it can be had, whatever the interval. Is ignored before training has begun.
  void on_last_wanted(TimePoint now);
  void on_tick(TimePoint now);

  // Returns the step of the one that was wanted, once it is complete: it has all steps that were heard of until then.
  std::optional<std::int64_t> last_wanted() const { return last_; }
  bool has_begun() const { return begun_.has_value(); }

  // Returns the actions to carry out, in order, and empties the list.
  std::vector<CheckpointAction> take_actions();
  CheckpointFigures figures() const;

 private:
  struct Attempt {
    std::map<std::string, StoredPart> parts;  // by writer
    TimePoint taken{};                        // the last of them
  };

  // Completes the attempt of this step if all parts are there.
  void complete_if_whole(std::int64_t step);
  // No part is expected of it any more in this membership epoch.
  void go_on_without(const std::string& writer);
  // Returns a step over all workers that have reported: the furthest if they move together, since an order must be
  // ahead of it; else the slowest, which the checkpoint is counted by.
  std::int64_t heard() const;
  bool awaits_last() const { return last_since_ && !last_; }
  bool is_due(TimePoint now) const;
  void order(TimePoint now);
  // The reason for leaving one out. For the figures, `why` can be shared by many, and `remedy` says what would help.
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
  std::int64_t furthest_;           // largest heard() so far, over all membership epochs
  std::optional<TimePoint> begun_;  // when training began
  TimePoint last_heard_{};
  std::int64_t membership_epoch_ = 0;
  std::vector<std::string> writers_;
  // Who has reported that it has nothing, and in which membership epoch: a shard may before training begins.
  std::map<std::string, std::int64_t> with_nothing_;
  std::map<std::int64_t, Attempt> attempts_;  // attempts of this membership epoch, by step
  std::set<std::int64_t> given_up_;  // steps given up in this membership epoch; later reports about them are ignored
  std::map<std::string, std::int64_t> heard_;  // steps done in this membership epoch, by worker
  std::optional<std::int64_t> ordered_;        // the step that is ordered and not decided yet
  std::optional<TimePoint> next_;              // time of the next order, for an interval in seconds
  std::optional<std::int64_t> next_step_;      // step of the next order, for an interval in steps, if they are ordered
  // How old reports may be at first: records are sent every 200 ms, in a large run every second, and orders every 100
  // ms.
  Duration ahead_ = std::chrono::milliseconds(500);
  // For the pace: the time and the step from which it is measured.
  std::optional<TimePoint> pace_since_;
  std::int64_t pace_from_ = 0;
  double steps_a_second_ = 0;

  std::optional<TimePoint> last_since_;  // when one more was wanted
  std::int64_t last_from_ = 0;           // the steps that it is to have at least
  std::optional<std::int64_t> last_;     // its step, once it is complete
  int completing_ = 0;                   // how many are to be completed, and on_complete has not been called yet

  std::int64_t completed_ = 0, left_out_ = 0;
  std::map<Reason, std::int64_t> reasons_;  // how many were left out for each reason
  std::optional<std::int64_t> last_step_;
  std::map<std::string, Duration> stalls_;  // total stall of each writer
  bool reported_ = false;                   // whether a left-out checkpoint was reported since the last complete one
  std::vector<CheckpointAction> actions_;
};

}  // namespace syncopate::experiments
