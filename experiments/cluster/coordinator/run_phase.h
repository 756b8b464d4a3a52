// The phases of a run, and the one table of what leads from each to the next. README.md of this folder has the diagram.
#pragma once

#include <array>

#include "experiments/cluster/coordinator/transition_table.h"

namespace syncopate::experiments {

// In the order in which a run that goes well passes through them.
enum class RunPhase {
  kGathering,     // processes start, connect, and form the first group; nothing has been trained
  kTraining,      // processes may join
  kRestoring,     // all are to go back to a checkpoint, and wait for a shard's server, which is being restarted
  kClosed,        // a worker has made its last step: nobody may join any more
  kTrainingOver,  // a worker has the final weights: there are no more membership epochs
  kDraining,      // all workers are done; servers, or evaluations, are not
  kStopping,      // it has succeeded or has a verdict: every process has been asked to end
  kKilling,       // what had not ended in time has been killed
  kCount,
};

enum class RunEvent {
  kAllReady,       // every worker that is there has asked for the first epoch
  kEpochBegins,    // a membership epoch after the first
  kGoesBack,       // a loss sends all back to a checkpoint; every shard has a replica
  kServerAwaited,  // the same, and a shard has none
  kLastStep,       // a worker has made its last step
  kFinalWeights,   // a worker has the final weights
  kWorkersDone,    // every worker has finished, has ended or is lost
  kAllDone,        // servers and evaluations, too: success
  kVerdict,        // the run has failed, or was interrupted
  kPatienceOver,   // processes that were asked to end have had the time for it
  kCount,
};

constexpr const char* name_of(RunPhase phase) {
  switch (phase) {
    case RunPhase::kGathering:
      return "gathering";
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kRestoring:
      return "restoring";
    case RunPhase::kClosed:
      return "closed";
    case RunPhase::kTrainingOver:
      return "training_over";
    case RunPhase::kDraining:
      return "draining";
    case RunPhase::kStopping:
      return "stopping";
    case RunPhase::kKilling:
      return "killing";
    case RunPhase::kCount:
      break;
  }
  return "";
}

constexpr const char* name_of(RunEvent event) {
  switch (event) {
    case RunEvent::kAllReady:
      return "all ready";
    case RunEvent::kEpochBegins:
      return "epoch begins";
    case RunEvent::kGoesBack:
      return "goes back";
    case RunEvent::kServerAwaited:
      return "server awaited";
    case RunEvent::kLastStep:
      return "last step";
    case RunEvent::kFinalWeights:
      return "final weights";
    case RunEvent::kWorkersDone:
      return "workers done";
    case RunEvent::kAllDone:
      return "all done";
    case RunEvent::kVerdict:
      return "verdict";
    case RunEvent::kPatienceOver:
      return "patience over";
    case RunEvent::kCount:
      break;
  }
  return "";
}

namespace run_transitions {

using enum RunEvent;
using Row = TransitionRow<RunPhase, RunEvent>;
using Events = EventSet<RunEvent>;
using P = RunPhase;

constexpr auto to = &Row::to;
constexpr auto ignored = &Row::ignored;
constexpr auto impossible = &Row::impossible;

inline constexpr TransitionTable kTable{std::to_array<Row>({
    to(P::kGathering, kAllReady, P::kTraining),
    to(P::kGathering, kEpochBegins, P::kGathering),
    to(P::kGathering, kLastStep, P::kClosed),
    to(P::kGathering, kFinalWeights, P::kTrainingOver),
    to(P::kGathering, kWorkersDone, P::kDraining),
    to(P::kGathering, kVerdict, P::kStopping),
    // Before anything was trained, the loss of a server ends the run.
    impossible(P::kGathering, Events(kGoesBack) | kServerAwaited | kAllDone | kPatienceOver),

    to(P::kTraining, kEpochBegins, P::kTraining),
    to(P::kTraining, kGoesBack, P::kTraining),
    to(P::kTraining, kServerAwaited, P::kRestoring),
    to(P::kTraining, kLastStep, P::kClosed),
    to(P::kTraining, kFinalWeights, P::kTrainingOver),
    to(P::kTraining, kWorkersDone, P::kDraining),
    to(P::kTraining, kVerdict, P::kStopping),
    impossible(P::kTraining, Events(kAllReady) | kAllDone | kPatienceOver),

    to(P::kRestoring, kEpochBegins, P::kTraining),
    to(P::kRestoring, kServerAwaited, P::kRestoring),
    to(P::kRestoring, kFinalWeights, P::kTrainingOver),
    to(P::kRestoring, kWorkersDone, P::kDraining),
    to(P::kRestoring, kVerdict, P::kStopping),
    // The worker was to go back to before that step when it said so.
    ignored(P::kRestoring, kLastStep),
    impossible(P::kRestoring, Events(kAllReady) | kGoesBack | kAllDone | kPatienceOver),

    to(P::kClosed, kEpochBegins, P::kClosed),
    to(P::kClosed, kGoesBack, P::kTraining),
    to(P::kClosed, kServerAwaited, P::kRestoring),
    to(P::kClosed, kFinalWeights, P::kTrainingOver),
    to(P::kClosed, kWorkersDone, P::kDraining),
    to(P::kClosed, kVerdict, P::kStopping),
    ignored(P::kClosed, kLastStep),
    impossible(P::kClosed, Events(kAllReady) | kAllDone | kPatienceOver),

    to(P::kTrainingOver, kWorkersDone, P::kDraining),
    to(P::kTrainingOver, kVerdict, P::kStopping),
    ignored(P::kTrainingOver, Events(kLastStep) | kFinalWeights),
    impossible(P::kTrainingOver,
               Events(kAllReady) | kEpochBegins | kGoesBack | kServerAwaited | kAllDone | kPatienceOver),

    to(P::kDraining, kAllDone, P::kStopping),
    to(P::kDraining, kVerdict, P::kStopping),
    ignored(P::kDraining, Events(kLastStep) | kFinalWeights),
    impossible(P::kDraining,
               Events(kAllReady) | kEpochBegins | kGoesBack | kServerAwaited | kWorkersDone | kPatienceOver),

    to(P::kStopping, kPatienceOver, P::kKilling),
    ignored(P::kStopping, Events(kLastStep) | kFinalWeights),
    // The first verdict stands: nothing is judged any more.
    impossible(P::kStopping,
               Events(kAllReady) | kEpochBegins | kGoesBack | kServerAwaited | kWorkersDone | kAllDone | kVerdict),

    ignored(P::kKilling, Events(kLastStep) | kFinalWeights),
    impossible(P::kKilling, Events(kAllReady) | kEpochBegins | kGoesBack | kServerAwaited | kWorkersDone | kAllDone |
                                kVerdict | kPatienceOver),
})};
static_assert(kTable.is_complete());

}  // namespace run_transitions

inline constexpr const auto& kRunTransitions = run_transitions::kTable;

// Returns whether training has been released.
constexpr bool training_has_begun(RunPhase phase) { return phase != RunPhase::kGathering; }
// Returns whether a process that is lost may take part again.
constexpr bool is_open(RunPhase phase) { return phase <= RunPhase::kRestoring; }
// Returns whether the final weights exist, so that no worker is needed for them any more.
constexpr bool training_is_over(RunPhase phase) { return phase >= RunPhase::kTrainingOver; }
constexpr bool is_stopping(RunPhase phase) { return phase >= RunPhase::kStopping; }

}  // namespace syncopate::experiments
