#include "experiments/cluster/tasks/task_meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "common/hash.h"
#include "common/launch/rank_variables.h"
#include "common/os/readiness.h"
#include "common/os/socket_address.h"
#include "common/os/tcp_socket.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_identity.h"

namespace syncopate::experiments {
namespace {

// Below those that kernels choose for connections.
constexpr std::uint16_t kFirstPort = 20'000, kLastPort = 32'767;
constexpr std::chrono::milliseconds kAwakeEvery{250};
constexpr std::chrono::milliseconds kBetweenKnocks{50};
// One attempt to reach the first task: a firewall may swallow it, and another program at the port may be mute.
constexpr Duration kAttempt = std::chrono::seconds(2);

// All addresses of this host, of the family in which it is known by this name.
Result<SocketAddress> anywhere_here(const std::string& name) {
  const Result<std::vector<SocketAddress>> known = addresses_of(name);
  if (!known.ok()) return known.status().in("the host of rank 0");
  return SocketAddress::of_host(known->front().family() == AF_INET6 ? "::" : "0.0.0.0");
}

Result<FileDescriptor> listen_at_a_port(const TaskPlace& place) {
  SYNCOPATE_ASSIGN_OR_RETURN(SocketAddress address, anywhere_here(place.first_host));
  for (const std::uint16_t port : meeting_ports(place.job)) {
    address.set_port(port);
    Result<FileDescriptor> listener = listen_over_tcp(address);
    if (listener.ok()) return listener;
    if (listener.status().code() != Code::kResourceExhausted) {
      return listener.status().in("listening at " + address.to_string());
    }
  }
  return Status::resource_exhausted(fmt::format("none of the ports {} is free on this host, where the tasks meet",
                                                fmt::join(meeting_ports(place.job), ", ")));
}

// Waits for a connection of a task that has come in, or for what one says.
void wait(const TaskEntrance& entrance, const std::list<TaskConnection>& silent) {
  std::vector<pollfd> items;
  entrance.add_to(items);
  for (const TaskConnection& task : silent) items.push_back({task.descriptor(), POLLIN, 0});
  ready_before(SteadyClock().now() + kAwakeEvery, items);
}

// Takes those of the silent who have said where they listen for tasks, and drops who says anything else.
void hear(std::list<TaskConnection>& silent, const TaskPlace& place, std::map<int, MetTask>& tasks) {
  for (auto task = silent.begin(); task != silent.end();) {
    const Result<std::optional<TaskMessage>> said = task->receive();
    if (said.ok() && !*said) {
      ++task;
      continue;
    }
    if (said.ok() && (*said)->kind == TaskMessage::Kind::kHere) {
      const Result<NetworkTask> where = parse_network_address((*said)->bytes);
      if (where.ok() && where->size == place.size && where->rank > 0) {
        tasks.try_emplace(where->rank, MetTask{std::move(*task), (*said)->bytes});
      }
    }
    task = silent.erase(task);
  }
}

// Tries each address of the first task once. Fails with not found if its name is unknown, and with peer lost.
Result<TaskConnection> try_to_reach(const TaskPlace& place, const SocketHandshake::Member& self, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, addresses_of(place.first_host));
  const auto ports = meeting_ports(place.job);
  for (SocketAddress& address : addresses) {
    for (const std::uint16_t port : ports) {
      address.set_port(port);
      Result<FileDescriptor> socket = begin_tcp_connection(address);
      if (!socket.ok()) continue;
      Result<TaskConnection> first = shake_hands(SocketHandshake::connecting(std::move(*socket), self, 0),
                                                 std::min(deadline, SteadyClock().now() + kAttempt));
      if (first.ok()) return first;
    }
  }
  return Status::peer_lost(fmt::format("nobody with the same secret ({}={}) answers at port {}", kSecretFile,
                                       place.secret_file, fmt::join(ports, ", ")));
}

Result<TaskConnection> reach_first_task(const TaskPlace& place, const SocketHandshake::Member& self,
                                        TimePoint deadline) {
  while (true) {
    Result<TaskConnection> first = try_to_reach(place, self, deadline);
    if (first.ok() || SteadyClock().now() >= deadline) return first;
    std::this_thread::sleep_for(kBetweenKnocks);
  }
}

// Who came, but not as one of the tasks, tells why these are missing.
std::string turned_away_text(const TaskEntrance& entrance) {
  if (!entrance.has_turned_away()) return "";
  return fmt::format("; somebody came who did not show the same secret ({})", kSecretFile);
}

}  // namespace

std::array<std::uint16_t, 8> meeting_ports(const std::string& job) {
  constexpr std::uint64_t kPorts = kLastPort - kFirstPort + 1;
  std::array<std::uint16_t, 8> ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    ports[i] = static_cast<std::uint16_t>(kFirstPort + (hash_of(job) + i) % kPorts);
  }
  return ports;
}

Result<std::vector<MetTask>> receive_tasks(const TaskPlace& place, Duration timeout) {
  const TimePoint deadline = SteadyClock().now() + timeout;
  SYNCOPATE_ASSIGN_OR_RETURN(SocketHandshake::Member self,
                             task_identity(place.secret_file, place.job, place.rank, place.size));
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor listener, listen_at_a_port(place));
  const std::unique_ptr<TaskEntrance> entrance = network_entrance(std::move(listener), std::move(self), timeout);
  std::map<int, MetTask> tasks;  // by rank
  std::list<TaskConnection> silent;
  while (static_cast<int>(tasks.size()) < place.size - 1) {
    if (SteadyClock().now() >= deadline) {
      int missing = 1;
      while (tasks.contains(missing)) ++missing;
      return Status::deadline_exceeded(
          fmt::format("rank {} of the {} that {} has started has not come within {:.3g} s{}", missing, place.size,
                      launcher_of(place.by), seconds(timeout), turned_away_text(*entrance)));
    }
    wait(*entrance, silent);
    for (TaskConnection& task : entrance->admit()) silent.push_back(std::move(task));
    hear(silent, place, tasks);
  }
  std::vector<MetTask> met;
  for (auto& [rank, task] : tasks) met.push_back(std::move(task));
  return met;
}

Result<MeetingWithFirst> meet_first_task(const TaskPlace& place, Duration timeout) {
  const TimePoint deadline = SteadyClock().now() + timeout;
  SYNCOPATE_ASSIGN_OR_RETURN(SocketHandshake::Member self,
                             task_identity(place.secret_file, place.job, place.rank, place.size));
  Result<TaskConnection> first = reach_first_task(place, self, deadline);
  if (!first.ok()) {
    return Status::deadline_exceeded(fmt::format("the process with rank 0 has not been found on {} within {:.3g} s: {}",
                                                 place.first_host, seconds(timeout), first.status().message()));
  }
  lose_when_silent(first->descriptor(), timeout);
  SocketAddress own = SocketAddress::of_socket(first->descriptor());
  own.set_port(0);
  Result<FileDescriptor> listener = listen_over_tcp(own);
  if (!listener.ok()) return listener.status().in("listening at " + own.host());
  const std::string address = network_address_of(place, SocketAddress::of_socket(listener->get()));
  SYNCOPATE_RETURN_IF_ERROR(first->send({TaskMessage::Kind::kHere, address}, deadline));
  return MeetingWithFirst{std::move(*first), network_entrance(std::move(*listener), std::move(self), timeout)};
}

}  // namespace syncopate::experiments
