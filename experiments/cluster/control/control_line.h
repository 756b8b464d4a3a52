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
  // What the line's thread calls.
  struct Handlers {
    // A message, and the weights that came with it, if any.
    std::function<void(control::FromCoordinator& message, const zmq::message_t& weights)> on_message;
    // After every message and every wait. Returns when it wants to be called again, at the latest.
    std::function<TimePoint(TimePoint now)> on_tick;
  };

  // Connects `self` to the coordinator of the run with these keys, at `address`. Throws zmq::error_t where that cannot
  // be an address.
  ControlLine(const std::string& address, const RunKeys& keys, const ProcessIdentity& self);
  // What is queued is sent first, which may take as long as it may linger.
  ~ControlLine();
  ControlLine(const ControlLine&) = delete;
  ControlLine& operator=(const ControlLine&) = delete;

  // Starts the thread; once.
  void open(Handlers handlers);
  // Queues a message. Any thread.
  void post(const control::ToCoordinator& message, std::optional<zmq::message_t> weights = std::nullopt);
  // For so long what was posted may take to leave at the end; a second, if nothing is said. Any thread.
  void set_linger(Duration linger) { linger_ = linger; }
  // Has on_tick called now. Any thread.
  void wake();
  // Sends what is queued and waits, for a second at most, until it has left. For the line's thread, as the last that
  // is done with the line.
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
  zmq::socket_t socket_;  // of the thread, once it runs
  FileDescriptor wake_;   // eventfd: something is queued
  Handlers handlers_;

  std::atomic<Duration> linger_{std::chrono::seconds(1)};

  std::mutex mutex_;
  std::deque<Outgoing> queue_;

  std::jthread thread_;
};

}  // namespace syncopate::experiments
