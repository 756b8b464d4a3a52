// Runs that learn a text, as a person has them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/support/run_program.h"
#include "worker/data/grammar.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;

using Flags = std::vector<std::string>;

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Steps of a second.
const Flags kGrammar = {"--model=gpt:2-2-32", "--dataset=grammar",     "--context=32",      "--train-samples=20000",
                        "--test-samples=500", "--steps=600",           "--optimizer=adamw", "--learning-rate=0.005",
                        "--device=cpu",       "--global-batch-size=32"};
constexpr int kContext = 32;

// A bigram model, which knows the last character alone, stays 0.3 nats above the entropy and more
// (Grammar.IsNotKnownFromTheLastCharacterAlone).
constexpr double kDistance = 0.15;

TEST(Text, GptComesNearTheEntropyOfAGrammarInEveryMode) {
  const double entropy = worker::entropy_of_brackets(kContext);
  for (const Flags& mode : {Flags{"--mode=local"}, {"--mode=allreduce"}, {"--mode=ps", "--consistency=sync"}}) {
    SCOPED_TRACE(mode.front());
    Program program(with(kGrammar, mode));
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const nlohmann::json summary = program.summary();
    EXPECT_DOUBLE_EQ(summary["best_reachable_loss"], entropy);
    EXPECT_LT(summary["final_test_loss"], entropy + kDistance);
    EXPECT_GT(summary["final_test_loss"], entropy - 0.02) << "500 samples are off by less";
    EXPECT_THAT(end.out, HasSubstr(fmt::format(" bits a character\n  best reachable loss {:.4f}\n", entropy)));
  }
}

TEST(Text, IsReadFromFilesByteByByte) {
  const testing_support::TemporaryFolder data;
  std::filesystem::create_directory(data.path() / "text");
  std::ofstream file(data.path() / "text" / "alphabet.txt");
  for (int i = 0; i < 400; ++i) file << "abcdefghijklmnopqrstuvwxyz";
  file.close();
  Program program({"--mode=allreduce", "--model=gpt:1-1-16", "--dataset=text", "--context=16", "--batch-size=4",
                   "--epochs=6", "--learning-rate=0.01", "--device=cpu", "--data-dir=" + data.path().string()});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_GT(program.summary()["final_test_accuracy"], 0.9);
  EXPECT_FALSE(program.summary().contains("best_reachable_loss"));
  EXPECT_THAT(text_of(program.output() / "config.toml"), HasSubstr("context = 16"));
}

TEST(Text, ARunThatCannotBeIsRefusedBeforeAnythingIsStarted) {
  const testing_support::TemporaryFolder empty;
  const std::string nowhere = "--data-dir=" + empty.path().string();
  const std::pair<Flags, const char*> cases[] = {
      {{"--model=mlp", "--dataset=grammar"}, "--model=mlp: is no model of texts"},
      {{"--model=gpt:2-4-64", "--train-samples=200"}, "--model=gpt:2-4-64: learns texts"},
      {{"--model=gpt:2-4-65", "--dataset=grammar"}, "the width 65 must be a multiple of the 4 heads"},
      {{"--model=gpt", "--dataset=text", nowhere}, "text: found no *.txt in"},
      {{"--model=gpt", "--dataset=grammar", "--context=0"}, "--context=0: context must be 1 to 4096"},
      {{"--model=mlp", "--context=32"}, "--context"},
      {{"--model=gpt", "--dataset=text", "--train-samples=32"}, "--train-samples"},
  };
  for (const auto& [flags, message] : cases) {
    Program program(with(flags, {"--mode=allreduce"}));
    const ProgramEnd end = program.wait();
    EXPECT_NE(end.exit_code, 0);
    EXPECT_THAT(end.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(program.output())) << message;
  }
}

}  // namespace
}  // namespace syncopate::experiments
