#include "common/transport/secure_sockets.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/os/socket_address.h"
#include "common/text/log.h"
#include "common/transport/local_socket.h"

namespace syncopate {
namespace {

constexpr const char* kZapDomain = "syncopate";
constexpr const char* kZapAddress = "inproc://zeromq.zap.01";
constexpr const char* kFailuresAddress = "inproc://failed-handshakes";
// Who has not proved within this time who it is, is cut off.
constexpr int kHandshakeMilliseconds = 10'000;

std::string bytes_of(const std::string& z85) {
  std::string bytes(z85.size() / 5 * 4, '\0');
  zmq_z85_decode(reinterpret_cast<std::uint8_t*>(bytes.data()), z85.c_str());
  return bytes;
}

// What is known of a connection that was rejected with this event.
const char* reason_of(std::uint16_t event) {
  switch (event) {
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      return "it has a key that no process of this run has: an intruder's, or another run's";
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      return "it said what no process of this run says: an intruder's, another program's, or changed on the way";
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      return "it ended, or was silent, before it had proved to be of this run: an intruder's, or of a process that was "
             "killed as it began";
    default:
      return "it could not be accepted";
  }
}

}  // namespace

void secure_listener(zmq::socket_t& socket, const RunKeys::Pair& own) {
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, own.secret_key);
  socket.set(zmq::sockopt::zap_domain, kZapDomain);
  socket.set(zmq::sockopt::handshake_ivl, kHandshakeMilliseconds);
}

void secure_connector(zmq::socket_t& socket, const std::string& listener_key, const RunKeys::Pair& own) {
  socket.set(zmq::sockopt::curve_serverkey, listener_key);
  socket.set(zmq::sockopt::curve_publickey, own.public_key);
  socket.set(zmq::sockopt::curve_secretkey, own.secret_key);
}

void bind_over_tcp(zmq::socket_t& socket, const std::string& address) {
  socket.set(zmq::sockopt::ipv6, address.find(':') != std::string::npos);
  socket.bind("tcp://" + with_port(address, "*"));
}

void connect_to(zmq::socket_t& socket, const std::string& endpoint) {
  socket.set(zmq::sockopt::ipv6, endpoint.starts_with("tcp://["));
  socket.connect(endpoint);
}

void admit_own_user(zmq::socket_t& socket) {
  const uid_t user = geteuid();
  if (zmq_setsockopt(socket.handle(), ZMQ_IPC_FILTER_UID, &user, sizeof(user)) != 0) throw zmq::error_t();
}

std::string new_ipc_address() { return "ipc://@" + new_local_name(); }

std::string user_of(zmq::message_t& message) {
  const char* const user = zmq_msg_gets(message.handle(), "User-Id");
  return user == nullptr ? "" : user;
}

Authenticator::Authenticator(zmq::context_t& context, const RunKeys::Pair& own, zmq::socket_t& listener)
    : requests_(context, zmq::socket_type::rep),
      failures_(context, zmq::socket_type::pair),
      stop_(FileDescriptor(eventfd(0, EFD_CLOEXEC))) {
  secure_listener(listener, own);
  requests_.set(zmq::sockopt::linger, 0);
  requests_.bind(kZapAddress);
  constexpr int kFailed = ZMQ_EVENT_ACCEPT_FAILED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                          ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  if (zmq_socket_monitor(listener.handle(), kFailuresAddress, kFailed) != 0) throw zmq::error_t();
  failures_.set(zmq::sockopt::linger, 0);
  failures_.connect(kFailuresAddress);
  thread_ = std::jthread([this] { serve(); });
}

Authenticator::~Authenticator() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
}

void Authenticator::admit(const std::string& public_key, const std::string& name) {
  const std::lock_guard lock(mutex_);
  names_[bytes_of(public_key)] = name;
}

void Authenticator::expel(const std::string& public_key) {
  const std::lock_guard lock(mutex_);
  names_.erase(bytes_of(public_key));
}

std::optional<std::string> Authenticator::name_of(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known = names_.find(key);
  return known == names_.end() ? std::nullopt : std::optional(known->second);
}

void Authenticator::serve() {
  try {
    while (true) {
      zmq::pollitem_t items[] = {{requests_.handle(), 0, ZMQ_POLLIN, 0},
                                 {failures_.handle(), 0, ZMQ_POLLIN, 0},
                                 {nullptr, stop_.get(), ZMQ_POLLIN, 0}};
      zmq::poll(items, 3, std::chrono::milliseconds(-1));
      if (items[2].revents != 0) break;
      if (items[0].revents != 0) answer_one();
      if (items[1].revents != 0) count_one();
    }
  } catch (const zmq::error_t& error) {
    // The socket stays, so that questions are still asked, and stay without an answer.
    log_error("nobody is let in any more: {}", error.what());
  }
}

// An event is two frames: what happened, and where. The last one tells that the listener is gone.
void Authenticator::count_one() {
  zmq::message_t event, place;
  std::uint16_t kind = 0;
  std::uint32_t value = 0;
  if (!failures_.recv(event) || !event.more() || !failures_.recv(place)) return;
  if (event.size() < sizeof(kind) + sizeof(value)) return;
  std::memcpy(&kind, event.data(), sizeof(kind));
  std::memcpy(&value, event.data<char>() + sizeof(kind), sizeof(value));
  if (kind == ZMQ_EVENT_MONITOR_STOPPED) return;
  if (kind == ZMQ_EVENT_ACCEPT_FAILED && (value == EMFILE || value == ENFILE)) {
    if (!std::exchange(told_of_shortage_, true)) {
      log_warning("a connection could not be taken, since no file descriptor is left: raise that (ulimit -n)");
    }
    return;
  }
  if (!std::exchange(warned_, true)) log_warning("rejected a connection: {}", reason_of(kind));
  rejected_.fetch_add(1, std::memory_order_relaxed);
}

// Version, id, domain, address, identity, mechanism, then with CURVE the peer's key.
void Authenticator::answer_one() {
  std::vector<std::string> frames;
  zmq::message_t frame;
  do {
    if (!requests_.recv(frame)) return;
    frames.push_back(frame.to_string());
  } while (frame.more());
  frames.resize(std::max<std::size_t>(frames.size(), 7));
  const std::optional<std::string> name = frames[5] == "CURVE" ? name_of(frames[6]) : std::nullopt;
  const std::array<std::string, 6> answer{
      frames[0], frames[1], name ? "200" : "400", name ? "OK" : "not of this run", name.value_or(""), ""};
  for (std::size_t i = 0; i < answer.size(); ++i) {
    requests_.send(zmq::buffer(answer[i]), i + 1 < answer.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
}

}  // namespace syncopate
