// What the tests of faults share: small runs that are given faults, what every end of one must be like, and what a run
// may leave behind: nothing.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/cluster/exit_code.h"
#include "tests/support/run_program.h"

namespace syncopate::faults {

using Flags = std::vector<std::string>;
using testing_support::Program;
using testing_support::ProgramEnd;

// The timeout of a run that is to end for its faults: a silence of half of it is noticed. The processes must have
// started by then, too, on a machine that does much else.
inline constexpr int kTimeoutSeconds = 6 * testing_support::kSlowness;
// The timeout of a run that is to survive its faults.
inline constexpr int kLongTimeoutSeconds = 20 * testing_support::kSlowness;
// From the last fault to the end of the program, its processes included: some wait passes its deadline, the run is told
// to stop, and what does not is killed.
inline constexpr Duration kDeadline = 2 * std::chrono::seconds(kTimeoutSeconds);

// A mode of the table of faults.
struct Mode {
  const char* name;
  Flags flags;
};
void PrintTo(const Mode& mode, std::ostream* out);
inline const auto kNameOfMode = [](const auto& info) { return std::string(info.param.name); };

// A small model for so many steps, of two milliseconds and more each: long enough for a fault to fall within it.
Flags small_run(const Flags& mode, int steps, int timeout_seconds = kTimeoutSeconds);

// What is left of a run, each as a line for a person: processes, sockets, shared memory that nobody uses any more,
// temporary files.
class Remains {
 public:
  // What remains: processes, with all that is theirs; or files, too.
  enum class Of { kProcesses, kAll };

  // Before the run is started.
  Remains();
  // Waits until nothing is left, for `limit` at most.
  std::vector<std::string> after(const Program& program, Duration limit, Of what = Of::kAll) const;

 private:
  std::vector<std::string> now(const Program& program, Of what) const;

  std::filesystem::file_time_type begun_;
};

// The end of a run that faults have struck: in time, in success or in one verdict, and nothing left. `wait` has
// returned `end`.
void expect_orderly_end(Program& program, const ProgramEnd& end, const Remains& remains);

}  // namespace syncopate::faults
