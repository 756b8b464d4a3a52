// The limit of a wire: one buffer to another process and back, with nothing of ours around it. Benchmarks print it
// beside what Syncopate takes on the same wire.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace syncopate::testing_support {

struct BareRoundTrips {
  std::string wire;       // "tcp", "ipc" or "shm"
  int pairs = 1;          // pairs of processes that do the same at the same time
  std::size_t bytes = 0;  // of the buffer
  int steps = 1;          // the first tenth is warm-up
};

// Microseconds of each round trip of the first pair, without the warm-up. The caller must not have threads.
//
// Over tcp and ipc: ZeroMQ's best form, a PAIR socket at each end and so one connection in both directions. A message
// is the buffer alone; it leaves from where it lies (zmq_msg_init_data), and is sent back as it was received, so that
// neither process copies it.
//
// Over shm there is nothing to send: the limit is the memory. The one process applies sgd to weights in shared memory
// from a gradient in shared memory (2 reads, 1 write), the other copies them out to its own memory (1 read, 1 write),
// in chunks of 256 KiB, so that the copy of a chunk goes on beside the update of the next.
std::vector<double> bare_round_trips(const BareRoundTrips& trips);

}  // namespace syncopate::testing_support
