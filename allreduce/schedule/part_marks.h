// Part marks: which steps of a schedule meet a part of the buffer for the first time, and which make it whole. So the
// buffer can be filled and emptied part by part while other parts are on their way. Pure.
#pragma once

#include <vector>

#include "allreduce/schedule/schedule.h"

namespace syncopate::allreduce {

struct PartMarks {
  bool send_is_first = false;     // no earlier step touches what this step sends
  bool receive_is_first = false;  // the same of what it receives
  bool receive_is_last = false;   // no later step changes what it receives: it is the whole sum
};

// Returns the marks of each step. The schedule must be an all_reduce in which all parts are cut alike, as in a ring:
// two parts are the same range, or have no element in common.
std::vector<PartMarks> marks_of(const Schedule& schedule);

}  // namespace syncopate::allreduce
