#include "common/os/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace syncopate {
namespace {

using testing::HasSubstr;

class ARegularFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "regular-file-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/file"; }
  void write(const std::string& content) const { std::ofstream(path(), std::ios::binary) << content; }

  std::string folder_;
};

TEST_F(ARegularFile, IsReadWhole) {
  const std::string content(3 << 20, 'x');
  write(content);
  EXPECT_EQ(*read_regular_file(path(), content.size(), Links::kRefused), content);
  EXPECT_EQ(*read_input(path(), content.size()), content);
  write("");
  EXPECT_EQ(*read_regular_file(path(), 0), "");
}

TEST_F(ARegularFile, LargerThanItCanBeIsNotRead) {
  write("12345");
  EXPECT_EQ(read_regular_file(path(), 4).status().message(),
            path() + ": is larger than 4 bytes, the most that it can have");
  EXPECT_EQ(read_input(path(), 4).status().code(), Code::kDataLoss);
  std::filesystem::resize_file(path(), std::uintmax_t{1} << 40);  // and no disk
  EXPECT_EQ(read_regular_file(path(), 1 << 20).status().code(), Code::kDataLoss);
}

TEST_F(ARegularFile, ThatIsNoneIsRefusedWithoutWaiting) {
  EXPECT_THAT(read_regular_file(folder_, 9).status().message(), HasSubstr("is not a regular file, but a folder"));
  EXPECT_THAT(read_regular_file("/dev/zero", 9).status().message(), HasSubstr("is not a regular file, but a device"));
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(read_regular_file(path(), 9).status().message(), HasSubstr("is not a regular file, but a pipe"));
  std::filesystem::remove(path());
  const FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(path().size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, path().c_str());
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(read_regular_file(path(), 9).status().message(), HasSubstr("is not a regular file, but a socket"));
}

TEST_F(ARegularFile, BehindALinkIsReadUnlessLinksAreRefused) {
  write("there");
  const std::string link = path() + "-link";
  std::filesystem::create_symlink(path(), link);
  EXPECT_EQ(*read_regular_file(link, 9), "there");
  EXPECT_EQ(read_regular_file(link, 9, Links::kRefused).status().message(),
            link + ": is not a regular file, but a symbolic link");
}

TEST_F(ARegularFile, ThatIsNotThereIsNamedInAFormThatCanBeShown) {
  EXPECT_EQ(read_regular_file("/nowhere/\x1b[2J", 9).status().message(),
            "/nowhere/\\x1b[2J: cannot be read: No such file or directory");
}

TEST_F(ARegularFile, IsWhatAPersonNames) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(read_input(path(), 9).status().message(), HasSubstr("is not a regular file, but a pipe"));
  EXPECT_THAT(read_input(folder_, 9).status().message(), HasSubstr("is not a regular file, but a folder"));
  EXPECT_THAT(read_input("/dev/zero", 9).status().message(), HasSubstr("is not a regular file, but a device"));
}

TEST(AnInput, MayBeAPipeThatThisProcessWasStartedWith) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileDescriptor out(ends[0]);
  {
    const FileDescriptor in(ends[1]);
    ASSERT_EQ(write(in.get(), "epochs = 2", 10), 10);
  }
  EXPECT_EQ(*read_input("/dev/fd/" + std::to_string(out.get()), 99), "epochs = 2");
}

}  // namespace
}  // namespace syncopate
