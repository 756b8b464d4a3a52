// A disk that is busy, and files that are not what was written. One that is full:
// tests/experiments/program/resume_test.cc.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "common/random.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/support/faulty_run.h"

namespace syncopate::faults {
namespace {

namespace fs = std::filesystem;
using experiments::CheckpointStore;
using testing::HasSubstr;
using testing::IsEmpty;

const Mode kModes[] = {{"Local", {"--mode=local"}},
                       {"Ring", {"--mode=allreduce", "--workers=2", "--collective=ring"}},
                       {"PsSync", {"--mode=ps", "--workers=2", "--servers=2", "--consistency=sync"}},
                       {"PsAsync", {"--mode=ps", "--workers=2", "--servers=2", "--consistency=async"}}};

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Steps of worker 0 on record.
std::int64_t steps_of(const Program& program) {
  const auto is_of_worker_0 = [](const std::string& line) { return line.starts_with("0,0,"); };
  return std::ranges::count_if(testing_support::lines_of(program.steps_csv()), is_of_worker_0);
}

class SlowDisk : public testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(Of, SlowDisk, testing::ValuesIn(kModes), kNameOfMode);

TEST_P(SlowDisk, DelaysCheckpointsAndNotTraining) {
  if (testing_support::kSanitized) GTEST_SKIP() << "a sanitizer must be the first library that is loaded";
  const testing_support::TemporaryFolder folder;
  const fs::path busy = folder.path() / "busy";
  const Remains remains;
  Program program(with(small_run(GetParam().flags, 2000), {"--checkpoint-every=50"}),
                  {"/usr/bin/env", "LD_PRELOAD=" SYNCOPATE_SLOW_DISK, "BUSY_DISK=" + busy.string()});
  ASSERT_TRUE(program.wait_until_training(1));
  std::ofstream(busy).put('\n');
  const std::int64_t before = steps_of(program);
  EXPECT_TRUE(program.wait_until("training has gone on", [&] { return steps_of(program) >= before + 800; }));
  fs::remove(busy);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  // Sixteen were due meanwhile, or some fewer, since steps come on record in batches; of these one was written at most.
  const std::int64_t completed = program.summary()["checkpoints"]["completed"];
  EXPECT_GE(completed, 1);
  EXPECT_LE(completed, 2000 / 50 - 9);
  EXPECT_THAT(remains.after(program, kDeadline), IsEmpty());
}

// Cuts the file, lengthens it, or changes one byte of it.
void tear(const fs::path& file, Random& random) {
  const std::uintmax_t size = fs::file_size(file);
  const std::uint64_t at = random.below(size);
  switch (random.below(3)) {
    case 0:
      return fs::resize_file(file, at);
    case 1:
      return fs::resize_file(file, size + 1 + at);
    default:
      break;
  }
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(at));
  const int byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(at));
  stream.put(static_cast<char>(byte ^ (1 << random.below(8))));
}

// One of the files below, of more than no bytes.
fs::path file_below(const fs::path& folder, Random& random) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.file_size() > 0) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files[random.below(files.size())];
}

class TornCheckpoint : public testing::TestWithParam<Mode> {};

INSTANTIATE_TEST_SUITE_P(Of, TornCheckpoint, testing::Values(kModes[1], kModes[2]), kNameOfMode);

TEST_P(TornCheckpoint, IsPassedOverForTheOneBeforeAndSaidToBe) {
  const auto of = [](int steps, const Flags& more = {}) {
    return with(with(small_run(GetParam().flags, steps), {"--checkpoint-every=20", "--keep=3"}), more);
  };
  // Slow enough for a busy disk to have written one checkpoint before the next is due.
  Flags slow = of(100);
  const auto straggler = std::ranges::find(slow, "--straggler=all:+2");
  ASSERT_NE(straggler, slow.end());
  *straggler = "--straggler=all:+25";
  Program whole(slow);
  ASSERT_EQ(whole.wait().exit_code, 0) << whole.errors();
  ASSERT_THAT(CheckpointStore(whole.output() / "checkpoints").steps(), testing::ElementsAre(100, 80, 60));
  Program unbroken(of(120));
  ASSERT_EQ(unbroken.wait().exit_code, 0) << unbroken.errors();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const testing_support::TemporaryFolder copy;
    fs::copy(whole.output() / "checkpoints", copy.path(), fs::copy_options::recursive);
    Random random(seed);
    const fs::path torn = file_below(copy.path() / "step-000100", random);
    tear(torn, random);
    Program resumed(of(120, {"--resume=" + copy.path().string()}));
    const ProgramEnd end = resumed.wait();
    EXPECT_EQ(end.exit_code, 0) << torn << "\n" << end.err;
    EXPECT_THAT(end.err, HasSubstr("step-000100 is passed over: ")) << torn;
    EXPECT_EQ(resumed.summary()["resumed_from"]["step"], 80) << torn;
    EXPECT_EQ(resumed.weights(), unbroken.weights()) << torn;
  }
}

}  // namespace
}  // namespace syncopate::faults
