// ControlLine: moves messages between a process and the coordinator, on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_identity.h"

namespace syncopate::experiments {

class ControlLine {
 public:
  // The functions that the line's thread calls.
  struct Handlers {
    // Receives a message, and the weights that came with it, if any.
    std::function<void(control::FromCoordinator& message, const zmq::message_t& weights)> on_message;
    // Called after every message and every wait. Returns the latest time at which it must be called again.
    std::function<TimePoint(TimePoint now)> on_tick;
  };

  // Connects `self` to the coordinator of the run with these keys, at `address`. Throws zmq::error_t if that cannot be
  // an address.
  ControlLine(const std::string& address, const RunKeys& keys, const ProcessIdentity& self);
  // Sends queued messages first, within the linger time.
  ~ControlLine();
  ControlLine(const ControlLine&) = delete;
  ControlLine& operator=(const ControlLine&) = delete;

  // Starts the thread; called once.
  void open(Handlers handlers);
  // Queues a message. Any thread.
  void post(const control::ToCoordinator& message, std::optional<zmq::message_t> weights = std::nullopt);
  // Sets how long the destructor may take to send messages that are still queued; the default is a second. Any thread.
  void set_linger(Duration linger) { linger_ = linger; }
  // Makes the thread call on_tick now. Any thread.
  void wake();
  // Sends what is queued and waits, for a second at most, until it has left. The line's thread may call it, as its last
  // use of the line.
  void flush_and_close();

 private:
  struct Outgoing {
    zmq::message_t head;
    std::optional<zmq::message_t> weights;
  };

  void loop(const std::stop_token& stop);
  void wait_until(TimePoint time);
  void send_queued();
  void receive_all();

  SteadyClock clock_;
  zmq::context_t context_;
  zmq::socket_t socket_;  // used by the thread alone, once it runs
  FileDescriptor wake_;   // eventfd, signalled when something is queued
  Handlers handlers_;

  std::atomic<Duration> linger_{std::chrono::seconds(1)};

  std::mutex mutex_;
  std::deque<Outgoing> queue_;

  std::jthread thread_;
};

}  // namespace syncopate::experiments
