// ScriptMeetings: operations of all ranks of a simulated script that are no step's exchange: the mean of a figure, rank
// 0's weights to all, a barrier. Each rank calls the same ones in the same order, so a rank's n-th is every rank's
// n-th. They take no virtual time beyond the wait for the last rank. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

class ScriptMeetings {
 public:
  enum class Kind { kSum, kBroadcast, kGather, kBarrier };
  struct Part {
    Kind kind = Kind::kBarrier;
    int root = 0;                       // of a broadcast
    double scale = 1;                   // of a sum
    std::vector<std::byte> bytes = {};  // what the rank gives: floats, bytes, a text
  };
  struct Outcome {
    std::vector<std::byte> bytes = {};    // the sum, in the order of ranks; the root's bytes
    std::vector<std::string> texts = {};  // of a gather, by rank
  };

  explicit ScriptMeetings(int ranks) : ranks_(ranks), taken_(static_cast<std::size_t>(ranks)) {}

  // Rank `rank` comes to its next one. Fails with invalid argument if another has come to it with something else.
  Status come(int rank, Part part);
  // What it has come to last has come to, once all ranks have; once.
  std::optional<Outcome> take(int rank);
  // The ranks that have not come to the one that this rank waits for.
  std::vector<int> absent(int rank) const;

 private:
  struct Meeting {
    std::vector<std::optional<Part>> parts;  // by rank
    std::size_t come = 0;
    std::size_t left = 0;  // ranks that have taken the outcome
    std::optional<Outcome> outcome;
  };
  Meeting& of(int rank) { return meetings_[taken_[static_cast<std::size_t>(rank)] - gone_]; }
  const Meeting& of(int rank) const { return meetings_[taken_[static_cast<std::size_t>(rank)] - gone_]; }

  const int ranks_;
  std::deque<Meeting> meetings_;
  std::size_t gone_ = 0;            // meetings that all ranks have taken
  std::vector<std::size_t> taken_;  // by rank: meetings that it has taken
};

}  // namespace syncopate::experiments
