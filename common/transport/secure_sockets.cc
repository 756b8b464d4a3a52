#include "common/transport/secure_sockets.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

constexpr const char* kZapDomain = "syncopate";
constexpr const char* kZapAddress = "inproc://zeromq.zap.01";
constexpr const char* kFailuresAddress = "inproc://failed-handshakes";

std::string bytes_of(const std::string& z85) {
  std::string bytes(z85.size() / 5 * 4, '\0');
  zmq_z85_decode(reinterpret_cast<std::uint8_t*>(bytes.data()), z85.c_str());
  return bytes;
}

}  // namespace

void secure_listener(zmq::socket_t& socket, const RunKeys& keys) {
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, keys.listener.secret_key);
  socket.set(zmq::sockopt::zap_domain, kZapDomain);
}

void secure_connector(zmq::socket_t& socket, const RunKeys& keys) {
  socket.set(zmq::sockopt::curve_serverkey, keys.listener.public_key);
  socket.set(zmq::sockopt::curve_publickey, keys.connector.public_key);
  socket.set(zmq::sockopt::curve_secretkey, keys.connector.secret_key);
}

void admit_own_user(zmq::socket_t& socket) {
  const uid_t user = geteuid();
  if (zmq_setsockopt(socket.handle(), ZMQ_IPC_FILTER_UID, &user, sizeof(user)) != 0) throw zmq::error_t();
}

Doorkeeper::Doorkeeper(zmq::context_t& context, const RunKeys& keys, zmq::socket_t& listener)
    : requests_(context, zmq::socket_type::rep),
      failures_(context, zmq::socket_type::pair),
      admitted_(bytes_of(keys.connector.public_key)),
      stop_(FileDescriptor(eventfd(0, EFD_CLOEXEC))) {
  requests_.set(zmq::sockopt::linger, 0);
  requests_.bind(kZapAddress);
  secure_listener(listener, keys);
  constexpr int kFailed =
      ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;
  if (zmq_socket_monitor(listener.handle(), kFailuresAddress, kFailed) != 0) throw zmq::error_t();
  failures_.set(zmq::sockopt::linger, 0);
  failures_.connect(kFailuresAddress);
  thread_ = std::jthread([this] { serve(); });
}

Doorkeeper::~Doorkeeper() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
}

void Doorkeeper::serve() {
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
    spdlog::error("nobody is let in any more: {}", error.what());
  }
}

// An event is two frames: what happened, and where. The last one tells that the listener is gone.
void Doorkeeper::count_one() {
  zmq::message_t event, place;
  std::uint16_t kind = 0;
  if (!failures_.recv(event) || !event.more() || !failures_.recv(place) || event.size() < sizeof(kind)) return;
  std::memcpy(&kind, event.data(), sizeof(kind));
  if (kind != ZMQ_EVENT_MONITOR_STOPPED) turned_away_.fetch_add(1, std::memory_order_relaxed);
}

// Version, id, domain, address, identity, mechanism, then what the mechanism knows of the peer: with CURVE, its key.
void Doorkeeper::answer_one() {
  std::vector<std::string> frames;
  zmq::message_t frame;
  do {
    if (!requests_.recv(frame)) return;
    frames.push_back(frame.to_string());
  } while (frame.more());
  frames.resize(std::max<std::size_t>(frames.size(), 7));
  const bool admitted = frames[5] == "CURVE" && frames[6] == admitted_;
  if (!admitted && !std::exchange(warned_, true)) spdlog::warn("a stranger at {} was not let in", frames[3]);
  const std::array<std::string, 6> answer{
      frames[0], frames[1], admitted ? "200" : "400", admitted ? "OK" : "not of this run", "", ""};
  for (std::size_t i = 0; i < answer.size(); ++i) {
    requests_.send(zmq::buffer(answer[i]), i + 1 < answer.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
  }
}

}  // namespace syncopate
