#include "common/os/resource_limits.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/os/whole_file.h"
#include "common/thread_failure.h"
#include "tests/support/run_program.h"

namespace syncopate {
namespace {

// Takes all descriptors that this process may have.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    few.rlim_cur = std::min<rlim_t>(few.rlim_cur, 256);
    setrlimit(RLIMIT_NOFILE, &few);
    for (int taken = 0; taken >= 0;) {
      taken = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
      if (taken >= 0) taken_.emplace_back(taken);
    }
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
  std::vector<FileDescriptor> taken_;
};

TEST(ResourceLimits, SeesThatNoDescriptorIsLeft) {
  EXPECT_TRUE(has_free_descriptor());
  {
    const NoDescriptors none;
    EXPECT_FALSE(has_free_descriptor());
  }
  EXPECT_TRUE(has_free_descriptor());
}

TEST(ResourceLimits, NamesTheLimitAndHowToRaiseIt) {
  EXPECT_THAT(limit_behind(EMFILE), testing::MatchesRegex("; ulimit -n is [0-9]+ descriptors: raise it"));
  EXPECT_EQ(limit_behind(ENOENT), "");
}

TEST(ResourceLimits, AllowsThreadsThatThereMayBe) { EXPECT_TRUE(check_threads(4).ok()); }

// Results are written whatever holds this process's descriptors.
TEST(ResourceLimits, KeepNoResultFromBeingWrittenWhereNoDescriptorIsLeft) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() / "model";
  Status written;
  {
    const NoDescriptors none;
    written = write_whole_file(path, "weights");
    EXPECT_FALSE(has_free_descriptor());  // none was given back for it
  }
  EXPECT_TRUE(written.ok()) << written.message();
  EXPECT_EQ(testing_support::text_of(path), "weights");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(ThreadFailure, CarriesWhatIsThrownToWhoAsks) {
  ThreadFailure failure;
  EXPECT_TRUE(failure.carry([] {}));
  EXPECT_FALSE(failure.any());
  failure.rethrow();
  EXPECT_FALSE(failure.carry([] { throw std::bad_alloc(); }));
  EXPECT_FALSE(failure.carry([] { throw std::logic_error("later"); }));
  EXPECT_TRUE(failure.any());
  for (int times = 0; times < 2; ++times) EXPECT_THROW(failure.rethrow(), std::bad_alloc);
}

}  // namespace
}  // namespace syncopate
