// Stragglers: which workers are made slow, and by how much. Pure: what is drawn follows from the run's seed, the worker
// and the step.
//
// As a person writes it, entries between commas; those that concern one worker add up:
//
//   WHO:FACTORx       its compute takes FACTOR times as long        3:4x
//   WHO:+MS           each step takes MS milliseconds longer         0:+20
//   WHO:exp:MS        and by a time drawn for each step, exponentially distributed with mean MS    all:exp:5
//   WHO:pP:...        any of these, in each step with probability P  1:p0.1:+50
//
// WHO is a rank, or "all", for each of whom is drawn anew.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::worker {

// By how much one step of one worker is slowed.
struct Slowdown {
  double stretch = 0;  // of the compute: a factor of 4 adds 3 times its length
  Duration extra{};

  // How much longer the step takes whose compute has taken `compute`, `longest` at most.
  Duration delay(Duration compute, Duration longest) const;
};

class Stragglers {
 public:
  // An empty text: none. Says what is wrong and what would be right.
  static Result<Stragglers> parse(std::string_view text);
  // As parse reads it.
  std::string to_string() const;

  bool empty() const { return entries_.empty(); }
  bool slows(int worker) const;

  // Whether all that are named are among `workers`, and delays fit well into `longest`, to which Slowdown::delay cuts:
  // fixed ones of a worker together, and drawn ones in all but one step of 20000.
  Status check(int workers, Duration longest) const;

  Slowdown at(std::uint64_t seed, int worker, std::int64_t step) const;

 private:
  enum class Kind { kFactor, kFixed, kExponential };
  struct Entry {
    std::optional<int> worker;  // none: all
    double probability = 1;
    Kind kind = Kind::kFactor;
    double amount = 0;  // a factor, or milliseconds

    bool concerns(int rank) const { return !worker || *worker == rank; }
  };

  static std::optional<Entry> parse_entry(std::string_view text);
  static std::string text_of(const Entry& entry);

  std::vector<Entry> entries_;
};

}  // namespace syncopate::worker
