// Ranks as threads: a whole group in one test, over any transport.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/transport/transport.h"

namespace syncopate::testing_support {

// "inproc", "shm", "ipc", "tcp", "sockets", and "shaped": shared memory behind fast emulated links.
std::vector<std::string> all_wires();

// One endpoint a rank, connected; over "ipc" and "tcp" by so many connections, over "tcp" and "sockets" encrypted if
// that is wanted.
std::vector<std::unique_ptr<Transport>> connect_group(const std::string& wire, int size, int connections = 1,
                                                      bool encrypted = false);

// Runs body(rank) for 0 .. size-1, each on its own thread, and returns when all have returned.
void run_ranks(int size, const std::function<void(int rank)>& body);

// The deadline of whatever a test waits for: long, since it only ends tests that have failed.
TimePoint soon();

}  // namespace syncopate::testing_support
