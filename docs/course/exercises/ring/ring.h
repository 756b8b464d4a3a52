// Exercise: the schedule of a ring allreduce (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
// of workstations", 2009). Yours to write is ring.cc.
#pragma once

#include <cstddef>

#include "allreduce/schedule/schedule.h"

namespace syncopate::course {

// Returns what `rank`, one of `size`, does so that every rank's buffer of `length` elements ends as the sum of all
// ranks' buffers.
//
// A schedule is a list of steps (allreduce/schedule/schedule.h). In each a rank may send a range of its buffer, without
// waiting, and then wait for a part that another rank sends, which it adds to its own (kReduce) or puts in the place of
// it (kCopy). Nothing else moves data: the schedule is the algorithm.
//
// A part that is sent may be read from the sender's buffer as late as it is received. So a range that a later step of
// the sender changes before that must be marked as `copied`; ask yourself whether a ring ever needs that.
allreduce::Schedule ring_schedule(int rank, int size, std::size_t length);

}  // namespace syncopate::course
