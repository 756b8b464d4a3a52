#include "experiments/control/control_server.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "experiments/control/control_line.h"

namespace syncopate::experiments {
namespace {

constexpr int kLingerMilliseconds = 500;

}  // namespace

ControlServer::ControlServer(const JobPlan& plan, const ListenOptions& options)
    : context_(1), socket_(context_, zmq::socket_type::router) {
  socket_.set(zmq::sockopt::linger, kLingerMilliseconds);
  // A process that was started again has the name of the one before.
  socket_.set(zmq::sockopt::router_handover, true);
  if (options.keys) {
    doorkeeper_.emplace(context_, *options.keys);
    secure_listener(socket_, *options.keys);
  }
  socket_.bind("tcp://" + options.address + ":*");
  for (const ProcessSpec& process : plan.processes) {
    by_identity_[control_identity(process.role, process.rank)] = lines_.size();
    lines_.push_back(
        {.identity = control_identity(process.role, process.rank), .has_clock_of_its_own = process.remote});
  }
}

std::optional<ControlServer::Received> ControlServer::receive() {
  zmq::message_t identity, head;
  while (socket_.recv(identity, zmq::recv_flags::dontwait)) {
    Received received;
    const bool has_head = identity.more() && socket_.recv(head, zmq::recv_flags::none);
    if (has_head && head.more()) (void)socket_.recv(received.weights, zmq::recv_flags::none);
    const auto sender = by_identity_.find(identity.to_string());
    if (has_head && sender != by_identity_.end() &&
        received.message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
      received.process = sender->second;
      return received;
    }
    if (!std::exchange(warned_, true)) spdlog::warn("a stranger's message was dropped");
  }
  return std::nullopt;
}

void ControlServer::send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights) {
  Line& line = lines_[process];
  Outgoing outgoing{zmq::message_t(message.ByteSizeLong()), std::move(weights)};
  message.SerializeToArray(outgoing.head.data(), static_cast<int>(outgoing.head.size()));
  if (line.welcomed) {
    transmit(line, std::move(outgoing));
  } else {
    line.held.push_back(std::move(outgoing));
  }
}

void ControlServer::welcome(std::size_t process, control::Welcome welcome) {
  Line& line = lines_[process];
  line.welcomed = true;
  control::FromCoordinator message;
  *message.mutable_welcome() = std::move(welcome);
  message.mutable_welcome()->set_compare_clocks(line.has_clock_of_its_own);
  send(process, message);
  for (Outgoing& held : std::exchange(line.held, {})) transmit(line, std::move(held));
}

void ControlServer::forget(std::size_t process) {
  lines_[process].welcomed = false;
  lines_[process].held.clear();
}

void ControlServer::transmit(const Line& line, Outgoing message) {
  const bool has_weights = message.weights.size() > 0;
  socket_.send(zmq::buffer(line.identity), zmq::send_flags::sndmore);
  socket_.send(message.head, has_weights ? zmq::send_flags::sndmore : zmq::send_flags::none);
  if (has_weights) socket_.send(message.weights, zmq::send_flags::none);
}

}  // namespace syncopate::experiments
