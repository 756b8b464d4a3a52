#include "common/transport/secure_sockets.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace syncopate {
namespace {

constexpr const char* kZapDomain = "syncopate";
constexpr const char* kZapAddress = "inproc://zeromq.zap.01";

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

Doorkeeper::Doorkeeper(zmq::context_t& context, const RunKeys& keys)
    : requests_(context, zmq::socket_type::rep),
      admitted_(bytes_of(keys.connector.public_key)),
      stop_(FileDescriptor(eventfd(0, EFD_CLOEXEC))) {
  requests_.set(zmq::sockopt::linger, 0);
  requests_.bind(kZapAddress);
  thread_ = std::jthread([this] { serve(); });
}

Doorkeeper::~Doorkeeper() {
  const std::uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof(one));
}

void Doorkeeper::serve() {
  try {
    while (true) {
      zmq::pollitem_t items[] = {{requests_.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, stop_.get(), ZMQ_POLLIN, 0}};
      zmq::poll(items, 2, std::chrono::milliseconds(-1));
      if (items[1].revents != 0) break;
      answer_one();
    }
  } catch (const zmq::error_t& error) {
    // The socket stays, so that questions are still asked, and stay without an answer.
    spdlog::error("nobody is let in any more: {}", error.what());
  }
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
