#include "experiments/cluster/simulated/control_exchange.h"

#include <utility>

namespace syncopate::experiments {

using control::FromCoordinator;
using control::ToCoordinator;

// Its thread waits for messages of either side, and for the next tick.
class SimulatedLine final : public ControlLine {
 public:
  SimulatedLine(ControlExchange& exchange, std::size_t process, ControlChannel& channel,
                std::function<void(ExitCode)> end_process)
      : exchange_(exchange),
        process_(process),
        channel_(channel),
        end_process_(std::move(end_process)),
        monitor_(exchange.threads_.make_monitor()) {
    channel_.wake_by([this] { wake(); });
    exchange_.processes_[process_].line = this;
  }
  ~SimulatedLine() override {
    stops_ = true;
    wake();
    thread_.reset();
    exchange_.end(process_);
  }

  void open(Handlers handlers) override {
    handlers_ = std::move(handlers);
    thread_ = exchange_.threads_.start("control", [this] { loop(); });
  }
  void set_linger(Duration) override {}
  [[noreturn]] void end_process(ExitCode code) override {
    send_queued();
    end_process_(code);
    std::abort();
  }
  Place place() const override { return {.pid = 0, .host = "simulated"}; }
  Coordinator coordinator() const override { return Coordinator::kLives; }

  // A message has come.
  void put(FromCoordinator message, zmq::message_t weights) {
    inbox_.emplace_back(std::move(message), std::move(weights));
    wake();
  }

 private:
  void wake() {
    awake_ = true;
    monitor_->notify_all();
  }

  void loop() {
    const Clock& clock = exchange_.threads_.clock();
    while (!stops_) {
      awake_ = false;
      send_queued();
      while (!inbox_.empty()) {
        std::pair<FromCoordinator, zmq::message_t> next = std::move(inbox_.front());
        inbox_.pop_front();
        handlers_.on_message(next.first, next.second);
      }
      const TimePoint until = handlers_.on_tick(clock.now());
      const std::lock_guard lock(*monitor_);
      while (!awake_ && clock.now() < until) monitor_->wait_until(until);
    }
    send_queued();
  }

  void send_queued() {
    for (ControlChannel::Outgoing& next : channel_.take_outgoing()) {
      exchange_.take(process_, std::move(next.message), std::move(next.weights));
    }
  }

  ControlExchange& exchange_;
  const std::size_t process_;
  ControlChannel& channel_;
  const std::function<void(ExitCode)> end_process_;
  const std::unique_ptr<Monitor> monitor_;
  Handlers handlers_;
  std::deque<std::pair<FromCoordinator, zmq::message_t>> inbox_;
  bool awake_ = false;
  bool stops_ = false;
  std::unique_ptr<Threads::Handle> thread_;  // last: it uses all of the above
};

std::optional<ControlServer::Received> ControlExchange::receive() {
  if (inbox_.empty()) return std::nullopt;
  Received received = std::move(inbox_.front());
  inbox_.pop_front();
  return received;
}

void ControlExchange::send(std::size_t process, const FromCoordinator& message, zmq::message_t weights) {
  auto outgoing = std::make_shared<Outgoing>(Outgoing{message, std::move(weights)});
  if (processes_[process].welcomed) {
    transmit(process, std::move(outgoing));
  } else {
    processes_[process].held.push_back(std::move(outgoing));
  }
}

void ControlExchange::welcome(std::size_t process, control::Welcome welcome) {
  processes_[process].welcomed = true;
  FromCoordinator message;
  *message.mutable_welcome() = std::move(welcome);
  send(process, message, {});
  for (std::shared_ptr<Outgoing>& held : std::exchange(processes_[process].held, {}))
    transmit(process, std::move(held));
}

void ControlExchange::begin(std::size_t process) {
  processes_[process] = {.incarnation = processes_[process].incarnation + 1};
}

std::unique_ptr<ControlLine> ControlExchange::make_line(std::size_t process, ControlChannel& channel,
                                                        std::function<void(ExitCode)> end_process) {
  return std::make_unique<SimulatedLine>(*this, process, channel, std::move(end_process));
}

void ControlExchange::transmit(std::size_t process, std::shared_ptr<Outgoing> outgoing) {
  const int incarnation = processes_[process].incarnation;
  world_.at(world_.now() + kLatency, [this, process, incarnation, outgoing = std::move(outgoing)] {
    const Process& its = processes_[process];
    if (its.line == nullptr || its.incarnation != incarnation) return;
    its.line->put(std::move(outgoing->message), std::move(outgoing->weights));
  });
}

void ControlExchange::take(std::size_t process, ToCoordinator message, std::optional<zmq::message_t> weights) {
  auto received = std::make_shared<Received>(Received{.process = process, .message = std::move(message)});
  if (weights) received->weights = std::move(*weights);
  world_.at(world_.now() + kLatency, [this, received, incarnation = processes_[process].incarnation] {
    if (processes_[received->process].incarnation != incarnation) return;
    inbox_.push_back(std::move(*received));
    news_.notify_all();
  });
}

}  // namespace syncopate::experiments
