// Stragglers: which workers are slowed, and by how much. Pure: random delays depend only on the run's seed, the worker
// and the step.
//
// The text form has entries separated by commas; those for the same worker add up:
//
//   WHO:FACTORx       its compute takes FACTOR times as long        3:4x
//   WHO:+MS           each step takes MS milliseconds longer         0:+20
//   WHO:exp:MS        each step takes longer by a drawn time, exponentially distributed with mean MS    all:exp:5
//   WHO:pP:...        any of these, in each step with probability P  1:p0.1:+50
//
// WHO is a rank, or "all"; then each worker draws its own times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::worker {

// The slowdown of one step of one worker.
struct Slowdown {
  double stretch = 0;  // of the compute: a factor of 4 adds 3 times its length
  Duration extra{};

  // Returns the delay of a step whose compute took `compute`; at most `longest`.
  Duration delay(Duration compute, Duration longest) const;
};

class Stragglers {
 public:
  // Parses a text; an empty one means none. An error says what is wrong and what would be right.
  static Result<Stragglers> parse(std::string_view text);
  // In the form that parse reads.
  std::string to_string() const;

  bool empty() const { return entries_.empty(); }
  bool slows(int worker) const;
  // Whether any of them is drawn.
  bool draws() const;

  // Checks that all named workers are among `workers`, and that delays fit well into `longest`, to which
  // Slowdown::delay cuts them: a worker's fixed delays together, and drawn ones in all but one step of 20000.
  Status check(int workers, Duration longest) const;

  Slowdown at(std::uint64_t seed, int worker, std::int64_t step) const;

 private:
  enum class Kind { kFactor, kFixed, kExponential };
  struct Entry {
    std::optional<int> worker;  // empty: all
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
