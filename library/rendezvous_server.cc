#include "library/rendezvous_server.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "common/os/readiness.h"
#include "common/os/socket_user.h"
#include "common/os/tcp_socket.h"
#include "common/text/log.h"
#include "common/text/printable_text.h"
#include "library/socket_address.h"
#include "library/text_frame.h"
#include "library/value_proof.h"

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
    const std::optional<uid_t> taker = user_who_listens_at(own);
    return Status::invalid_argument(
        fmt::format("rank 0 cannot listen at {} ({}{}): it must be an address of this host, and a port that no other "
                    "program has",
                    address, listener.status().message(),
                    taker ? fmt::format(": a process of {} listens there", describe_user(*taker)) : ""));
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
    {
      const std::lock_guard lock(mutex_);
      for (const Connection& each : connections_) {
        items.push_back({each.socket.get(), static_cast<short>(each.answer.empty() ? POLLIN : POLLOUT), 0});
        due = std::min(due, each.due);
      }
    }
    ready_before(std::min(due, clock_.now() + kFrameTime), items);
    if (items[0].revents != 0) return;
    work(std::span(items).subspan(1), acceptor);
  }
}

// `items` have what has happened to the listener, and then to each connection.
void RendezvousServer::work(std::span<const pollfd> items, Acceptor& acceptor) {
  const std::lock_guard lock(mutex_);
  std::size_t item = 1;
  for (Connection& each : connections_) {
    if (items[item++].revents == 0 || each.is_over) continue;
    each.answer.empty() ? receive(each) : send_answer(each);
  }
  // Only now may one go: a meeting that has ended may have answered any.
  for (Connection& each : connections_) {
    if (clock_.now() >= each.due) each.is_over = true;
  }
  connections_.remove_if([](const Connection& each) { return each.is_over; });
  if (items[0].revents == 0) return;
  FileDescriptor caller = acceptor.accept(SOCK_NONBLOCK);
  if (!caller.open()) return;
  if (connections_.size() >= kMostConnections) {
    const auto idle = std::ranges::find_if(connections_, [](const Connection& each) { return each.rank < 0; });
    if (idle == connections_.end()) return;
    connections_.erase(idle);
  }
  Connection connection;
  connection.socket = std::move(caller);
  connection.due = clock_.now() + kFrameTime;
  connections_.push_back(std::move(connection));
}

void RendezvousServer::require_proof(const std::string& prefix, const RunKeys& keys) {
  const std::lock_guard lock(mutex_);
  keys_.emplace(prefix, keys);
  for (auto meeting = meetings_.begin(); meeting != meetings_.end();) {
    std::erase_if(meeting->second.members, [&](const auto& member) {
      const auto [rank, connection] = member;
      if (is_believed(meeting->first, rank, meeting->second.size, meeting->second.values[rank])) return false;
      reject(*connection, meeting->first);
      return true;
    });
    meeting = meeting->second.members.empty() ? meetings_.erase(meeting) : std::next(meeting);
  }
}

// Names an intruder to whom it refuses.
std::string RendezvousServer::another_user_at(const Connection& connection) {
  const std::optional<uid_t> user = user_at_other_end(connection.socket.get());
  return user && *user != geteuid() ? fmt::format(" (first came a process of {})", describe_user(*user)) : "";
}

bool RendezvousServer::is_believed(const std::string& group, int rank, int size, const std::string& value) const {
  return std::ranges::all_of(keys_, [&](const auto& each) {
    const auto& [prefix, keys] = each;
    return !group.starts_with(prefix) ||
           proven(keys, place_in(group.substr(prefix.size()), rank, size), value).has_value();
  });
}

void RendezvousServer::reject(Connection& connection, const std::string& group) {
  connection.rank = -1;
  if (!std::exchange(has_warned_, true)) {
    const std::optional<uid_t> user = user_at_other_end(connection.socket.get());
    log_warning("at {} somebody{} wanted a place in group '{}' and did not prove to be of this job: rejected", address_,
                user ? fmt::format(", a process of {},", describe_user(*user)) : "", printable(group));
  }
  answer(connection, {"refused", "its value does not prove to be of this job"});
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
  if (!is_believed(group, rank, size, texts[3])) return reject(connection, group);
  const auto found = meetings_.find(group);
  if (found != meetings_.end() && found->second.size != size) {
    return answer(connection,
                  {"refused", fmt::format("rank {} counts {} members, and others{} {}: all must be started with "
                                          "the same number",
                                          rank, size, another_user_at(*found->second.members.begin()->second),
                                          found->second.size)});
  }
  if (found != meetings_.end() && found->second.members.contains(rank)) {
    return answer(connection,
                  {"refused", fmt::format("rank {} has come twice{}: ranks of a job differ, and each job has a port of "
                                          "its own",
                                          rank, another_user_at(*found->second.members.at(rank)))});
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
