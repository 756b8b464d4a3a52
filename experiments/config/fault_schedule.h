// FaultSchedule: which faults are injected into a run, and when, as --fault asks. Pure: random choices follow from the
// run's seed.
//
// Entries are written with commas between them:
//
//   kill:TARGET@WHEN         SIGKILL                                             kill:server0@step200
//   stop:TARGET@WHEN+TIME    SIGSTOP, and SIGCONT after TIME                     stop:worker1@10s+3s
//   cut:TARGET@WHEN+TIME     its data links carry nothing for TIME, then again   cut:worker2@5s+2s
//   delay:, duplicate:, reorder:TARGET@WHEN+TIME                                 delay:server0@step50+2s
//                            for TIME, some of the messages that it sends are delayed, all are sent twice, or some are
//                            overtaken by others
//   nan:TARGET@stepN         a NaN in the gradient that this worker computes in   nan:worker1@step50
//                            that step
//   random:SEED              one to three random kills, stops and cuts that the  random:7
//                            run survives by what its mode promises: it kills only processes that the run can go on
//                            without, and its stops and cuts are shorter than any silence that counts as a failure
//   random:SEED:any          also random faults that end the run with a verdict  random:7:any
//   churn:TIME               kills a training worker every TIME on average (exponentially distributed)
//
// TARGET is worker, server or standby with its rank, evaluator, any-worker or any-server (drawn at random). WHEN is a
// step, as in step200, or a time since training began. A fault of a worker takes effect when that worker begins the
// step; a fault of another process takes effect when the first worker begins it. Times are written as 10s, 1.5s or
// 200ms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/link_faults.h"

namespace syncopate::experiments {

enum class FaultKind { kKill, kStop, kCut, kDelay, kDuplicate, kReorder, kNan };
enum class FaultRole { kWorker, kServer, kStandby, kEvaluator };

// Returns "kill", "stop", "cut", "delay", "duplicate", "reorder" or "nan".
const char* name_of(FaultKind kind);
// Returns whether it has a duration.
inline bool lasts(FaultKind kind) { return kind != FaultKind::kKill && kind != FaultKind::kNan; }
// Returns the fault of the links that `kind` causes; empty for kinds that do not impair links.
std::optional<LinkFault> link_fault_of(FaultKind kind);
// Returns "worker", "server", "standby" or "evaluator".
const char* name_of(FaultRole role);

struct FaultTarget {
  FaultRole role = FaultRole::kWorker;
  std::optional<int> rank = 0;  // none: any; always 0 for the evaluator

  // Returns the name that verdicts and logs use: "worker 1", "evaluator", or "any worker" without a rank.
  std::string name() const;
  bool operator==(const FaultTarget&) const = default;
};

struct Fault {
  FaultKind kind = FaultKind::kKill;
  FaultTarget target;
  std::optional<std::int64_t> step;  // none: the fault comes at `time`
  Duration time{};                   // since training began
  Duration length{};                 // of a kind that lasts

  // Returns the text that FaultSchedule::parse() reads.
  std::string to_string() const;
  bool operator==(const Fault&) const = default;
};

// The facts of a run that its fault schedule needs.
struct FaultScene {
  int workers = 1;
  int servers = 0;
  int standbys = 0;
  std::string no_gradients = {};  // why no gradient can hold a NaN; empty: one can
  std::string no_links = {};      // why links cannot be impaired; empty: they can
  std::string no_servers = {};    // why there are no servers to strike, if that is not because the mode has none
  std::int64_t total_steps = 0;   // steps of one worker; 0: not known yet
  Duration timeout{};             // timeout of every wait
  // The number of workers that the run can go on without.
  int workers_to_spare = 0;
  bool spares_servers = false;  // whether the run survives the loss of one of each server and its standby
};

// A schedule whose random choices have been made, except which worker churn kills, and when.
struct DrawnFaults {
  std::vector<Fault> faults;     // every target has a rank
  std::vector<Duration> churns;  // for each churn, the mean time between two losses
};

class FaultSchedule {
 public:
  // Reads `text`; an empty text means no faults. Fails with invalid argument, saying what is wrong and what would be
  // right.
  static Result<FaultSchedule> parse(std::string_view text);
  // Returns the text that parse() reads.
  std::string to_string() const;

  bool empty() const { return entries_.empty(); }
  // Returns whether the schedule may inject this fault into links. Endpoints must then be able to inject it.
  bool may(LinkFault fault) const;

  // Fails if a named target does not exist, or if links that are to be impaired cannot be.
  Status check(const FaultScene& scene) const;

  // Makes the random choices, within the steps of the scene. Requires that the number of steps is known and that
  // check() has accepted the scene.
  DrawnFaults draw(std::uint64_t seed, const FaultScene& scene) const;

 private:
  struct Entry {
    enum class Kind { kFault, kRandom, kChurn };
    Kind kind = Kind::kFault;
    Fault fault;
    std::uint64_t seed = 0;  // kRandom only
    bool any = false;        // kRandom only: also faults that end the run
    Duration mean{};         // kChurn only

    std::string to_string() const;
  };

  static Result<Entry> parse_entry(std::string_view text);

  std::vector<Entry> entries_;
};

}  // namespace syncopate::experiments
