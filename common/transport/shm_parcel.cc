#include "common/transport/shm_parcel.h"

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/text/log.h"

namespace syncopate {
namespace {

// As many as one message can carry (SCM_MAX_FD): all that come are taken, so that all can be closed.
constexpr std::size_t kMostFiles = 253;

std::vector<FileDescriptor> files_in(msghdr& message) {
  std::vector<FileDescriptor> files;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + i * sizeof(int), sizeof(file));
      files.emplace_back(file);
    }
  }
  return files;
}

// There is room for all that can come: what was cut off had no descriptor left.
void warn_of_shortage() {
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) log_warning("no file descriptor is left for shared memory: raise that (ulimit -n)");
}

}  // namespace

bool send_parcel(int link, const ShmParcel& parcel, int file) {
  iovec data{const_cast<ShmParcel*>(&parcel), sizeof(parcel)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof(file));
  return sendmsg(link, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(parcel));
}

std::optional<ReceivedParcel> receive_parcel(int link, int flags) {
  ReceivedParcel received;
  iovec data{&received.parcel, sizeof(received.parcel)};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
  msghdr message{};
  const auto receive = [&] {
    message = {};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    return recvmsg(link, &message, flags | MSG_CMSG_CLOEXEC);
  };
  ssize_t bytes = receive();
  // The kernel reports once, before it returns what arrived, that a peer died before it had read all that we sent.
  if (bytes < 0 && errno == ECONNRESET) bytes = receive();
  if (bytes < 0) return std::nullopt;
  std::vector<FileDescriptor> files = files_in(message);
  if ((message.msg_flags & MSG_CTRUNC) != 0) warn_of_shortage();
  const bool is_whole = bytes == static_cast<ssize_t>(sizeof(received.parcel)) &&
                        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && files.size() == 1;
  if (!is_whole) return std::nullopt;
  received.file = std::move(files.front());
  return received;
}

}  // namespace syncopate
