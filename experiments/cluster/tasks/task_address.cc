#include "experiments/cluster/tasks/task_address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "common/launch/rank_variables.h"
#include "common/os/tcp_socket.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "common/transport/local_socket.h"
#include "common/transport/run_keys.h"
#include "common/transport/secret_file.h"
#include "experiments/cluster/tasks/task_identity.h"

namespace syncopate::experiments {
namespace {

// Between two attempts to reach a task that is not there yet.
constexpr std::chrono::milliseconds kBetweenAttempts{20};

constexpr std::string_view kNetwork = "tcp://";

}  // namespace

Result<std::string> local_address_of(const TaskPlace& place, int rank) {
  const std::string job = place.job.empty() ? fmt::format("child-of-{}", getppid()) : place.job;
  const std::string text = fmt::format("{}/{}/{}/{}", geteuid(), launcher_of(place.by), job, rank);
  std::array<unsigned char, 16> hash;
  if (place.secret_file.empty()) {
    crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                       nullptr, 0);
  } else {
    const Result<SecretText> secret = read_secret_file(place.secret_file);
    if (!secret.ok()) return secret.status().in(kSecretFile);
    SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::of_job(*secret, "names of tasks"));
    const RunKeys::Key key = keys.derive(text);
    std::copy_n(key.begin(), hash.size(), hash.begin());
  }
  std::array<char, 2 * hash.size() + 1> hexadecimal;
  return std::string("syncopate-task-") +
         sodium_bin2hex(hexadecimal.data(), hexadecimal.size(), hash.data(), hash.size());
}

Status with_way_out(const Status& failure, const TaskPlace& place) {
  if (!place.secret_file.empty()) return failure;
  return {
      failure.code(),
      fmt::format("{}. Others can predict this name: give each process {}=FILE, with 32 random bytes in a file that "
                  "this user alone can read, and names follow from it",
                  failure.message(), kSecretFile)};
}

std::string network_address_of(const TaskPlace& place, const SocketAddress& listener) {
  return fmt::format("{}{}/{}/{}/{}", kNetwork, listener.to_string(), place.rank, place.size, place.job);
}

Result<NetworkTask> parse_network_address(const std::string& address) {
  const auto wrong = [&] { return Status::invalid_argument("no address of a task: " + printable(address)); };
  if (!address.starts_with(kNetwork)) return wrong();
  std::string_view rest = std::string_view(address).substr(kNetwork.size());
  const auto take = [&rest] {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return part;
  };
  const Result<SocketAddress> listener = SocketAddress::parse(take());
  const std::optional<int> rank = parse_number<int>(take());
  const std::optional<int> size = parse_number<int>(take());
  if (!listener.ok() || !rank || !size || *rank < 0 || *rank >= *size || rest.empty()) return wrong();
  return NetworkTask{.listener = *listener, .rank = *rank, .size = *size, .job = std::string(rest)};
}

namespace {

Result<TaskConnection> connect_locally_to(const std::string& name, TimePoint deadline) {
  const auto check = [&] {
    return SteadyClock().now() < deadline ? Status() : Status::deadline_exceeded("it does not accept the connection");
  };
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, connect_locally(name, check));
  fcntl(socket.get(), F_SETFL, fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  return TaskConnection(make_plain_stream(std::move(socket)));
}

Result<TaskConnection> connect_over_network(const NetworkTask& task, const std::string& secret_file,
                                            TimePoint deadline) {
  // A task listens before anybody knows where: who comes later finds it, or it is gone.
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketHandshake::Member shell,
                             task_identity(secret_file, task.job, task.size, task.size));
  SYNCOPATE_ASSIGN_OR_RETURN(FileDescriptor socket, begin_tcp_connection(task.listener));
  return shake_hands(SocketHandshake::connecting(std::move(socket), shell, task.rank), deadline);
}

}  // namespace

Result<TaskConnection> connect_to_task(const std::string& address, const std::string& secret_file, TimePoint deadline) {
  if (address.starts_with(kNetwork)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const NetworkTask task, parse_network_address(address));
    return connect_over_network(task, secret_file, deadline);
  }
  std::string reason;  // the last that says who is there, or that nobody is
  while (true) {
    Result<TaskConnection> task = connect_locally_to(address, deadline);
    const bool is_late = !task.ok() && task.status().code() == Code::kDeadlineExceeded;
    if (is_late && !reason.empty()) return Status::deadline_exceeded(reason);
    if (task.ok() || task.status().code() != Code::kPeerLost) return task;
    reason = task.status().message();
    if (SteadyClock().now() >= deadline) return Status::deadline_exceeded(reason);
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

}  // namespace syncopate::experiments
