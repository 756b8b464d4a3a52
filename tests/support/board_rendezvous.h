// A rendezvous of processes that this one forks: a board in memory that they share.
#pragma once

#include "common/rendezvous.h"

namespace syncopate::testing_support {

// One group, once, of up to 64 members with values of less than 1 KiB. Made before the fork; works in all processes.
class BoardRendezvous final : public Rendezvous {
 public:
  BoardRendezvous();
  ~BoardRendezvous() override;
  BoardRendezvous(const BoardRendezvous&) = delete;
  BoardRendezvous& operator=(const BoardRendezvous&) = delete;

  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override;

 private:
  struct Board;
  Board* const board_;
};

}  // namespace syncopate::testing_support
