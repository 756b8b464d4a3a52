#include "library/server_processes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/os/child_process.h"
#include "library/process_input.h"

namespace syncopate::library {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 10;

// Reads a line without its end; false if there is none.
bool read_line(int words, std::string& begun, std::string& line) {
  while (true) {
    if (const std::size_t end = begun.find('\n'); end != std::string::npos) {
      line = begun.substr(0, end);
      begun.erase(0, end + 1);
      return true;
    }
    char part[4096];
    const ssize_t count = recv(words, part, sizeof(part), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || begun.size() > kLongestLine) return false;
    begun.append(part, static_cast<std::size_t>(count));
  }
}

// Takes part in each rendezvous in the server's place, until it needs no more. Whoever cannot meet the others is
// killed: the ranks, which wait for it, are told by its end.
void relay(int words, pid_t pid, Rendezvous& rendezvous, int member, int size, Duration timeout) {
  std::string begun, line;
  while (read_line(words, begun, line)) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const Result<std::vector<std::string>> values =
        rendezvous.exchange(line.substr(0, space), member, size, line.substr(std::min(space + 1, line.size())),
                            SteadyClock().now() + timeout);
    // With a line more an intruder would tell the server something else.
    const bool is_a_line_each = values.ok() && std::ranges::none_of(*values, [](const std::string& each) {
                                  return each.find('\n') != std::string::npos;
                                });
    if (!is_a_line_each || !write_to_process(words, fmt::format("{}\n", fmt::join(*values, "\n")))) {
      kill(pid, SIGKILL);  // not yet waited for, so that no other process has its number
      return;
    }
  }
}

}  // namespace

Result<std::unique_ptr<ServerProcesses>> ServerProcesses::start(const Group& group, const TcpRendezvous& rendezvous,
                                                                const ServerProcessesOptions& options) {
  if (access(options.program.c_str(), X_OK) != 0) {
    return Status::not_found(fmt::format("{}: {}; it is installed beside the library, with cmake --install",
                                         options.program, std::strerror(errno)));
  }
  std::unique_ptr<ServerProcesses> processes(new ServerProcesses);
  for (const int number : group.servers_to_start(options.servers)) {
    SYNCOPATE_RETURN_IF_ERROR(processes->start_one(group, rendezvous, options, number));
  }
  return processes;
}

Status ServerProcesses::start_one(const Group& group, const TcpRendezvous& rendezvous,
                                  const ServerProcessesOptions& options, int number) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Status::resource_exhausted(fmt::format("a socket for server {}: {}", number, std::strerror(errno)));
  }
  auto server = std::make_unique<Server>();
  server->number = number;
  server->words = FileDescriptor(ends[0]);
  const FileDescriptor theirs(ends[1]);
  SYNCOPATE_ASSIGN_OR_RETURN(server->rendezvous, rendezvous.another());

  Result<ChildProcess> child =
      spawn({.command = {options.program}, .environment = {}, .input = theirs.get(), .output = theirs.get()});
  if (!child.ok()) return child.status().in("starting " + options.program);
  server->pid = child->pid;
  server->handle = std::move(child->handle);
  Server& started = *servers_.emplace_back(std::move(server));

  SYNCOPATE_RETURN_IF_ERROR(group.give_secret(started.words.get()));
  std::string plan = fmt::format("group {}\nparent {}\nworkers {}\nserver {}\nwire {}\ntimeout_ms {}\n", options.name,
                                 getpid(), group.size(), number, group.wire() == Wire::kShm ? "shm" : "sockets",
                                 std::chrono::duration_cast<std::chrono::milliseconds>(group.timeout()).count());
  if (!group.address().empty()) plan += fmt::format("address {}\n", group.address());
  for (const auto& [option, text] : options.training) plan += fmt::format("{} {}\n", option, text);
  if (!write_to_process(started.words.get(), plan + "end\n")) {
    return Status::peer_lost(fmt::format("server {} ended before it was told what it is to do", number));
  }
  started.relay = std::thread(relay, started.words.get(), started.pid, std::ref(*started.rendezvous),
                              group.size() + number, group.size() + options.servers, group.timeout());
  return Status();
}

ServerProcesses::~ServerProcesses() {
  for (const std::unique_ptr<Server>& server : servers_) {
    server->rendezvous->interrupt();
    if (!server->has_ended) kill(server->pid, SIGKILL);
    shutdown(server->words.get(), SHUT_RDWR);
    if (server->relay.joinable()) server->relay.join();
    if (!server->has_ended) waitpid(server->pid, nullptr, 0);
  }
}

std::vector<StartedServer> ServerProcesses::started() const {
  std::vector<StartedServer> started;
  for (const std::unique_ptr<Server>& server : servers_) started.push_back({server->number, server->pid});
  return started;
}

Status ServerProcesses::end(TimePoint deadline) {
  for (const std::unique_ptr<Server>& server : servers_) shutdown(server->words.get(), SHUT_WR);
  for (const std::unique_ptr<Server>& each : servers_) {
    Server& server = *each;
    if (!server.handle.ends_before(deadline)) {
      return Status::deadline_exceeded(fmt::format("server {} has not ended after all ranks had left", server.number));
    }
    // Its relay may still name it: it ends first, since the other end of its socket is gone.
    server.relay.join();
    int status = 0;
    waitpid(server.pid, &status, 0);
    server.has_ended = true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      return Status::internal(
          fmt::format("server {} failed at its end; it has said why on standard error", server.number));
    }
  }
  return Status();
}

}  // namespace syncopate::library
