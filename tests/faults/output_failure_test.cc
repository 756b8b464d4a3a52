// Results that cannot be written.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <fstream>

#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::TemporaryFolder;

TEST(OutputFailure, OfAFolderThatCannotBeMadeEndsTheProgramBeforeLaunch) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "no folder";
  Program program(training({"--mode=ps", "--output=" + (folder.path() / "file" / "run").string()}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput));
  EXPECT_THAT(end.err, testing::MatchesRegex("run_experiment: [^\n]*/file/run[^\n]*\n"));
  EXPECT_THAT(end.out, IsEmpty());
}

TEST(OutputFailure, OfAFileThatMayNotGrowEndsTheRun) {
  Program program(training({"--mode=local"}));
  ASSERT_TRUE(program.wait_until_training(1));
  const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
  ASSERT_EQ(prlimit(program.pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << end.err;
  EXPECT_THAT(end.err, testing::MatchesRegex("run_experiment: [^\n]*/run[^\n]* cannot be written: File too large\n"));
  EXPECT_THAT(program.processes(), IsEmpty());
}

// A small disk of the test's own, in a mount namespace of its own: it goes when the test goes.
bool mount_small_disk(const std::filesystem::path& folder) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "tmpfs", 0, "size=8m") == 0;
}

void fill(const std::filesystem::path& file) {
  std::ofstream stream(file);
  const std::string block(64 * 1024, ' ');
  while (stream << block << std::flush) {
  }
}

TEST(OutputFailure, OfADiskThatBecomesFullEndsTheRun) {
  const TemporaryFolder disk;
  if (!mount_small_disk(disk.path())) GTEST_SKIP() << "no small disk can be mounted here";
  Program program(training({"--mode=allreduce", "--output=" + (disk.path() / "run").string()}));
  ASSERT_TRUE(program.wait_until_training(2));
  fill(disk.path() / "filler");
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << end.err;
  EXPECT_THAT(end.err, HasSubstr(" cannot be written: No space left on device\n"));
  EXPECT_THAT(program.processes(), IsEmpty());
  EXPECT_THAT(program.summary()["outcome"].get<std::string>(), HasSubstr("No space left on device"))
      << "how it ended is on the disk, too";
  umount2(disk.path().c_str(), MNT_DETACH);
}

TEST(OutputFailure, OfADiskThatIsFullEndsTheProgramBeforeLaunch) {
  const TemporaryFolder disk;
  if (!mount_small_disk(disk.path())) GTEST_SKIP() << "no small disk can be mounted here";
  fill(disk.path() / "filler");
  Program program(training({"--mode=local", "--output=" + (disk.path() / "run").string()}));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kOutput)) << end.err;
  EXPECT_THAT(end.err, testing::MatchesRegex("run_experiment: [^\n]*No space left on device[^\n]*\n"));
  EXPECT_THAT(end.out, IsEmpty());
  umount2(disk.path().c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace syncopate::experiments
