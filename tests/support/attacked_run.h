// What the tests of attacks share: small runs, what an undisturbed one comes to, and what must be true of one that a
// intruder has attacked.
#pragma once

#include <string>
#include <vector>

#include "tests/support/intruder.h"
#include "tests/support/run_program.h"
#include "tests/support/visible_run.h"

namespace syncopate::attacks {

using Flags = std::vector<std::string>;
using testing_support::Intruder;
using testing_support::Program;
using testing_support::ProgramEnd;

inline constexpr std::size_t kParameters = 784 * 32 + 32 + 32 * 10 + 10;
inline constexpr Duration kDeadline = std::chrono::seconds(45) * testing_support::kSlowness;

inline constexpr int kSteps = 200;

// A run with a fixed seed and several snapshots: some steps of a small model.
Flags small_run(const Flags& mode, int steps = kSteps);
// The same slowed down without a change of its values, so that there is time for an attack.
Flags slow_run(const Flags& mode, int steps = kSteps);

// What the run comes to when nobody attacks it; asked for again, it is not run again.
struct Outcome {
  std::string model;  // the bytes of its file
  double accuracy = 0;
};
const Outcome& undisturbed(const Flags& mode, int steps = kSteps);

// Moves the test to a network of its own where that can be, and says whom the intruder is: first of all in a test.
void begin_attack(Intruder::User user = Intruder::User::kAnother);

// How many were counted; -1 where there is no summary.
std::int64_t rejected_of(const Program& program);

// Whether something that is no member's is to have been counted.
enum class Knocked { kYes, kMaybe };

// It has completed as if nobody had been there, and says that somebody was.
void expect_unharmed(Program& program, const ProgramEnd& end, const Outcome& outcome, Knocked knocked = Knocked::kYes);
// The same without a model that is known: what it has learnt is sound.
void expect_sound(Program& program, const ProgramEnd& end, double least_accuracy, Knocked knocked = Knocked::kYes);

}  // namespace syncopate::attacks
