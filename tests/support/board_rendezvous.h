// A rendezvous of processes that this one forks: a board in memory that they share.
#pragma once

#include <array>
#include <cstdint>

#include "common/rendezvous.h"

namespace syncopate::testing_support {

// One group of up to 64 members with values of less than 1 KiB, which exchange them in turns. Made before the fork;
// works in all processes.
class BoardRendezvous final : public Rendezvous {
 public:
  BoardRendezvous();
  ~BoardRendezvous() override;
  BoardRendezvous(const BoardRendezvous&) = delete;
  BoardRendezvous& operator=(const BoardRendezvous&) = delete;

  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;

 private:
  static constexpr int kMostRanks = 64;

  struct Board;
  Board* const board_;
  std::array<std::uint32_t, kMostRanks> exchanges_{};  // of each rank of this process, so far
};

}  // namespace syncopate::testing_support
