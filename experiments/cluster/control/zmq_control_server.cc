#include "experiments/cluster/control/zmq_control_server.h"

#include <fmt/format.h>

#include <utility>

#include "common/text/log.h"
#include "experiments/cluster/control/received_message.h"

namespace syncopate::experiments {
namespace {

constexpr int kLingerMilliseconds = 500;
// Connections that the kernel holds until they are accepted: all processes may connect at once, and try only once.
constexpr int kBacklog = 1024;

}  // namespace

// Routes are the router's own numbers of connections, so that a name that a peer chooses has no effect.
ZmqControlServer::ZmqControlServer(const JobPlan& plan, const ListenOptions& options)
    : plan_(plan), keys_(options.keys), context_(1), socket_(context_, zmq::socket_type::router) {
  socket_.set(zmq::sockopt::linger, kLingerMilliseconds);
  socket_.set(zmq::sockopt::maxmsgsize, options.largest_frame);
  socket_.set(zmq::sockopt::backlog, kBacklog);
  authenticator_.emplace(context_, coordinator_key(keys_), socket_);
  for (const ProcessSpec& process : plan.processes) {
    lines_.push_back({.identity = {.role = process.role, .rank = process.rank}, .is_remote = process.remote});
    admit(lines_.size() - 1);
  }
  if (options.address.empty()) {
    admit_own_user(socket_);
    socket_.bind(new_ipc_address());
  } else {
    bind_over_tcp(socket_, options.address);
  }
}

void ZmqControlServer::admit(std::size_t process) {
  const ProcessIdentity& identity = lines_[process].identity;
  authenticator_->admit(control_key(keys_, identity).public_key, text_of(identity));
  by_user_[text_of(identity)] = process;
}

std::optional<ZmqControlServer::Received> ZmqControlServer::receive() {
  zmq::message_t route;
  while (socket_.recv(route, zmq::recv_flags::dontwait)) {
    Frames frames = take_frames(route);
    const auto sender = by_user_.find(user_of(frames.head));
    if (sender == by_user_.end()) continue;  // an incarnation that has been given up
    Line& line = lines_[sender->second];
    Received received{.process = sender->second};
    if (const std::string objection = objection_to(line, frames, received.message); !objection.empty()) {
      if (dropped_++ == 0) log_warning("dropped from {}: {}", plan_.processes[sender->second].name(), objection);
      continue;
    }
    if (line.is_remote) traffic_.add_in(matter_of(received.message), frames.head.size());
    line.known = true;
    line.route = route.to_string();
    received.weights = std::move(frames.weights);
    make_printable(received.message);
    return received;
  }
  return std::nullopt;
}

ZmqControlServer::Frames ZmqControlServer::take_frames(const zmq::message_t& route) {
  Frames frames;
  const bool has_head = route.more() && socket_.recv(frames.head, zmq::recv_flags::none);
  bool has_more = has_head && frames.head.more() && socket_.recv(frames.weights, zmq::recv_flags::none);
  has_more = has_more && frames.weights.more();
  frames.fit = has_head && !has_more && std::in_range<int>(frames.head.size());
  // Otherwise the rest of a message would be taken for the next one.
  for (zmq::message_t rest; has_more;) has_more = socket_.recv(rest, zmq::recv_flags::none) && rest.more();
  return frames;
}

std::string ZmqControlServer::objection_to(const Line& line, const Frames& frames,
                                           control::ToCoordinator& message) const {
  if (!frames.fit || !message.ParseFromArray(frames.head.data(), static_cast<int>(frames.head.size()))) {
    return "bytes that are no message";
  }
  if (!may_send(line.identity.role, message.kind_case())) {
    return fmt::format("a message of kind {}, which none of its role sends", static_cast<int>(message.kind_case()));
  }
  const bool is_of_this_run = message.has_hello() ? message.hello().run_id() == plan_.run_id : line.known;
  return is_of_this_run ? "" : "a message of another run, or from before its hello";
}

void ZmqControlServer::send(std::size_t process, const control::FromCoordinator& message, zmq::message_t weights) {
  Line& line = lines_[process];
  Outgoing outgoing{matter_of(message), zmq::message_t(message.ByteSizeLong()), std::move(weights)};
  message.SerializeToArray(outgoing.head.data(), static_cast<int>(outgoing.head.size()));
  if (line.welcomed) {
    transmit(line, std::move(outgoing));
  } else {
    line.held.push_back(std::move(outgoing));
  }
}

void ZmqControlServer::welcome(std::size_t process, control::Welcome welcome) {
  Line& line = lines_[process];
  line.welcomed = true;
  control::FromCoordinator message;
  *message.mutable_welcome() = std::move(welcome);
  message.mutable_welcome()->set_compare_clocks(line.is_remote);
  send(process, message);
  for (Outgoing& held : std::exchange(line.held, {})) transmit(line, std::move(held));
}

int ZmqControlServer::begin_incarnation(std::size_t process) {
  Line& line = lines_[process];
  authenticator_->expel(control_key(keys_, line.identity).public_key);
  by_user_.erase(text_of(line.identity));
  line = {.identity = line.identity, .is_remote = line.is_remote};
  ++line.identity.incarnation;
  admit(process);
  return line.identity.incarnation;
}

void ZmqControlServer::transmit(const Line& line, Outgoing message) {
  if (line.is_remote) traffic_.add_out(message.matter, message.head.size());
  const bool has_weights = message.weights.size() > 0;
  socket_.send(zmq::buffer(line.route), zmq::send_flags::sndmore);
  socket_.send(message.head, has_weights ? zmq::send_flags::sndmore : zmq::send_flags::none);
  if (has_weights) socket_.send(message.weights, zmq::send_flags::none);
}

}  // namespace syncopate::experiments
