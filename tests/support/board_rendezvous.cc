#include "tests/support/board_rendezvous.h"

#include <sys/mman.h>

#include <atomic>
#include <cassert>
#include <cstring>
#include <new>

#include "common/os/futex.h"

namespace syncopate::testing_support {

struct BoardRendezvous::Board {
  std::atomic<std::uint32_t> published{0};  // values, of all exchanges
  // By exchange, in turns: nobody publishes for the next but one before all have read.
  char values[2][kMostRanks][1024] = {};
};

BoardRendezvous::BoardRendezvous()
    : board_(::new (mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {}

BoardRendezvous::~BoardRendezvous() { munmap(board_, sizeof(Board)); }

Result<std::vector<std::string>> BoardRendezvous::exchange(const std::string&, int rank, int size,
                                                           const std::string& value, TimePoint deadline) {
  const std::uint32_t number = exchanges_[rank]++;
  auto& board = board_->values[number % 2];
  assert(value.size() < sizeof(board[rank]));
  std::strncpy(board[rank], value.c_str(), sizeof(board[rank]) - 1);
  board_->published.fetch_add(1);
  futex_wake(board_->published);
  while (true) {
    const std::uint32_t published = board_->published.load();
    if (published >= (number + 1) * static_cast<std::uint32_t>(size)) break;
    if (SteadyClock().now() >= deadline) return Status::deadline_exceeded("not all ranks are there");
    futex_wait(board_->published, published, std::chrono::milliseconds(10));
  }
  std::vector<std::string> values;
  for (int i = 0; i < size; ++i) values.emplace_back(board[i]);
  return values;
}

}  // namespace syncopate::testing_support
