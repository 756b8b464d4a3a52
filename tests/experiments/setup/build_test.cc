// setup/build.sh in a checkout that another user has built, with a build of one file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class Built : public testing::Test {
 protected:
  Built() {
    fs::permissions(root(), fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                                fs::perms::others_read | fs::perms::others_exec);
    fs::create_directories(root() / "setup");
    fs::create_directories(root() / "build/release");
    fs::copy_file(fs::path(testing_support::source_directory()) / "setup/build.sh", root() / "setup/build.sh");
    std::ofstream(root() / "setup/packages.txt") << "# none\n";
    std::ofstream(root() / "source") << "first";
    std::ofstream(root() / "build/release/build.ninja")
        << "rule copy\n  command = cp $in $out\nbuild program: copy ../../source\n";
  }

  const fs::path& root() const { return folder_.path(); }

  // Builds as root or as somebody else; returns what that said, and the exit code behind it.
  std::string build(bool as_root) const {
    const std::string somebody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    const std::string command =
        fmt::format("{}bash -c 'set -euo pipefail; source {}/setup/build.sh; build release program; echo built' 2>&1",
                    as_root ? "" : somebody, root().string());
    FILE* output = popen(command.c_str(), "r");
    std::string said;
    char text[4096];
    for (std::size_t count = 0; (count = fread(text, 1, sizeof(text), output)) > 0;) said.append(text, count);
    const int status = pclose(output);
    return fmt::format("{}exit {}", said, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can try both as root and as another user";
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(Built, ByAnotherUserIsGoodEnough) {
  ASSERT_THAT(build(true), testing::EndsWith("built\nexit 0"));
  EXPECT_EQ(build(false), "built\nexit 0");
}

TEST_F(Built, ByAnotherUserFromOlderSourcesIsSaidToBe) {
  ASSERT_THAT(build(true), testing::EndsWith("built\nexit 0"));
  fs::last_write_time(root() / "source", fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_THAT(build(false), AllOf(HasSubstr("missing or older than the sources"), HasSubstr("is of root"),
                                  HasSubstr("git clone " + root().string()), testing::EndsWith("exit 2")));
}

TEST_F(Built, ByNobodyInACheckoutOfAnotherUserIsSaidToBe) {
  fs::remove_all(root() / "build");
  EXPECT_THAT(build(false), AllOf(HasSubstr("missing or older than the sources"), testing::EndsWith("exit 2")));
}

}  // namespace
}  // namespace syncopate
