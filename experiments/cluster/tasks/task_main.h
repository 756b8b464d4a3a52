// The main function of a task that does not hold the coordinator, and what a program must know to tell whether it is
// one.
#pragma once

#include "common/clock.h"
#include "common/launch/task_place.h"
#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

// Returns whether somebody else has started this process together with others, and the first of them on this host
// speaks for all there. What sets TF_CONFIG gives each task a log of its own, so that each speaks for itself.
bool leaves_the_word_to_another();

// Waits for as long as the first one needs to say what is wrong with the options of all.
void leave_the_word_to_the_first();

// Waits for the coordinator, and runs what it says (task_server.h, with its durations); TF_CONFIG's evaluator has
// nothing to do.
ExitCode task_main(const TaskPlace& place, Duration patience, Duration grace);

}  // namespace syncopate::experiments
