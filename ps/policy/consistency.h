// Consistency: decides how many pushes make an update, and when a worker may get its response. Pure.
//
//   sync         the mean of all workers' gradients of one version makes an update. With b backup workers it is the
//                mean of the first N of N + b; a later gradient is dropped (Chen et al. 2016, "Revisiting distributed
//                synchronous SGD").
//   bounded:k    each gradient makes an update; a worker gets its response while it is at most k pushes ahead of the
//                slowest (stale synchronous parallel, Ho et al. 2013, section 2).
//   softsync:n   the mean of every c = max(1, floor(W / n)) gradients makes an update, whichever workers sent them; a
//                push is answered at once (Zhang, Gupta, Lian and Liu 2016, "Staleness-aware async-SGD": staleness is
//                about n).
//   async        each gradient makes an update; a push is answered at once.
//   local-sgd:k  workers make k steps of their own, then all take the mean of their weights (Stich 2019, "Local SGD
//                converges fast and communicates little"; McMahan et al. 2017, FedAvg): this is sync, of weights.
//                With a quorum of K a meeting ends once K workers have pushed and the grace has passed, or all have.
//                Whoever comes later is answered at once, and what it has pushed counts in the next meeting. A push
//                weighs as many steps as it stands for (Douillard et al. 2026, "Decoupled DiLoCo for resilient
//                distributed pre-training": minimum quorum, grace window, token-weighted merging).
//   easgd:k      every k steps a worker and the center weights move towards each other (Zhang, Choromanska and LeCun
//                2015, "Deep learning with elastic averaging SGD", algorithm 1): this is async, of weights.
//
// Each kind is a row of consistency_traits(): help, refusals, rules of tables and checkpoints, and the kinds that tests
// run follow from the row. What a rule remembers of pushes is a ConsistencyState.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "ps/policy/quorum.h"

namespace syncopate::ps {

class StalenessBound;
struct ConsistencyTraits;

class Consistency {
 public:
  static constexpr std::size_t kMostParameters = 2;

  // The default is async.
  Consistency();

  // Parses the name of a kind with its parameters, as in "sync" or "bounded:4". An error says what is wrong and what
  // would be right.
  static Result<Consistency> parse(std::string_view text);
  // The forms that parse() accepts, with the range of each parameter, for help texts.
  static std::string forms();

  // For a kind that allows it: there are `backup_workers` more workers than an update needs.
  Consistency with_backup_workers(int backup_workers) const;
  // For a kind that allows it: a meeting waits for no more than this quorum.
  Consistency with_quorum(const Quorum& quorum) const;

  const ConsistencyTraits& traits() const { return *traits_; }
  // The parameters, in the order in which they are written.
  std::int64_t parameter(std::size_t index) const { return parameters_[index]; }
  // The number of steps that a worker makes from one push to the next.
  std::int64_t period() const;
  int backup_workers() const { return backup_workers_; }
  const Quorum& quorum() const { return quorum_; }
  std::string to_string() const;

  // An update waits for the pushes of several workers, and these workers wait for the update.
  bool updates_together() const;
  // All workers that get a response to the same version get the same one.
  bool answers_all_the_same() const { return updates_together() && backup_workers_ == 0 && quorum_.is_all(); }
  // Several pushes, whoever they come from, make an update, and nobody waits for it.
  bool sums_gradients() const;
  // Workers make updates of their own, and push where these have led them.
  bool pushes_weights() const;
  // A push carries weights, and moves those of the shard towards them by its rate.
  bool is_elastic() const;
  // Gradients that were computed from older weights are applied.
  bool applies_stale_gradients() const;
  // A response may have to wait until other workers have pushed, too.
  bool waits_for_others() const;

  // The number of pushes that make an update in a job of `workers`, of whom `live` (at least one) may still push. If
  // fewer are left than a synchronous update takes, all that are left make it. With a quorum there may be more.
  int pushes_an_update(int workers, int live) const;

  // Returns the bound on how far each of `workers` may lead the slowest, for one chunk or table; null if there is none.
  std::unique_ptr<StalenessBound> make_bound(int workers) const;
  // Returns a bound within which every worker gets its response at once: the least that make_bound() ever gives.
  std::int64_t least_bound() const;

  // Fails with invalid argument, saying what would be right, if a job of `workers` cannot have these parameters.
  Status check_workers(int workers) const;

 private:
  const ConsistencyTraits* traits_;  // a row of consistency_traits()
  std::array<std::int64_t, kMostParameters> parameters_{};
  int backup_workers_ = 0;
  Quorum quorum_;
};

struct ConsistencyParameter {
  std::string_view name;  // "k"; empty: there is no such parameter
  std::int64_t least = 0;
  std::int64_t most = 1000000;
  // Not empty: at most the number of workers; what it is with as many.
  std::string_view with_all_workers = {};
};

// One kind. Where there are several parameters, none is less than the one before it.
struct ConsistencyTraits {
  enum class Update {
    kEachPush,       // each push makes an update
    kSeveralPushes,  // every max(1, floor(W / parameter 0)) pushes, whoever they come from, make an update
    kAllWorkers,     // the pushes of all workers of one version make an update, for which these workers wait
  };

  std::string_view name;
  std::string_view sentence;  // how far workers run apart, for help: "bounded:k: " and this
  std::array<ConsistencyParameter, Consistency::kMostParameters> parameters = {};
  Update update = Update::kEachPush;
  bool pushes_weights = false;  // every parameter-0 steps, of which the workers make the updates
  bool tables = false;          // serves row-sparse tables
  bool backup_workers = false;  // takes --backup-workers
  bool quorum = false;          // takes --quorum
  bool pipeline = false;  // pushes may be under way in any number and order: --pipeline-depth, --push-order=priority
  // Makes the bound on how far a worker may lead, for one chunk or table; the first parameter is the least it gives.
  // Null: none.
  std::unique_ptr<StalenessBound> (*bound)(const Consistency& consistency, int workers) = nullptr;

  bool updates_together() const { return update == Update::kAllWorkers; }
  // Each update is of the gradients that all workers have computed from the same weights.
  bool sums_in_step() const { return updates_together() && !pushes_weights; }
  bool applies_stale_gradients() const { return !updates_together() && !pushes_weights; }
  bool is_elastic() const { return pushes_weights && !updates_together(); }
  bool waits_for_others() const { return updates_together() || bound != nullptr; }
  // Workers need not make the same number of steps, so that they may draw batches from one queue.
  bool shares_work() const { return !updates_together(); }
  // Returns the name and its parameters: "bounded:k".
  std::string usage() const;
};

// Returns all kinds, each once.
std::span<const ConsistencyTraits> consistency_traits();

using ConsistencyTest = bool (*)(const ConsistencyTraits&);
// Return the names ("bounded"), or the usages ("bounded:k"), of the kinds of which `test` is true.
std::vector<std::string> consistency_names(ConsistencyTest test);
std::vector<std::string> consistency_usages(ConsistencyTest test);

}  // namespace syncopate::ps
