#include "experiments/cluster/script/script_link.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace syncopate::experiments {
namespace {

// The longest line is longer than 2^16 tensors need. A process that sends no line end must not fill this one's memory.
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

void take_files(msghdr& message, std::vector<SharedMemory>& memory) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int file = -1;
      std::memcpy(&file, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      memory.emplace_back(FileDescriptor(file));
    }
  }
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

Result<std::span<std::byte>> SharedMemory::first(std::size_t size) {
  if (size <= bytes_.size()) return bytes_.first(size);
  struct stat status {};
  if (fstat(file_.get(), &status) != 0 || static_cast<std::size_t>(status.st_size) < size) {
    return Status::data_loss(fmt::format("a process of the script has {} bytes of memory, and speaks of {}",
                                         static_cast<std::size_t>(status.st_size), size));
  }
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
  bytes_ = {};
  const auto all = static_cast<std::size_t>(status.st_size);
  void* const address = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (address == MAP_FAILED) {
    return Status::resource_exhausted(fmt::format("memory of {} bytes of the script: {}", all, std::strerror(errno)));
  }
  bytes_ = {static_cast<std::byte*>(address), all};
  return bytes_.first(size);
}

Status ScriptLink::read() {
  std::array<char, 1 << 16> buffer;
  std::array<char, CMSG_SPACE(8 * sizeof(int))> control;
  while (!at_end_) {
    iovec part{.iov_base = buffer.data(), .iov_len = buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (count <= 0) at_end_ = true;
    if (count > 0) unread_.append(buffer.data(), static_cast<std::size_t>(count));
    if (count > 0) take_files(message, memory_);
  }
  for (std::size_t end; (end = unread_.find('\n')) != std::string::npos; unread_.erase(0, end + 1)) {
    nlohmann::json line =
        nlohmann::json::parse(unread_.begin(), unread_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object()) return Status::data_loss("a process of the script says what is no JSON object");
    lines_.push_back(std::move(line));
  }
  if (unread_.size() > kLongestLine) return Status::data_loss("a process of the script says a line without an end");
  return {};
}

std::optional<nlohmann::json> ScriptLink::take() {
  if (lines_.empty()) return std::nullopt;
  nlohmann::json line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void ScriptLink::send(const nlohmann::json& line) {
  const std::string text = line.dump() + "\n";
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t count = ::send(socket_.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // its end is seen by read()
    left.remove_prefix(static_cast<std::size_t>(count));
  }
}

Result<ScriptDoor> ScriptDoor::open() {
  const auto failed = [](const char* what) {
    return Status::resource_exhausted(fmt::format("{} a local socket: {}", what, std::strerror(errno)));
  };
  ScriptDoor door;
  door.socket_ = FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door.socket_.open()) return failed("opening");
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  auto* const any = reinterpret_cast<sockaddr*>(&name);
  socklen_t length = sizeof(sa_family_t);  // the kernel chooses the rest
  if (bind(door.socket_.get(), any, length) != 0) return failed("binding");
  length = sizeof(name);
  if (getsockname(door.socket_.get(), any, &length) != 0) return failed("naming");
  for (std::size_t i = 0; i + sizeof(sa_family_t) < length; ++i) {
    door.address_ += fmt::format("{:02x}", static_cast<unsigned char>(name.sun_path[i]));
  }
  constexpr int kWaiting = 128;
  if (listen(door.socket_.get(), kWaiting) != 0) return failed("listening at");
  return door;
}

std::optional<ScriptLink> ScriptDoor::accept() {
  while (true) {
    FileDescriptor socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.open()) return std::nullopt;
    ucred peer{};
    socklen_t size = sizeof(peer);
    const bool is_known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (is_known && peer.uid == geteuid()) return ScriptLink(std::move(socket));
  }
}

std::string text_in(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_in(const nlohmann::json& line, const char* name, double other) {
  const auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : other;
}

int whole_number_in(const nlohmann::json& line, const char* name, int least, int most, int other) {
  return static_cast<int>(std::clamp<double>(number_in(line, name, other), least, most));
}

Status unknown_words(int rank, const nlohmann::json& line) {
  return Status::data_loss(
      fmt::format("rank {} of the script says what is not known: {}", rank, line.dump().substr(0, 200)));
}

}  // namespace syncopate::experiments
