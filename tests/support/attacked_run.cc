#include "tests/support/attacked_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <map>

#include "tests/support/private_network.h"

namespace syncopate::attacks {
namespace {

using testing_support::text_of;

// Returns the summary; null if the run has left none.
nlohmann::json summary_of(const Program& program) {
  nlohmann::json summary = program.summary();
  return summary.is_object() ? summary : nlohmann::json::object();
}

double accuracy_of(const Program& program) {
  const nlohmann::json accuracy = summary_of(program).value("final_test_accuracy", nlohmann::json());
  return accuracy.is_number() ? accuracy.get<double>() : -1;
}

void expect_completed(Program& program, const ProgramEnd& end, Knocked knocked) {
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(summary_of(program).value("outcome", ""), "completed") << end.err;
  EXPECT_THAT(program.processes(), testing::IsEmpty());
  // An escape sequence of an intruder's would do what it likes to the terminal.
  EXPECT_EQ((end.out + end.err).find('\x1b'), std::string::npos);
  if (knocked == Knocked::kMaybe) return;
  EXPECT_GT(rejected_of(program), 0) << "somebody knocked, and was not counted";
  EXPECT_THAT(end.out + end.err, testing::HasSubstr("  rejected ")) << "somebody knocked, and nobody was told";
}

}  // namespace

std::int64_t rejected_of(const Program& program) {
  return summary_of(program).value("rejected_connections", std::int64_t{-1});
}

Flags small_run(const Flags& mode, int steps) {
  Flags flags{"--model=mlp:784-32-10",
              "--batch-size=16",
              "--train-samples=800",
              "--test-samples=200",
              "--warmup-steps=0",
              fmt::format("--steps={}", steps),
              fmt::format("--timeout={}s", 12 * testing_support::kSlowness)};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

Flags slow_run(const Flags& mode, int steps) {
  Flags flags = small_run(mode, steps);
  flags.push_back("--straggler=all:+3");
  return flags;
}

const Outcome& undisturbed(const Flags& mode, int steps) {
  static std::map<Flags, Outcome> known;
  const auto [place, is_new] = known.try_emplace(small_run(mode, steps));
  if (is_new) {
    Program program(place->first);
    const ProgramEnd end = program.wait(kDeadline);
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_EQ(rejected_of(program), 0) << "a run counts its own members as intruders";
    place->second = {text_of(program.output() / "model.safetensors"), accuracy_of(program)};
    EXPECT_GT(place->second.model.size(), kParameters * sizeof(float));
  }
  return place->second;
}

void begin_attack(Intruder::User user) {
  testing_support::enter_private_network();
  fmt::print("The intruder is {}.\n", Intruder::name_of(user));
}

void expect_unharmed(Program& program, const ProgramEnd& end, const Outcome& outcome, Knocked knocked) {
  expect_completed(program, end, knocked);
  const std::string model = text_of(program.output() / "model.safetensors");
  EXPECT_TRUE(model == outcome.model) << "the model is not that of the undisturbed run (" << model.size() << " bytes)";
  EXPECT_EQ(accuracy_of(program), outcome.accuracy);
}

void expect_sound(Program& program, const ProgramEnd& end, double least_accuracy, Knocked knocked) {
  expect_completed(program, end, knocked);
  EXPECT_GE(accuracy_of(program), least_accuracy);
  EXPECT_LT(accuracy_of(program), 0.999);
  EXPECT_THAT(program.weights(), testing::SizeIs(testing::Ge(kParameters)));
}

}  // namespace syncopate::attacks
