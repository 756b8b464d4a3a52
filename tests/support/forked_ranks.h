// Ranks as processes: a group of forked children that find each other through memory that they share, for benchmarks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/rendezvous.h"

namespace syncopate::testing_support {

// Forks `size` children; each runs body(rank, rendezvous) and gives back a list of numbers. Returns the lists by rank
// when all have ended; ends this program with a message if one of them failed. The caller must not have threads.
std::vector<std::vector<double>> run_forked_ranks(
    int size, const std::function<std::vector<double>(int rank, Rendezvous& rendezvous)>& body);

}  // namespace syncopate::testing_support
