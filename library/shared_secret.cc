#include "library/shared_secret.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "common/os/readiness.h"
#include "common/transport/acceptor.h"
#include "common/transport/local_socket.h"

namespace syncopate::library {
namespace {

constexpr std::size_t kKeyCharacters = 64;  // of RunKeys::to_text

}  // namespace

Status give_keys(const RunKeys& keys, FileDescriptor listener, int size, TimePoint deadline) {
  Acceptor acceptor(std::move(listener), "the job's secret");
  std::set<int> missing;
  for (int rank = 1; rank < size; ++rank) missing.insert(rank);
  std::vector<FileDescriptor> callers;
  while (!missing.empty()) {
    std::vector<pollfd> items{{acceptor.to_poll(), POLLIN, 0}};
    for (const FileDescriptor& caller : callers) items.push_back({caller.get(), POLLIN, 0});
    if (!ready_before(deadline, items)) {
      return Status::deadline_exceeded(fmt::format("ranks {} have not come", fmt::join(missing, ", ")));
    }
    std::vector<FileDescriptor> silent;
    for (std::size_t i = 0; i < callers.size(); ++i) {
      std::int32_t rank = 0;
      if (items[i + 1].revents == 0) {
        silent.push_back(std::move(callers[i]));
      } else if (recv(callers[i].get(), &rank, sizeof(rank), MSG_DONTWAIT) == sizeof(rank) && missing.contains(rank)) {
        const SecretText text = keys.to_text();
        if (send(callers[i].get(), text.view().data(), text.view().size(), MSG_NOSIGNAL) > 0) missing.erase(rank);
      }
    }
    callers = std::move(silent);
    FileDescriptor caller = acceptor.accept(SOCK_CLOEXEC);
    if (caller.open() && is_of_own_user(caller.get())) callers.push_back(std::move(caller));
  }
  return Status();
}

Result<RunKeys> take_keys(const std::string& name, int rank, TimePoint deadline) {
  const auto check = [&] {
    return SteadyClock().now() < deadline ? Status() : Status::deadline_exceeded("rank 0 does not answer");
  };
  SYNCOPATE_ASSIGN_OR_RETURN(const FileDescriptor connection, connect_locally(name, check));
  const auto own = static_cast<std::int32_t>(rank);
  if (send(connection.get(), &own, sizeof(own), MSG_NOSIGNAL) < 0) return local_socket_failure("writing to");
  std::vector<pollfd> items{{connection.get(), POLLIN, 0}};
  if (!ready_before(deadline, items)) return Status::deadline_exceeded("rank 0 does not answer");
  std::array<char, kKeyCharacters> text{};
  const ssize_t count = recv(connection.get(), text.data(), text.size(), MSG_DONTWAIT);
  Result<RunKeys> keys = count == static_cast<ssize_t>(text.size())
                             ? RunKeys::parse({text.data(), text.size()})
                             : Result<RunKeys>(Status::peer_lost("rank 0 is gone"));
  sodium_memzero(text.data(), text.size());
  return keys;
}

}  // namespace syncopate::library
