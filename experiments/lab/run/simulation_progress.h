// SimulationProgress: what a command that simulates shows of it while a person waits.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "common/clock.h"
#include "experiments/lab/run/console.h"

namespace syncopate::experiments {

// Says on standard error which simulation is under way: on a terminal in one line that is written anew, elsewhere in a
// line every few seconds.
class SimulationProgress {
 public:
  ~SimulationProgress() {
    if (is_open_) write_out(stderr, "\r\033[K");
  }

  void begin(const std::string& what) {
    constexpr std::size_t kColumns = 79;
    const std::string line = fmt::format("simulation {}: {}", ++number_, what);
    if (isatty(STDERR_FILENO) != 0) {
      write_out(stderr, "\r\033[K" + line.substr(0, kColumns));
      is_open_ = true;
    } else if (number_ == 1 || clock_.now() - said_ >= std::chrono::seconds(5)) {
      write_out(stderr, line + "\n");
      said_ = clock_.now();
    }
  }

 private:
  const SteadyClock clock_;
  TimePoint said_;
  int number_ = 0;
  bool is_open_ = false;
};

}  // namespace syncopate::experiments
