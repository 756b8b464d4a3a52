// ControlExchange: the control connections of a simulated cluster. Each message, either way, arrives after the same
// latency, whatever its size.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/threads.h"
#include "experiments/cluster/control/control_line.h"
#include "experiments/cluster/control/control_server.h"
#include "simulation/world.h"

namespace syncopate::experiments {

class SimulatedLine;

class ControlExchange final : public ControlServer {
 public:
  static constexpr Duration kLatency = std::chrono::microseconds(50);

  // `news` is notified whenever a message has come for the coordinator. All must outlive the exchange.
  ControlExchange(simulation::World& world, Threads& threads, Monitor& news, std::size_t processes)
      : world_(world), threads_(threads), news_(news), processes_(processes) {}

  // Whether receive() has nothing.
  bool empty() const { return inbox_.empty(); }
  std::optional<Received> receive() override;
  std::int64_t dropped() const override { return 0; }
  void send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights) override;
  void welcome(std::size_t process, control::Welcome welcome) override;

  // A process begins where another may have been: what that one has sent is not received any more.
  void begin(std::size_t process);
  // A process has ended: nothing more reaches it.
  void end(std::size_t process) { processes_[process].line = nullptr; }
  // Returns the line of a process that has begun. `end_process` ends the process that calls it.
  std::unique_ptr<ControlLine> make_line(std::size_t process, ControlChannel& channel,
                                         std::function<void(ExitCode)> end_process);

 private:
  friend SimulatedLine;
  struct Outgoing {
    control::FromCoordinator message;
    zmq::message_t weights;
  };
  struct Process {
    int incarnation = 0;
    SimulatedLine* line = nullptr;  // none: it has not made it, or has ended
    bool welcomed = false;
    std::deque<std::shared_ptr<Outgoing>> held;  // until it is welcomed
  };

  void transmit(std::size_t process, std::shared_ptr<Outgoing> outgoing);
  void take(std::size_t process, control::ToCoordinator message, std::optional<zmq::message_t> weights);

  simulation::World& world_;
  Threads& threads_;
  Monitor& news_;
  std::vector<Process> processes_;
  std::deque<Received> inbox_;
};

}  // namespace syncopate::experiments
