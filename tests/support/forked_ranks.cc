#include "tests/support/forked_ranks.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/futex.h"
#include "common/large_blocks.h"

namespace syncopate::testing_support {
namespace {

constexpr int kMaxRanks = 64;
constexpr std::size_t kMaxResults = 4096;

struct Board {
  struct Place {
    char value[256];
    std::size_t count;
    double results[kMaxResults];
  };
  std::atomic<std::uint32_t> published{0};
  Place places[kMaxRanks];
};

// One group, once.
class BoardRendezvous final : public Rendezvous {
 public:
  explicit BoardRendezvous(Board& board) : board_(board) {}

  Result<std::vector<std::string>> exchange(const std::string&, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    std::strncpy(board_.places[rank].value, value.c_str(), sizeof(Board::Place::value) - 1);
    board_.published.fetch_add(1);
    futex_wake(board_.published);
    while (board_.published.load() < static_cast<std::uint32_t>(size)) {
      if (SteadyClock().now() >= deadline) return Status(Code::kDeadlineExceeded, "not all ranks are there");
      futex_wait(board_.published, board_.published.load(), std::chrono::milliseconds(10));
    }
    std::vector<std::string> values;
    for (int i = 0; i < size; ++i) values.emplace_back(board_.places[i].value);
    return values;
  }

 private:
  Board& board_;
};

}  // namespace

std::vector<std::vector<double>> run_forked_ranks(int size,
                                                  const std::function<std::vector<double>(int, Rendezvous&)>& body) {
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Board& board = *::new (memory) Board;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      keep_large_blocks();  // as in the processes of a run
      BoardRendezvous rendezvous(board);
      const std::vector<double> results = body(rank, rendezvous);
      board.places[rank].count = std::min(results.size(), kMaxResults);
      std::copy_n(results.begin(), board.places[rank].count, board.places[rank].results);
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
    const Board::Place& place = board.places[rank];
    results.emplace_back(place.results, place.results + place.count);
  }
  munmap(memory, sizeof(Board));
  return results;
}

}  // namespace syncopate::testing_support
