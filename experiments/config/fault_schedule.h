// FaultSchedule: what is to go wrong in a run, and when, as --fault gives it. Pure: what is drawn follows from the
// run's seed.
//
// As a person writes it, entries between commas:
//
//   kill:TARGET@WHEN         SIGKILL                                             kill:server0@step200
//   stop:TARGET@WHEN+TIME    SIGSTOP, and SIGCONT after TIME                     stop:worker1@10s+3s
//   cut:TARGET@WHEN+TIME     its data links carry nothing for TIME, then again   cut:worker2@5s+2s
//   delay:, duplicate:, reorder:TARGET@WHEN+TIME                                 delay:server0@step50+2s
//                            for TIME, some of the messages that it sends come late, all come twice, some are overtaken
//   random:SEED              one to three kills, stops and cuts, drawn for the   random:7
//                            run, which it outlasts by what its mode promises: kills of those alone whom it goes on
//                            without, stops and cuts that are shorter than any silence that is judged
//   random:SEED:any          also those that end it, in a verdict                random:7:any
//   churn:TIME               every TIME in the mean (exponentially distributed), a worker that trains is killed
//
// TARGET is worker, server or standby with its rank, evaluator, any-worker or any-server (drawn). WHEN is a step, as in
// step200, or a time since training began. A worker is hurt when it itself begins the step, another process when the
// first worker does. Times are as in 10s, 1.5s or 200ms.
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

enum class FaultKind { kKill, kStop, kCut, kDelay, kDuplicate, kReorder };
enum class FaultRole { kWorker, kServer, kStandby, kEvaluator };

// "kill", "stop", "cut", "delay", "duplicate", "reorder"
const char* name_of(FaultKind kind);
// Of the kinds that hurt a process's links.
std::optional<LinkFault> link_fault_of(FaultKind kind);
// "worker", "server", "standby", "evaluator"
const char* name_of(FaultRole role);

struct FaultTarget {
  FaultRole role = FaultRole::kWorker;
  std::optional<int> rank = 0;  // none: any; always 0 for the evaluator

  // As verdicts and logs call it: "worker 1", "evaluator"; with no rank, "any worker".
  std::string name() const;
  bool operator==(const FaultTarget&) const = default;
};

struct Fault {
  FaultKind kind = FaultKind::kKill;
  FaultTarget target;
  std::optional<std::int64_t> step;  // none: at `time`
  Duration time{};                   // since training began
  Duration length{};                 // of all but a kill

  // As FaultSchedule::parse reads it.
  std::string to_string() const;
  bool operator==(const Fault&) const = default;
};

// What a schedule must know of the run that it is for.
struct FaultScene {
  int workers = 1;
  int servers = 0;
  int standbys = 0;
  std::string no_links = {};     // why links cannot be hurt; empty: they can
  std::int64_t total_steps = 0;  // of one worker; 0: not known yet
  Duration timeout{};            // of every wait
  // What the run goes on without.
  int workers_to_spare = 0;
  bool spares_servers = false;  // of each server and its standby, one
};

// A schedule in which nothing is left to chance but whom churn strikes, and when.
struct DrawnFaults {
  std::vector<Fault> faults;     // each target has its rank
  std::vector<Duration> churns;  // the mean time between two losses of each
};

class FaultSchedule {
 public:
  // An empty text: no faults. Says what is wrong and what would be right.
  static Result<FaultSchedule> parse(std::string_view text);
  // As parse reads it.
  std::string to_string() const;

  bool empty() const { return entries_.empty(); }
  // Whether this may happen to links: endpoints must then be able to do it.
  bool may(LinkFault fault) const;

  // Whether all that are named are there, and links that are to be hurt can be.
  Status check(const FaultScene& scene) const;

  // Draws what is random, within the steps of the scene, which are known and which check() has accepted.
  DrawnFaults draw(std::uint64_t seed, const FaultScene& scene) const;

 private:
  struct Entry {
    enum class Kind { kFault, kRandom, kChurn };
    Kind kind = Kind::kFault;
    Fault fault;
    std::uint64_t seed = 0;  // of kRandom
    bool any = false;        // of kRandom: also what ends the run
    Duration mean{};         // of kChurn

    std::string to_string() const;
  };

  static Result<Entry> parse_entry(std::string_view text);

  std::vector<Entry> entries_;
};

}  // namespace syncopate::experiments
