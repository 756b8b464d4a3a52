// Keys put on ZeroMQ sockets: CURVE encrypts and authenticates, or PLAIN authenticates alone, on one host; an
// Authenticator decides who is let in.
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

// Before bind(): whoever connects must know the public half of `own`. Who is let in, an Authenticator decides; without
// one ZeroMQ lets in everybody who gets that far.
void secure_listener(zmq::socket_t& socket, const RunKeys::Pair& own);
// Before connect(), to whoever has the secret half of `listener_key`, and to nobody else.
void secure_connector(zmq::socket_t& socket, const std::string& listener_key, const RunKeys::Pair& own);

// Before connect(), on one host: shows this name and password (PLAIN) to whoever listens there, whatever it is. So it
// connects once, and not to who may listen there later. The password is for this listener alone.
void show_password(zmq::socket_t& socket, const std::string& name, const std::string& password);

// Before bind(), of a socket that listens at an ipc address: processes of other users of this host are not let in.
void admit_own_user(zmq::socket_t& socket);

// A new address of a unix socket in the abstract namespace, "ipc://@syncopate-4f...": random, so that nobody can have
// taken it before, and with no file, so that nothing is left behind.
std::string new_ipc_address();

// Lets in to the secured listeners of one context those whose keys it knows, and nobody else (ZAP,
// rfc.zeromq.org/spec/27). What comes over a connection bears the name of who it is let in as: user_of(). A thread of
// its own.
class Authenticator {
 public:
  // Secures `listener` with `own`, which is to be bound afterwards. One a context. The context outlives the
  // authenticator, and the authenticator the listener.
  Authenticator(zmq::context_t& context, const RunKeys::Pair& own, zmq::socket_t& listener);
  // The same for a listener that is shown passwords.
  Authenticator(zmq::context_t& context, zmq::socket_t& listener);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // From now on whoever has the secret half of this key is let in, as `name`. Any thread.
  void admit(const std::string& public_key, const std::string& name);
  // From now on who shows this password is let in as `name`. Any thread.
  void admit_by_password(const std::string& name, const std::string& password);
  // From now on nobody is let in with this key. Connections that there are stay. Any thread.
  void expel(const std::string& public_key);

  // Connections that came to nothing: of another user, without CURVE or PLAIN, with a key or password that is not
  // known, or silent for too long. Any thread.
  std::int64_t turned_away() const { return turned_away_.load(std::memory_order_relaxed); }

 private:
  void serve();
  void answer_one();
  void count_one();
  void attend(zmq::socket_t& listener);
  std::optional<std::string> name_of(const std::string& key);
  bool has_password(const std::string& name, const std::string& password);

  zmq::socket_t requests_;  // of the thread, once it runs, as is the next
  zmq::socket_t failures_;  // of handshakes with the listener
  std::mutex mutex_;
  std::map<std::string, std::string> names_;      // by the bytes of a public key; with mutex_
  std::map<std::string, std::string> passwords_;  // by name; with mutex_
  FileDescriptor stop_;                           // eventfd
  bool warned_ = false;                           // of the thread: strangers come again and again
  bool told_of_shortage_ = false;                 // of the thread
  std::atomic<std::int64_t> turned_away_{0};
  std::jthread thread_;
};

// As whom an Authenticator has let in the connection that this came over; empty without one.
std::string user_of(zmq::message_t& message);

}  // namespace syncopate
