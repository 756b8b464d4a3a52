// Consistency: decides how many pushes make an update, and when a worker may be answered. Pure.
//
//   sync         the mean of all workers' gradients of one version makes an update. With b backup workers it is the
//                mean of the first N of N + b; a later gradient is dropped (Chen et al. 2016, "Revisiting distributed
//                synchronous SGD").
//   bounded:k    each gradient makes an update; a worker is answered while it is at most k pushes ahead of the slowest
//                (stale synchronous parallel, Ho et al. 2013, section 2).
//   softsync:n   the mean of every c = max(1, floor(W / n)) gradients makes an update, whichever workers sent them; a
//                push is answered at once (Zhang, Gupta, Lian and Liu 2016, "Staleness-aware async-SGD": staleness is
//                about n).
//   async        each gradient makes an update; a push is answered at once.
//   local-sgd:k  workers make k steps of their own, then all take the mean of their weights (Stich 2019, "Local SGD
//                converges fast and communicates little"; McMahan et al. 2017, FedAvg): this is sync, of weights.
//   easgd:k      every k steps a worker and the center weights move towards each other (Zhang, Choromanska and LeCun
//                2015, "Deep learning with elastic averaging SGD", algorithm 1): this is async, of weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::ps {

class Consistency {
 public:
  enum class Kind { kSync, kBounded, kSoftSync, kAsync, kLocalSgd, kEasgd };

  // Parses "sync", "bounded:k", "softsync:n", "async", "local-sgd:k" or "easgd:k". An error says what is wrong and what
  // would be right.
  static Result<Consistency> parse(std::string_view text);
  // The forms that parse() accepts, for help texts.
  static std::string forms();

  // For sync: there are `backup_workers` more workers than an update needs.
  Consistency with_backup_workers(int backup_workers) const;

  Kind kind() const { return kind_; }
  // k of bounded, n of softsync.
  std::int64_t bound() const { return parameter_; }
  // The number of steps that a worker makes from one push to the next.
  std::int64_t period() const { return pushes_weights() ? parameter_ : 1; }
  int backup_workers() const { return backup_workers_; }
  std::string to_string() const;

  // An update waits for the pushes of several workers, and these workers wait for the update.
  bool updates_together() const { return kind_ == Kind::kSync || kind_ == Kind::kLocalSgd; }
  // Workers make updates of their own, and push the resulting weights.
  bool answers_all_the_same() const { return updates_together() && backup_workers_ == 0; }
  // Workers make updates of their own, and push where these have led them.
  bool pushes_weights() const { return kind_ == Kind::kLocalSgd || kind_ == Kind::kEasgd; }
  // Gradients that were computed from older weights are applied.
  bool applies_stale_gradients() const { return !updates_together() && !pushes_weights(); }

  // A response may have to wait until other workers have pushed, too.
  bool waits_for_others() const { return updates_together() || kind_ == Kind::kBounded; }

  // The number of pushes that make an update in a job of `workers`, of whom `live` (at least one) may still push. If
  // fewer are left than a synchronous update takes, all that are left make it.
  int pushes_an_update(int workers, int live) const;

  // Whether a worker whose push need no longer be held may be answered. `clock`: pushes received from the worker that
  // pulls; `slowest`: the least clock of all workers that are still in the job.
  bool may_answer(std::int64_t clock, std::int64_t slowest) const {
    return kind_ != Kind::kBounded || clock - slowest <= parameter_;
  }

 private:
  Kind kind_ = Kind::kAsync;
  std::int64_t parameter_ = 0;
  int backup_workers_ = 0;
};

}  // namespace syncopate::ps
