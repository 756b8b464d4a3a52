// A run's keys put on ZeroMQ sockets: CURVE encrypts and authenticates, a Doorkeeper decides who is let in.
#pragma once

#include <thread>
#include <zmq.hpp>

#include "common/file_descriptor.h"
#include "common/transport/run_keys.h"

namespace syncopate {

// Before bind(). The socket's context must have a Doorkeeper from then on: without one, ZeroMQ lets in whoever knows
// the listener's public key.
void secure_listener(zmq::socket_t& socket, const RunKeys& keys);
// Before connect().
void secure_connector(zmq::socket_t& socket, const RunKeys& keys);

// Lets in to the secured listeners of one context who has the run's connector key, and nobody else (ZAP,
// rfc.zeromq.org/spec/27). A thread of its own.
class Doorkeeper {
 public:
  // Before any listener of the context is bound. One a context. The context outlives the doorkeeper; sockets may.
  Doorkeeper(zmq::context_t& context, const RunKeys& keys);
  ~Doorkeeper();
  Doorkeeper(const Doorkeeper&) = delete;
  Doorkeeper& operator=(const Doorkeeper&) = delete;

 private:
  void serve();
  void answer_one();

  zmq::socket_t requests_;  // of the thread, once it runs
  const std::string admitted_;
  FileDescriptor stop_;  // eventfd
  bool warned_ = false;  // of the thread: strangers come again and again
  std::jthread thread_;
};

}  // namespace syncopate
