#include "library/rendezvous_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "common/os/tcp_socket.h"
#include "common/transport/acceptor.h"
#include "library/socket_address.h"
#include "library/text_frame.h"

namespace syncopate::library {
namespace {

// Where there would be more, the oldest that does not wait in a group is dropped.
constexpr std::size_t kMostConnections = 2 * kMostMembers;
// What a connection may take for its frame, and for taking its answer.
constexpr Duration kFrameTime = std::chrono::seconds(5);

bool read_number(const std::string& text, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(const std::string& address) {
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress own, resolve(address));
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.open()) return Status::resource_exhausted(fmt::format("opening an eventfd: {}", std::strerror(errno)));
  Result<FileDescriptor> listener = listen_over_tcp(own);
  if (!listener.ok()) {
    return Status::invalid_argument(
        fmt::format("rank 0 cannot listen at {} ({}): it must be an address of this host, and a port that no other "
                    "program has",
                    address, listener.status().message()));
  }
  std::string bound = SocketAddress::of_socket(listener->get()).to_string();
  return std::unique_ptr<RendezvousServer>(
      new RendezvousServer(std::move(*listener), std::move(wake), std::move(bound)));
}

RendezvousServer::RendezvousServer(FileDescriptor listener, FileDescriptor wake, std::string address)
    : listener_(std::move(listener)), wake_(std::move(wake)), address_(std::move(address)) {
  thread_ = std::thread([this] { loop(); });
}

RendezvousServer::~RendezvousServer() {
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void RendezvousServer::loop() {
  Acceptor acceptor(std::move(listener_), address_);
  while (true) {
    std::vector<pollfd> items{{wake_.get(), POLLIN, 0}, {acceptor.to_poll(), POLLIN, 0}};
    TimePoint due = acceptor.is_short() ? clock_.now() + kFrameTime / 100 : TimePoint::max();
    for (const Connection& each : connections_) {
      items.push_back({each.socket.get(), static_cast<short>(each.answer.empty() ? POLLIN : POLLOUT), 0});
      due = std::min(due, each.due);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(due - clock_.now(), kFrameTime));
    if (poll(items.data(), items.size(), std::max(0, static_cast<int>(left.count()))) < 0 && errno != EINTR) return;
    if (items[0].revents != 0) return;
    std::size_t item = 2;
    for (Connection& each : connections_) {
      if (items[item++].revents == 0) continue;
      each.answer.empty() ? receive(each) : send_answer(each);
    }
    // Only now may one go: a meeting that has ended may have answered any.
    for (Connection& each : connections_) {
      if (clock_.now() >= each.due) each.is_over = true;
    }
    connections_.remove_if([](const Connection& each) { return each.is_over; });
    if (items[1].revents == 0) continue;
    FileDescriptor caller = acceptor.accept(SOCK_NONBLOCK);
    if (!caller.open()) continue;
    if (connections_.size() >= kMostConnections) {
      const auto idle = std::ranges::find_if(connections_, [](const Connection& each) { return each.rank < 0; });
      if (idle == connections_.end()) continue;
      connections_.erase(idle);
    }
    Connection connection;
    connection.socket = std::move(caller);
    connection.due = clock_.now() + kFrameTime;
    connections_.push_back(std::move(connection));
  }
}

void RendezvousServer::receive(Connection& connection) {
  std::array<char, 4096> part{};
  const ssize_t count = recv(connection.socket.get(), part.data(), part.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (connection.rank >= 0) return give_up(connection);  // a member that waits has nothing more to say
  if (count <= 0) {
    connection.is_over = true;
    return;
  }
  connection.bytes.append(part.data(), static_cast<std::size_t>(count));
  const Result<std::optional<std::vector<std::string>>> texts = read_frame(connection.bytes, kLongestRequest);
  if (!texts.ok()) {
    connection.is_over = true;
  } else if (texts->has_value()) {
    admit(connection, **texts);
  }
}

void RendezvousServer::admit(Connection& connection, const std::vector<std::string>& texts) {
  int rank = 0, size = 0;
  if (texts.size() != 4 || !read_number(texts[1], rank) || !read_number(texts[2], size) || size < 1 ||
      size > kMostMembers || rank < 0 || rank >= size) {
    connection.is_over = true;
    return;
  }
  const std::string& group = texts[0];
  const auto found = meetings_.find(group);
  if (found != meetings_.end() && found->second.size != size) {
    return answer(connection,
                  {"refused", fmt::format("rank {} counts {} members, and others {}: all must be started with "
                                          "the same number",
                                          rank, size, found->second.size)});
  }
  if (found != meetings_.end() && found->second.members.contains(rank)) {
    return answer(
        connection,
        {"refused", fmt::format("rank {} has come twice: ranks of a job differ, and each job has a port of its "
                                "own",
                                rank)});
  }
  Meeting& meeting = meetings_[group];
  meeting.size = size;
  meeting.members[rank] = &connection;
  meeting.values[rank] = texts[3];
  connection.group = group;
  connection.rank = rank;
  connection.due = TimePoint::max();
  connection.bytes.clear();
  if (meeting.members.size() < static_cast<std::size_t>(size)) return;
  std::vector<std::string> values{"ok"};
  for (const auto& [member, value] : meeting.values) values.push_back(value);
  const std::map<int, Connection*> members = std::move(meeting.members);
  meetings_.erase(group);
  for (const auto& [member, each] : members) answer(*each, values);
}

void RendezvousServer::give_up(Connection& connection) {
  const auto found = meetings_.find(connection.group);
  Meeting& meeting = found->second;
  std::vector<int> missing;
  for (int rank = 0; rank < meeting.size; ++rank) {
    if (!meeting.members.contains(rank)) missing.push_back(rank);
  }
  meeting.members.erase(connection.rank);
  meeting.values.erase(connection.rank);
  if (meeting.members.empty()) meetings_.erase(found);
  answer(connection, {"missing", fmt::format("{}", fmt::join(missing, ", "))});
}

void RendezvousServer::answer(Connection& connection, const std::vector<std::string>& texts) {
  connection.answer = frame_of(texts);
  connection.due = clock_.now() + kFrameTime;
  send_answer(connection);
}

void RendezvousServer::send_answer(Connection& connection) {
  const ssize_t count =
      send(connection.socket.get(), connection.answer.data(), connection.answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0) connection.answer.erase(0, static_cast<std::size_t>(count));
  if (count <= 0 || connection.answer.empty()) connection.is_over = true;
}

}  // namespace syncopate::library
