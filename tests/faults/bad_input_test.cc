// Data and flags that cannot work: told in one line, before anything is launched or written.
#include <fstream>

#include "tests/faults/failing_run.h"
#include "worker/data/idx_format.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::TemporaryFolder;

void expect_refused(const Flags& flags, ExitCode code, const std::string& why) {
  SCOPED_TRACE(fmt::format("{}", fmt::join(flags, " ")));
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(code));
  EXPECT_THAT(end.out, IsEmpty());
  EXPECT_THAT(end.err, testing::MatchesRegex("run_experiment: [^\n]*\n"));
  EXPECT_THAT(end.err, HasSubstr(why));
  EXPECT_FALSE(std::filesystem::exists(program.output()));
}

TEST(BadFlags, AreRefusedInOneLineBeforeAnythingIsLaunched) {
  const auto refused = [](const Flags& flags, const std::string& why) { expect_refused(flags, ExitCode::kUsage, why); };
  refused({"--mode=ps", "--servers=0"}, "--servers=0: parameter servers must be 1 to 1024");
  refused({"--mode=allreduce", "--workers=1025"}, "--workers=1025: workers must be 1 to 1024");
  refused({"--mode=pss"}, "--mode=pss");
  refused({"--worker=2"}, "did you mean --workers?");
  refused({"--mode=allreduce", "--collective=mpi"}, "needs --launcher=mpirun");
  refused({"--mode=local", "--workers=2"}, "--workers=2");
  refused({"--mode=allreduce", "--servers=2"}, "--servers");
  refused({"--steps=5", "--epochs=1"}, "--epochs");
  refused({"--model=resnet"}, "resnet");
  refused({"--model=mlp:100-10", "--train-samples=4096", "--test-samples=512"}, "784");
  refused({"--batch-size=5000", "--train-samples=4096", "--test-samples=512"}, "--train-samples=4096");
  refused({"--dataset=minst"}, "minst");
  refused({"--lr-schedule=sometimes"}, "--lr-schedule=sometimes");
  refused({"--config=/nowhere/config.toml"}, "/nowhere/config.toml");
  refused({"compare", "--mode=ps"}, "--modes");
}

TEST(BadFlags, AnOutputThatHoldsResultsIsNotOverwritten) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "precious") << "old results";
  const ProgramEnd end = testing_support::run_program(training({"--mode=local", "--output=" + folder.path().string()}));
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
  EXPECT_THAT(end.err, HasSubstr("holds files already"));
  EXPECT_EQ(testing_support::text_of(folder.path() / "precious"), "old results");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

class BadData : public testing::Test {
 protected:
  static constexpr std::uint32_t kSamples = 100;

  void SetUp() override {
    for (const auto& [images, labels] : {std::pair(worker::kIdxTrainImages, worker::kIdxTrainLabels),
                                         std::pair(worker::kIdxTestImages, worker::kIdxTestLabels)}) {
      write(images, {worker::kIdxImagesMagic, kSamples, 28, 28}, kSamples * 28 * 28);
      write(labels, {worker::kIdxLabelsMagic, kSamples}, kSamples);
    }
  }

  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  void write(const std::string& name, const std::vector<std::uint32_t>& words, std::size_t values) {
    std::vector<std::uint8_t> bytes(4 * words.size() + values);
    for (std::size_t i = 0; i < words.size(); ++i) worker::write_idx_word(bytes, i, words[i]);
    std::ofstream(file(name), std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  Flags training_on_it() const {
    return {"--mode=allreduce", "--workers=2",   "--dataset=mnist", "--data-dir=" + folder_.path().string(),
            "--steps=11",       "--batch-size=8"};
  }

  TemporaryFolder folder_;
};

TEST_F(BadData, IsNoneWhereTheFilesAreWhole) { EXPECT_EQ(testing_support::run_program(training_on_it()).exit_code, 0); }

TEST_F(BadData, ThatIsTruncatedIsRefused) {
  std::filesystem::resize_file(file(worker::kIdxTrainImages), 16 + 50 * 28 * 28);
  expect_refused(training_on_it(), ExitCode::kData, "truncated: 39216 bytes, expected 78416");
}

TEST_F(BadData, ThatIsSomethingElseIsRefused) {
  write(worker::kIdxTestLabels, {0xCAFEBABE, kSamples}, kSamples);
  expect_refused(training_on_it(), ExitCode::kData, "magic 0xcafebabe");
}

TEST_F(BadData, ThatIsMissingIsRefused) {
  std::filesystem::remove(file(worker::kIdxTrainLabels));
  expect_refused(training_on_it(), ExitCode::kData, worker::kIdxTrainLabels);
}

TEST_F(BadData, ThatIsDamagedCompressionIsRefused) {
  std::filesystem::remove(file(worker::kIdxTestImages));
  std::ofstream(file(worker::kIdxTestImages + std::string(".gz"))) << "\x1f\x8b and no more";
  expect_refused(training_on_it(), ExitCode::kData, ".gz");
}

TEST_F(BadData, ThatWasGeneratedAndThenDamagedIsRefusedWithAWayOut) {
  const Flags flags{"--mode=local", "--train-samples=200", "--test-samples=50",
                    "--steps=11",   "--batch-size=8",      "--data-dir=" + folder_.path().string()};
  ASSERT_EQ(testing_support::run_program(flags).exit_code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.is_directory()) std::filesystem::resize_file(entry.path() / worker::kIdxTrainImages, 1000);
  }
  expect_refused(flags, ExitCode::kData, "remove the folder to have it made anew");
}

}  // namespace
}  // namespace syncopate::experiments
