#include "experiments/cluster/tasks/task_address.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <array>

#include "common/transport/local_socket.h"

namespace syncopate::experiments {
namespace {

// Between two attempts to reach a task that is not there yet.
constexpr int kRetryMilliseconds = 20;

}  // namespace

std::string local_address_of(const TaskPlace& place, int rank) {
  const std::string job = place.job.empty() ? fmt::format("child-of-{}", getppid()) : place.job;
  const std::string text = fmt::format("{}/{}/{}/{}", geteuid(), name_of(place.by), job, rank);
  std::array<unsigned char, 16> hash;
  crypto_generichash(hash.data(), hash.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     nullptr, 0);
  std::array<char, 2 * hash.size() + 1> hexadecimal;
  return std::string("syncopate-task-") +
         sodium_bin2hex(hexadecimal.data(), hexadecimal.size(), hash.data(), hash.size());
}

Result<TaskConnection> connect_to_task(const std::string& address, TimePoint deadline) {
  const SteadyClock clock;
  const auto check = [&] {
    return clock.now() < deadline ? Status() : Status::deadline_exceeded("it does not accept the connection");
  };
  while (true) {
    Result<FileDescriptor> socket = connect_locally(address, check);
    if (socket.ok()) {
      fcntl(socket->get(), F_SETFL, fcntl(socket->get(), F_GETFL) | O_NONBLOCK);
      return TaskConnection(make_plain_stream(std::move(*socket)));
    }
    if (socket.status().code() != Code::kPeerLost) return socket.status();
    if (clock.now() >= deadline) return Status::deadline_exceeded(socket.status().message());
    poll(nullptr, 0, kRetryMilliseconds);
  }
}

}  // namespace syncopate::experiments
