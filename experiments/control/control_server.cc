#include "experiments/control/control_server.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "experiments/control/control_line.h"

namespace syncopate::experiments {
namespace {

constexpr int kLingerMilliseconds = 500;

}  // namespace

ControlServer::ControlServer(const JobPlan& plan, const ListenOptions& options)
    : run_id_(plan.run_id), context_(1), socket_(context_, zmq::socket_type::router) {
  socket_.set(zmq::sockopt::linger, kLingerMilliseconds);
  // A process that was started again has the name of the one before.
  socket_.set(zmq::sockopt::router_handover, true);
  socket_.set(zmq::sockopt::maxmsgsize, options.largest_frame);
  if (options.keys) doorkeeper_.emplace(context_, *options.keys, socket_);
  socket_.bind("tcp://" + options.address + ":*");
  for (const ProcessSpec& process : plan.processes) {
    by_identity_[control_identity(process.role, process.rank)] = lines_.size();
    lines_.push_back(
        {.identity = control_identity(process.role, process.rank), .has_clock_of_its_own = process.remote});
  }
}

std::optional<ControlServer::Received> ControlServer::receive() {
  zmq::message_t identity;
  while (socket_.recv(identity, zmq::recv_flags::dontwait)) {
    if (std::optional<Received> received = take(identity)) return received;
    if (dropped_++ == 0) spdlog::warn("a message that is not of this run was dropped");
  }
  return std::nullopt;
}

std::optional<ControlServer::Received> ControlServer::take(const zmq::message_t& identity) {
  Received received;
  zmq::message_t head, rest;
  const bool has_head = identity.more() && socket_.recv(head, zmq::recv_flags::none);
  bool has_more = has_head && head.more() && socket_.recv(received.weights, zmq::recv_flags::none);
  has_more = has_more && received.weights.more();
  const bool fits = has_head && !has_more && std::in_range<int>(head.size());
  // What is left of a message would be taken for the next.
  while (has_more) has_more = socket_.recv(rest, zmq::recv_flags::none) && rest.more();
  const auto sender = by_identity_.find(identity.to_string());
  if (!fits || sender == by_identity_.end() ||
      !received.message.ParseFromArray(head.data(), static_cast<int>(head.size()))) {
    return std::nullopt;
  }
  Line& line = lines_[sender->second];
  const bool is_hello = received.message.has_hello();
  const bool is_of_this_run = is_hello ? received.message.hello().run_id() == run_id_ : line.known;
  if (!is_of_this_run) return std::nullopt;
  line.known = true;
  received.process = sender->second;
  return received;
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
