#include "common/os/whole_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace syncopate {
namespace {

using testing::HasSubstr;

class WholeFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "whole-file-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(WholeFile, HoldsWhatWasWrittenAndReplacesWhatWasThere) {
  ASSERT_TRUE(write_whole_file(path("a"), "first, and longer").ok());
  ASSERT_TRUE(write_whole_file(path("a"), "second").ok());
  EXPECT_EQ(content(path("a")), "second");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WholeFile, MayBeEmpty) {
  ASSERT_TRUE(write_whole_file(path("a"), "").ok());
  EXPECT_TRUE(std::filesystem::is_regular_file(path("a")));
}

TEST_F(WholeFile, IsForWhomTheUmaskSays) {
  for (const mode_t closed : {0077u, 0027u, 0022u, 0002u}) {
    const mode_t before = ::umask(closed);
    const Status written = write_whole_file(path("a"), "x");
    ::umask(before);
    ASSERT_TRUE(written.ok());
    EXPECT_EQ(static_cast<mode_t>(std::filesystem::status(path("a")).permissions()), 0666u & ~closed);
  }
}

TEST_F(WholeFile, NamesThePathAndTheReasonWhenThereIsNoSuchFolder) {
  const Status status = write_whole_file(path("none/a"), "x");
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr(path("none/a")));
  EXPECT_THAT(status.message(), HasSubstr("No such file or directory"));
}

TEST_F(WholeFile, LeavesNothingBehindWhenTheNameIsTakenByAFolder) {
  ASSERT_TRUE(make_folder(path("a/b")).ok());
  EXPECT_EQ(write_whole_file(path("a"), "x").code(), Code::kResourceExhausted);
  EXPECT_EQ(files(), 1u);
}

// In a process of its own: a limit on the size of files stands in for a full disk.
[[noreturn]] void write_beyond_the_limit(const std::string& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Status status = write_whole_file(path, std::string(10'000, 'x'));
  std::fprintf(stderr, "%s", status.message().c_str());
  std::_Exit(status.code() == Code::kResourceExhausted ? 0 : 1);
}

TEST_F(WholeFile, KeepsTheOldContentWhenTheDiskTakesNoMore) {
  ASSERT_TRUE(write_whole_file(path("a"), "old").ok());
  EXPECT_EXIT(write_beyond_the_limit(path("a")), testing::ExitedWithCode(0), "File too large");
  EXPECT_EQ(content(path("a")), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WholeFile, IsOneOfTheContentsWhenWritersRace) {
  const std::string a(100'000, 'a'), b(100'000, 'b');
  {
    const auto write = [&](const std::string& text) {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_whole_file(path("f"), text).ok());
    };
    const std::jthread one(write, std::cref(a)), other(write, std::cref(b));
  }
  const std::string found = content(path("f"));
  EXPECT_TRUE(found == a || found == b);
  EXPECT_EQ(files(), 1u);
}

TEST_F(WholeFile, FolderIsMadeWithThoseAboveItAndMayBeThere) {
  EXPECT_TRUE(make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(make_folder(path("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(path("a/b/c")));
}

TEST_F(WholeFile, FolderCannotBeMadeBelowAFile) {
  ASSERT_TRUE(write_whole_file(path("a"), "x").ok());
  const Status status = make_folder(path("a/b"));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("Not a directory"));
}

}  // namespace
}  // namespace syncopate
