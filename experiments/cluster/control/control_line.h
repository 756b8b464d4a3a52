// ControlLine: moves messages between a process's ControlChannel and the coordinator, on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <zmq.hpp>

#include "common/clock.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_channel.h"
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

  // Connects `self` to the coordinator of the run with these keys, at `address`, to send what is queued in `channel`,
  // which outlives this. Throws zmq::error_t if that cannot be an address.
  ControlLine(const std::string& address, const RunKeys& keys, const ProcessIdentity& self, ControlChannel& channel);
  // Sends queued messages first, within the linger time.
  ~ControlLine();
  ControlLine(const ControlLine&) = delete;
  ControlLine& operator=(const ControlLine&) = delete;

  // Starts the thread; called once.
  void open(Handlers handlers);
  // Sets how long the destructor may take to send messages that are still queued; the default is a second. Any thread.
  void set_linger(Duration linger) { linger_ = linger; }
  // Sends what is queued and waits, for a second at most, until it has left. The line's thread may call it, as its last
  // use of the line.
  void flush_and_close();

 private:
  void loop(const std::stop_token& stop);
  void wait_until(TimePoint time);
  void send_queued();
  void receive_all();

  SteadyClock clock_;
  ControlChannel& channel_;
  zmq::context_t context_;
  zmq::socket_t socket_;  // used by the thread alone, once it runs
  Handlers handlers_;

  std::atomic<Duration> linger_{std::chrono::seconds(1)};

  std::jthread thread_;
};

}  // namespace syncopate::experiments
