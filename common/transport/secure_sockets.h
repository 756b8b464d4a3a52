// A run's keys put on ZeroMQ sockets: CURVE encrypts and authenticates, a Doorkeeper decides who is let in.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <zmq.hpp>

#include "common/file_descriptor.h"
#include "common/transport/run_keys.h"

namespace syncopate {

// What a Doorkeeper does for its listener. Without one, ZeroMQ lets in whoever knows the listener's public key.
void secure_listener(zmq::socket_t& socket, const RunKeys& keys);
// Before connect().
void secure_connector(zmq::socket_t& socket, const RunKeys& keys);

// Before bind(), of a socket that listens at an ipc address: processes of other users of this host are not let in.
void admit_own_user(zmq::socket_t& socket);

// Lets in to the secured listeners of one context who has the run's connector key, and nobody else (ZAP,
// rfc.zeromq.org/spec/27). A thread of its own.
class Doorkeeper {
 public:
  // Secures `listener`, which is to be bound afterwards. One a context. The context outlives the doorkeeper, and
  // the doorkeeper the listener.
  Doorkeeper(zmq::context_t& context, const RunKeys& keys, zmq::socket_t& listener);
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

  // Connections whose handshake failed: who speaks ZMTP without CURVE, or has not the run's keys. Any thread.
  std::int64_t turned_away() const { return turned_away_.load(std::memory_order_relaxed); }

 private:
  void serve();
  void answer_one();
  void count_one();

  zmq::socket_t requests_;  // of the thread, once it runs, as is the next
  zmq::socket_t failures_;  // of handshakes with the listener
  const std::string admitted_;
  FileDescriptor stop_;  // eventfd
  bool warned_ = false;  // of the thread: strangers come again and again
  std::atomic<std::int64_t> turned_away_{0};
  std::jthread thread_;
};

}  // namespace syncopate
