// Security for ZeroMQ sockets: CURVE encrypts and authenticates both ends; an Authenticator decides who is admitted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "common/os/file_descriptor.h"
#include "common/transport/run_keys.h"

namespace syncopate {

// Call it before bind(). A connecting peer must know the public half of `own`. An Authenticator decides which of these
// are admitted; without one ZeroMQ admits all of them.
void secure_listener(zmq::socket_t& socket, const RunKeys::Pair& own);
// Call it before connect(). Connects only to the holder of the secret half of `listener_key`.
void secure_connector(zmq::socket_t& socket, const std::string& listener_key, const RunKeys::Pair& own);

// Listens at a free port of this address of the own host; a socket that is secured is so before.
void bind_over_tcp(zmq::socket_t& socket, const std::string& address);
// Connects to what last_endpoint says of a listener: "tcp://10.0.0.7:4711", "tcp://[fd00::7]:4711", "ipc://@name".
void connect_to(zmq::socket_t& socket, const std::string& endpoint);

// Call it before bind(), for a socket that listens at an ipc address: rejects processes of other users of this host.
void admit_own_user(zmq::socket_t& socket);

// Returns a new address of a unix socket in the abstract namespace, "ipc://@syncopate-4f...". It is random, so that
// nobody can have taken it before, and has no file, so that nothing is left behind.
std::string new_ipc_address();

// Admits to the secured listeners of one context only peers whose keys it knows (ZAP, rfc.zeromq.org/spec/27). Messages
// of a connection carry the name as which it was admitted: user_of(). It has a thread of its own.
class Authenticator {
 public:
  // Secures `listener` with `own`; bind the listener afterwards. One per context. The context must outlive the
  // authenticator, and the authenticator the listener.
  Authenticator(zmq::context_t& context, const RunKeys::Pair& own, zmq::socket_t& listener);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // From now on a peer with the secret half of this key is admitted as `name`. Any thread.
  void admit(const std::string& public_key, const std::string& name);
  // From now on this key is not admitted any more. Existing connections stay. Any thread.
  void expel(const std::string& public_key);

  // The number of rejected connections: of another user, without CURVE, with an unknown key, silent for too long, or
  // ended or changed before they had proved who they are. Any thread.
  std::int64_t rejected() const { return rejected_.load(std::memory_order_relaxed); }

 private:
  void serve();
  void answer_one();
  void count_one();
  std::optional<std::string> name_of(const std::string& key);

  zmq::socket_t requests_;  // used by the thread, once it runs, as is the next
  zmq::socket_t failures_;  // of handshakes with the listener
  std::mutex mutex_;
  std::map<std::string, std::string> names_;  // by the bytes of a public key; guarded by mutex_
  FileDescriptor stop_;                       // eventfd
  bool warned_ = false;                       // used by the thread: warns of the first rejected connection only
  bool told_of_shortage_ = false;             // used by the thread
  std::atomic<std::int64_t> rejected_{0};
  std::jthread thread_;
};

// Returns the name as which an Authenticator has admitted the connection of this message; empty without one.
std::string user_of(zmq::message_t& message);

}  // namespace syncopate
