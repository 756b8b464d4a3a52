// The phases of a process of a run, as the coordinator sees it, and the one table of what leads from each to the next.
// README.md of this folder has the diagram.
#pragma once

#include <array>

#include "experiments/cluster/coordinator/transition_table.h"

namespace syncopate::experiments {

enum class ProcessPhase {
  // It takes part, or is about to.
  kStarting,            // launched; it has not said hello
  kConnected,           // it has said hello, and holds no state of the training yet; an evaluator never does
  kReady,               // a worker that has asked for the first epoch
  kTraining,            // it was there when training began, or a step has gone through it since it joined
  kLeaving,             // the same, of a worker that has made its last step
  kLeavingWithoutStep,  // a worker that has nothing left to train, and of which no step is known
  kHasFinalWeights,     // a worker that needs nothing more from others
  // It does not any more, and the run does not have to go on without it.
  kFinished,  // it has said that its part is done
  kFailed,    // it has said what is wrong
  kEnded,     // the process has ended
  // It is lost: the run goes on without it.
  kLost,             // it has been killed, and its end is not known yet
  kLostExiting,      // it has said that it ends
  kGone,             // it has ended
  kAwaitingRestart,  // it has ended, and is restarted after a pause
  kRestarting,       // launched again; it has not said hello
  kRejoining,        // it has said hello again, and does not take part yet
  kCount,
};

enum class ProcessEvent {
  kHello,
  kReady,           // a worker asks for the first epoch
  kAdmitted,        // a lost process is to take part in the next membership epoch
  kEpochBegins,     // a membership epoch after the first: all workers connect anew
  kTrainingBegins,  // the first epoch is released
  kStep,            // it has finished a step, or, of a server or a standby, a step has gone through it
  kLastStep,        // a worker has made its last step
  kFinalWeights,    // a worker has the final weights
  kFinished,        // it says that its part is done
  kFailure,         // it says what is wrong
  kExit,            // the process has ended
  kLoss,            // the run gives it up
  kRestartPlanned,
  kRestart,  // it is launched again
  kCount,
};

constexpr const char* name_of(ProcessPhase phase) {
  switch (phase) {
    case ProcessPhase::kStarting:
      return "starting";
    case ProcessPhase::kConnected:
      return "connected";
    case ProcessPhase::kReady:
      return "ready";
    case ProcessPhase::kTraining:
      return "training";
    case ProcessPhase::kLeaving:
      return "leaving";
    case ProcessPhase::kLeavingWithoutStep:
      return "leaving_without_step";
    case ProcessPhase::kHasFinalWeights:
      return "has_final_weights";
    case ProcessPhase::kFinished:
      return "finished";
    case ProcessPhase::kFailed:
      return "failed";
    case ProcessPhase::kEnded:
      return "ended";
    case ProcessPhase::kLost:
      return "lost";
    case ProcessPhase::kLostExiting:
      return "lost_exiting";
    case ProcessPhase::kGone:
      return "gone";
    case ProcessPhase::kAwaitingRestart:
      return "awaiting_restart";
    case ProcessPhase::kRestarting:
      return "restarting";
    case ProcessPhase::kRejoining:
      return "rejoining";
    case ProcessPhase::kCount:
      break;
  }
  return "";
}

constexpr const char* name_of(ProcessEvent event) {
  switch (event) {
    case ProcessEvent::kHello:
      return "hello";
    case ProcessEvent::kReady:
      return "asks for the first epoch";
    case ProcessEvent::kAdmitted:
      return "admitted";
    case ProcessEvent::kEpochBegins:
      return "epoch begins";
    case ProcessEvent::kTrainingBegins:
      return "training begins";
    case ProcessEvent::kStep:
      return "step";
    case ProcessEvent::kLastStep:
      return "last step";
    case ProcessEvent::kFinalWeights:
      return "final weights";
    case ProcessEvent::kFinished:
      return "finished";
    case ProcessEvent::kFailure:
      return "failure";
    case ProcessEvent::kExit:
      return "exit";
    case ProcessEvent::kLoss:
      return "loss";
    case ProcessEvent::kRestartPlanned:
      return "restart planned";
    case ProcessEvent::kRestart:
      return "restart";
    case ProcessEvent::kCount:
      break;
  }
  return "";
}

namespace process_transitions {

using enum ProcessEvent;
using Row = TransitionRow<ProcessPhase, ProcessEvent>;
using Events = EventSet<ProcessEvent>;
using P = ProcessPhase;

constexpr auto to = &Row::to;
constexpr auto ignored = &Row::ignored;
constexpr auto impossible = &Row::impossible;

// What a lost process still says changes nothing, nor does what becomes of the run meanwhile.
inline constexpr Events kOfThoseWhoTakePart =
    Events(kReady) | kEpochBegins | kTrainingBegins | kStep | kLastStep | kFinalWeights;

inline constexpr TransitionTable kTable{std::to_array<Row>({
    to(P::kStarting, kHello, P::kConnected),
    to(P::kStarting, kFinished, P::kFinished),
    to(P::kStarting, kFailure, P::kFailed),
    to(P::kStarting, kExit, P::kEnded),
    to(P::kStarting, kLoss, P::kLost),
    // Who has not said hello has no part in what the others do.
    ignored(P::kStarting, kOfThoseWhoTakePart),
    impossible(P::kStarting, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kConnected, kReady, P::kReady),
    to(P::kConnected, kTrainingBegins, P::kTraining),
    to(P::kConnected, kStep, P::kTraining),
    to(P::kConnected, kLastStep, P::kLeavingWithoutStep),
    to(P::kConnected, kFinalWeights, P::kHasFinalWeights),
    to(P::kConnected, kFinished, P::kFinished),
    to(P::kConnected, kFailure, P::kFailed),
    to(P::kConnected, kExit, P::kEnded),
    to(P::kConnected, kLoss, P::kLost),
    ignored(P::kConnected, Events(kHello) | kEpochBegins),
    impossible(P::kConnected, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kReady, kEpochBegins, P::kConnected),  // all ask again for the first epoch
    to(P::kReady, kTrainingBegins, P::kTraining),
    to(P::kReady, kStep, P::kTraining),
    to(P::kReady, kLastStep, P::kLeavingWithoutStep),
    to(P::kReady, kFinalWeights, P::kHasFinalWeights),
    to(P::kReady, kFinished, P::kFinished),
    to(P::kReady, kFailure, P::kFailed),
    to(P::kReady, kExit, P::kEnded),
    to(P::kReady, kLoss, P::kLost),
    ignored(P::kReady, Events(kHello) | kReady),
    impossible(P::kReady, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kTraining, kLastStep, P::kLeaving),
    to(P::kTraining, kFinalWeights, P::kHasFinalWeights),
    to(P::kTraining, kFinished, P::kFinished),
    to(P::kTraining, kFailure, P::kFailed),
    to(P::kTraining, kExit, P::kEnded),
    to(P::kTraining, kLoss, P::kLost),
    ignored(P::kTraining, Events(kHello) | kReady | kEpochBegins | kTrainingBegins | kStep),
    impossible(P::kTraining, Events(kAdmitted) | kRestartPlanned | kRestart),

    // In a new membership epoch all come to their last step once more.
    to(P::kLeaving, kEpochBegins, P::kTraining),
    to(P::kLeaving, kFinalWeights, P::kHasFinalWeights),
    to(P::kLeaving, kFinished, P::kFinished),
    to(P::kLeaving, kFailure, P::kFailed),
    to(P::kLeaving, kExit, P::kEnded),
    to(P::kLeaving, kLoss, P::kLost),
    ignored(P::kLeaving, Events(kHello) | kReady | kTrainingBegins | kStep | kLastStep),
    impossible(P::kLeaving, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kLeavingWithoutStep, kEpochBegins, P::kConnected),
    to(P::kLeavingWithoutStep, kStep, P::kLeaving),  // its report of steps has come late
    to(P::kLeavingWithoutStep, kFinalWeights, P::kHasFinalWeights),
    to(P::kLeavingWithoutStep, kFinished, P::kFinished),
    to(P::kLeavingWithoutStep, kFailure, P::kFailed),
    to(P::kLeavingWithoutStep, kExit, P::kEnded),
    to(P::kLeavingWithoutStep, kLoss, P::kLost),
    ignored(P::kLeavingWithoutStep, Events(kHello) | kReady | kTrainingBegins | kLastStep),
    impossible(P::kLeavingWithoutStep, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kHasFinalWeights, kFinished, P::kFinished),
    to(P::kHasFinalWeights, kFailure, P::kFailed),
    to(P::kHasFinalWeights, kExit, P::kEnded),
    to(P::kHasFinalWeights, kLoss, P::kLost),
    ignored(P::kHasFinalWeights, Events(kHello) | kOfThoseWhoTakePart),
    impossible(P::kHasFinalWeights, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kFinished, kFailure, P::kFailed),
    to(P::kFinished, kExit, P::kEnded),
    to(P::kFinished, kLoss, P::kLostExiting),
    ignored(P::kFinished, Events(kHello) | kOfThoseWhoTakePart | kFinished),
    impossible(P::kFinished, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kFailed, kFinished, P::kFinished),
    to(P::kFailed, kExit, P::kEnded),
    to(P::kFailed, kLoss, P::kLostExiting),
    ignored(P::kFailed, Events(kHello) | kOfThoseWhoTakePart | kFailure),
    impossible(P::kFailed, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kEnded, kLoss, P::kGone),
    // Its messages may arrive after it has ended, and its carrier's end may have told the same.
    ignored(P::kEnded, Events(kHello) | kOfThoseWhoTakePart | kFinished | kFailure | kExit),
    impossible(P::kEnded, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kLost, kAdmitted, P::kConnected),  // it has asked to join before the kill reached it
    to(P::kLost, kFinished, P::kLostExiting),
    to(P::kLost, kFailure, P::kLostExiting),
    to(P::kLost, kExit, P::kGone),
    ignored(P::kLost, Events(kHello) | kOfThoseWhoTakePart | kLoss),
    impossible(P::kLost, Events(kRestartPlanned) | kRestart),

    to(P::kLostExiting, kExit, P::kGone),
    ignored(P::kLostExiting, Events(kHello) | kOfThoseWhoTakePart | kFinished | kFailure | kLoss),
    impossible(P::kLostExiting, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kGone, kRestartPlanned, P::kAwaitingRestart),
    ignored(P::kGone, Events(kHello) | kOfThoseWhoTakePart | kFinished | kFailure | kExit | kLoss),
    impossible(P::kGone, Events(kAdmitted) | kRestart),

    to(P::kAwaitingRestart, kRestart, P::kRestarting),
    to(P::kAwaitingRestart, kLoss, P::kGone),  // it is not needed any more
    ignored(P::kAwaitingRestart, Events(kHello) | kOfThoseWhoTakePart | kFinished | kFailure | kExit),
    impossible(P::kAwaitingRestart, Events(kAdmitted) | kRestartPlanned),

    to(P::kRestarting, kHello, P::kRejoining),
    to(P::kRestarting, kFinished, P::kLostExiting),
    to(P::kRestarting, kFailure, P::kLostExiting),
    to(P::kRestarting, kExit, P::kGone),
    to(P::kRestarting, kLoss, P::kLost),
    ignored(P::kRestarting, kOfThoseWhoTakePart),
    impossible(P::kRestarting, Events(kAdmitted) | kRestartPlanned | kRestart),

    to(P::kRejoining, kAdmitted, P::kConnected),
    to(P::kRejoining, kFinished, P::kLostExiting),
    to(P::kRejoining, kFailure, P::kLostExiting),
    to(P::kRejoining, kExit, P::kGone),
    to(P::kRejoining, kLoss, P::kLost),
    ignored(P::kRejoining, Events(kHello) | kOfThoseWhoTakePart),
    impossible(P::kRejoining, Events(kRestartPlanned) | kRestart),
})};
static_assert(kTable.is_complete());

}  // namespace process_transitions

inline constexpr const auto& kProcessTransitions = process_transitions::kTable;

// Returns whether the process takes part, or is about to for the first time.
constexpr bool is_there(ProcessPhase phase) { return phase <= ProcessPhase::kHasFinalWeights; }
// Returns whether it holds the state of the training.
constexpr bool has_trained(ProcessPhase phase) {
  return phase == ProcessPhase::kTraining || phase == ProcessPhase::kLeaving || phase == ProcessPhase::kHasFinalWeights;
}
constexpr bool is_lost(ProcessPhase phase) { return phase >= ProcessPhase::kLost; }
// Returns whether it was launched again, and has not taken part since.
constexpr bool is_coming_back(ProcessPhase phase) {
  return phase == ProcessPhase::kRestarting || phase == ProcessPhase::kRejoining;
}
constexpr bool has_ended(ProcessPhase phase) {
  return phase == ProcessPhase::kEnded || phase == ProcessPhase::kGone || phase == ProcessPhase::kAwaitingRestart;
}

}  // namespace syncopate::experiments
