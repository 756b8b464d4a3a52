#include "common/transport/shm_parcel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <filesystem>
#include <vector>

namespace syncopate {
namespace {

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

class ParcelsOverASocket : public testing::Test {
 protected:
  ParcelsOverASocket() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    here_ = FileDescriptor(ends[0]);
    there_ = FileDescriptor(ends[1]);
  }

  // Sends so many bytes of a parcel, or of nothing known behind its end, with so many descriptors.
  void send_anything(std::size_t bytes, std::size_t files) {
    std::vector<char> data(bytes);
    std::memcpy(data.data(), &parcel_, std::min(bytes, sizeof(parcel_)));
    iovec part{data.data(), data.size()};
    std::vector<int> numbers(files, file_.get());
    std::vector<char> control(CMSG_SPACE(files * sizeof(int)));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (files > 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(files * sizeof(int));
      std::memcpy(CMSG_DATA(header), numbers.data(), files * sizeof(int));
    }
    ASSERT_EQ(sendmsg(there_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }

  FileDescriptor here_, there_;
  const FileDescriptor file_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
  const ShmParcel parcel_{.kind = ShmParcel::Kind::kArena, .sender = 3, .number = 4};
};

TEST_F(ParcelsOverASocket, ComeWithTheirFile) {
  ASSERT_TRUE(send_parcel(there_.get(), parcel_, file_.get()));
  const std::optional<ReceivedParcel> received = receive_parcel(here_.get(), MSG_DONTWAIT);
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->file.open());
  EXPECT_EQ(received->parcel.sender, 3u);
  EXPECT_EQ(received->parcel.number, 4u);
}

TEST_F(ParcelsOverASocket, LeaveNoFileOpenWhereTheyAreTurnedAway) {
  const std::ptrdiff_t before = open_files();
  for (const std::size_t files : {0u, 2u, 3u, 100u, 253u}) {
    send_anything(sizeof(parcel_), files);
    EXPECT_FALSE(receive_parcel(here_.get(), MSG_DONTWAIT)) << files << " files";
  }
  for (const std::size_t bytes : {std::size_t{1}, sizeof(parcel_) - 1, sizeof(parcel_) + 1, std::size_t{5000}}) {
    send_anything(bytes, 1);
    EXPECT_FALSE(receive_parcel(here_.get(), MSG_DONTWAIT)) << bytes << " bytes";
  }
  EXPECT_EQ(open_files(), before);
}

}  // namespace
}  // namespace syncopate
