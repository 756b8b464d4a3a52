#include "tests/support/forked_ranks.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "common/os/process_memory.h"
#include "tests/support/board_rendezvous.h"

namespace syncopate::testing_support {
namespace {

constexpr int kMaxRanks = 64;
constexpr std::size_t kMaxResults = 4096;

struct Results {
  struct Place {
    std::size_t count;
    double values[kMaxResults];
  };
  Place places[kMaxRanks];
};

}  // namespace

std::vector<std::vector<double>> run_forked_ranks(int size,
                                                  const std::function<std::vector<double>(int, Rendezvous&)>& body) {
  void* memory = mmap(nullptr, sizeof(Results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Results& shared = *::new (memory) Results;
  BoardRendezvous rendezvous;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      keep_large_blocks();  // as in the processes of a run
      const std::vector<double> results = body(rank, rendezvous);
      shared.places[rank].count = std::min(results.size(), kMaxResults);
      std::copy_n(results.begin(), shared.places[rank].count, shared.places[rank].values);
      _exit(0);
    }
    children.push_back(child);
  }
  bool failed = false;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed |= status != 0;
  }
  if (failed) {
    std::fputs("a rank has failed\n", stderr);
    std::exit(1);
  }
  std::vector<std::vector<double>> results;
  for (int rank = 0; rank < size; ++rank) {
    const Results::Place& place = shared.places[rank];
    results.emplace_back(place.values, place.values + place.count);
  }
  munmap(memory, sizeof(Results));
  return results;
}

}  // namespace syncopate::testing_support
