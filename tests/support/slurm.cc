#include "tests/support/slurm.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "tests/support/build_paths.h"

namespace syncopate::testing_support {
namespace {

constexpr int kReadyMs = 60'000 * kSlowness;

// Ports that nobody has now; they are chosen together, so that they differ.
std::array<std::string, 3> free_ports() {
  std::array<std::string, 3> ports;
  std::array<FileDescriptor, 3> held;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    held[i] = FileDescriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(held[i].get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(held[i].get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    ports[i] = std::to_string(ntohs(address.sin_port));
  }
  return ports;
}

std::string text_from(int descriptor, int limit_ms) {
  std::array<char, 64> text{};
  pollfd item{.fd = descriptor, .events = POLLIN, .revents = 0};
  if (poll(&item, 1, limit_ms) <= 0) return {};
  const ssize_t count = read(descriptor, text.data(), text.size());
  return count > 0 ? std::string(text.data(), static_cast<std::size_t>(count)) : "";
}

}  // namespace

std::string Slurm::missing() {
  for (const char* path : {"/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/srun", "/usr/sbin/munged"}) {
    if (!std::filesystem::exists(path)) {
      return "no Slurm: apt-get install --no-install-recommends slurmctld slurmd slurm-client munge";
    }
  }
  return geteuid() == 0 ? "" : "Slurm's daemons need root";
}

Slurm::Slurm() {
  const std::array<std::string, 3> ports = free_ports();
  const std::string script = source_directory() + "/tests/support/slurm_daemons.sh";
  int output[2], input[2];
  if (pipe2(output, O_CLOEXEC) != 0 || pipe2(input, O_CLOEXEC) != 0) return;
  FileDescriptor read_end(output[0]), write_end(output[1]), input_end(input[0]);
  input_ = FileDescriptor(input[1]);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input_end.get(), STDIN_FILENO);
    dup2(write_end.get(), STDOUT_FILENO);
    execlp("unshare", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", script.c_str(),
           folder_.path().c_str(), ports[0].c_str(), ports[1].c_str(), ports[2].c_str(), nullptr);
    _exit(127);
  }
  write_end = FileDescriptor();
  is_up_ = text_from(read_end.get(), kReadyMs) == "ready\n";
  EXPECT_TRUE(is_up_) << text_of(folder_.path() / "log/slurmctld.log") << text_of(folder_.path() / "log/node1.log");
}

Slurm::~Slurm() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::vector<std::string> Slurm::before(const std::vector<std::string>& command) const {
  return std::vector<std::string>{"/usr/bin/env", "SLURM_CONF=" + (folder() / "slurm.conf").string()} + command;
}

std::string Slurm::output_of(const std::string& command) const {
  const std::string line = "SLURM_CONF=" + (folder() / "slurm.conf").string() + " " + command + " 2>&1";
  FILE* const output = popen(line.c_str(), "r");
  std::string text;
  for (int letter = 0; output != nullptr && (letter = fgetc(output)) != EOF;) text += static_cast<char>(letter);
  if (output != nullptr) pclose(output);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

pid_t Slurm::process(const std::string& role, int rank) const {
  const std::string begin = "--role=" + role, then = "--rank=" + std::to_string(rank);
  const std::string in_its_jobs = "SLURM_CONF=" + (folder() / "slurm.conf").string();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string words = text_of(entry.path() / "cmdline");
    // The program's first two arguments, with the zero bytes around them.
    const std::string arguments = std::string(1, '\0') + begin + std::string(1, '\0') + then + std::string(1, '\0');
    if (words.find(arguments) != words.find('\0') || words.empty()) continue;
    if (text_of(entry.path() / "environ").find(in_its_jobs) == std::string::npos) continue;
    return static_cast<pid_t>(std::stoi(entry.path().filename().string()));
  }
  return 0;
}

}  // namespace syncopate::testing_support
