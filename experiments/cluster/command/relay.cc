#include "experiments/cluster/command/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/os/local_address.h"
#include "common/os/readiness.h"
#include "common/os/signal_actions.h"
#include "common/status.h"
#include "common/transport/run_keys.h"
#include "experiments/cluster/command/free_port.h"
#include "experiments/cluster/command/relay_protocol.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/cluster/plan/started_lines.h"
#include "experiments/cluster/process/descendants.h"
#include "experiments/cluster/process/shared_keys.h"
#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

constexpr int kWordsBefore = 3;  // the program, --relay-command, --run
constexpr Duration kSecretWithin = std::chrono::seconds(30);
constexpr std::chrono::milliseconds kBetweenLooks{100};
// What waits to be sent, beyond which nothing more is read: the program waits when it prints.
constexpr std::size_t kMostWaiting = std::size_t{1} << 18;
constexpr std::size_t kMostLine = 256;

Status failed(const char* what) { return Status::internal(fmt::format("{}: {}", what, strerror(errno))); }

// Returns a file in memory that this user alone can open.
Result<FileDescriptor> memory_file(const char* name) {
  FileDescriptor file(memfd_create(name, MFD_CLOEXEC));
  if (!file.open() || fchmod(file.get(), 0600) != 0) return failed("cannot make a file in memory");
  return file;
}

void set_nonblocking(int file) { fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK); }

class Relay {
 public:
  Relay(std::string towards, char** command) : towards_(std::move(towards)), command_(command) {}

  // Returns once the program has ended, and nothing that it has started is left. The signals that are taken here must
  // be blocked.
  Result<int> run() {
    SYNCOPATE_RETURN_IF_ERROR(prepare());
    while (!status_ && !is_given_up_) {
      wait();
      take_signals();
      SYNCOPATE_RETURN_IF_ERROR(take_orders());
      take_output();
      take_steps();
      send();
    }
    kill_descendants();
    if (!status_) return 128 + SIGKILL;
    say_end();
    return WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_);
  }

 private:
  Status prepare() {
    SYNCOPATE_RETURN_IF_ERROR(receive_secret());
    SYNCOPATE_ASSIGN_OR_RETURN(steps_, memory_file("steps"));
    SYNCOPATE_ASSIGN_OR_RETURN(address_, local_address_towards(towards_));
    SYNCOPATE_ASSIGN_OR_RETURN(const int port, free_port(address_));
    sigset_t taken;
    sigemptyset(&taken);
    for (const int signal : {SIGTERM, SIGCHLD}) sigaddset(&taken, signal);
    if (!is_ignored(SIGHUP)) sigaddset(&taken, SIGHUP);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    signals_ = FileDescriptor(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_.open()) return failed("signalfd");
    adopt_orphans();
    // From here on this process ends what it has started before it ends itself.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    set_nonblocking(STDOUT_FILENO);
    waiting_ = relay_mark();
    append_message(waiting_, RelayReady{address_, port});
    return {};
  }

  Status receive_secret() {
    SYNCOPATE_ASSIGN_OR_RETURN(const SecretText line, line_on_stdin(SteadyClock().now() + kSecretWithin));
    SYNCOPATE_RETURN_IF_ERROR(RunKeys::parse(line.view()).status());
    SYNCOPATE_ASSIGN_OR_RETURN(secret_, memory_file("secret"));
    const auto size = static_cast<ssize_t>(line.view().size());
    if (write(secret_.get(), line.view().data(), line.view().size()) != size) return failed("cannot keep the secret");
    return {};
  }

  void wait() {
    std::array<pollfd, 4> items = {pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = -1, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = -1, .events = POLLOUT, .revents = 0}};
    if (has_space()) items[2].fd = output_.get();  // ignored while it is -1
    if (!waiting_.empty()) items[3].fd = STDOUT_FILENO;
    ready_before(program_ > 0 ? clock_.now() + kBetweenLooks : kNoDeadline, items);
    has_orders_ = items[1].revents != 0;
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) is_given_up_ = true;
    }
    // Others may be children of the program that have been adopted.
    int status = 0;
    rusage usage{};
    for (pid_t child; (child = wait4(-1, &status, WNOHANG, &usage)) > 0;) {
      if (child != program_) continue;
      status_ = status;
      peak_memory_ = usage.ru_maxrss * 1024;
    }
  }

  // The end of standard input is that of run_experiment.
  Status take_orders() {
    if (!has_orders_) return {};
    std::array<char, 4096> bytes;
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    const TimePoint received = clock_.now();
    if (count <= 0) is_given_up_ = count == 0 || (errno != EINTR && errno != EAGAIN);
    if (count > 0) lines_.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end; (end = lines_.find('\n')) != std::string::npos; lines_.erase(0, end + 1)) {
      SYNCOPATE_ASSIGN_OR_RETURN(const RelayOrder order, parse_order(std::string_view(lines_).substr(0, end)));
      SYNCOPATE_RETURN_IF_ERROR(carry_out(order, received));
    }
    if (lines_.size() > kMostLine) return Status::data_loss("a line on standard input is too long");
    return {};
  }

  Status carry_out(const RelayOrder& order, TimePoint received) {
    if (status_) return {};  // nothing comes after the program's end
    if (const auto* question = std::get_if<RelayQuestion>(&order)) {
      append_message(waiting_, RelayClock{question->sent, received, clock_.now()});
    } else if (const auto* start = std::get_if<RelayStart>(&order)) {
      if (program_ == 0) return start_program(*start);
    } else if (program_ > 0) {
      kill(-program_, SIGTERM);
    }
    return {};
  }

  Status start_program(const RelayStart& start) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed("cannot make a pipe");
    output_ = FileDescriptor(ends[0]);
    const FileDescriptor write_end(ends[1]);
    set_nonblocking(output_.get());
    set_environment(start);
    const pid_t relay = getpid();
    program_ = fork();
    if (program_ == 0) become_program(write_end.get(), relay);
    if (program_ < 0) return failed("cannot start a process");
    setpgid(program_, program_);  // here, too, so that it is so before an order to interrupt it
    return {};
  }

  void set_environment(const RelayStart& start) const {
    setenv(kMasterAddress, start.address.c_str(), 1);
    setenv(kMasterPort, fmt::to_string(start.port).c_str(), 1);
    setenv(kOwnAddress, address_.c_str(), 1);
    setenv(kStepFile, path_of(steps_).c_str(), 1);
    setenv(kSecretFile, path_of(secret_).c_str(), 1);
  }

  [[noreturn]] void become_program(int output, pid_t relay) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != relay) _exit(kNotStarted);  // the relay has died in the meantime
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGINT, interrupt_before_);
    take_default_actions(defaults_);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(command_[0], command_);
    std::fprintf(stderr, "cannot start %s: %s\n", command_[0], std::strerror(errno));
    _exit(kNotStarted);
  }

  bool has_space() const { return waiting_.size() < kMostWaiting; }

  void take_output() {
    while (output_.open() && has_space()) {
      std::string text(kMostRelayedBytes, '\0');
      const ssize_t count = read(output_.get(), text.data(), text.size());
      if (count == 0) output_ = FileDescriptor();
      if (count <= 0) return;
      text.resize(static_cast<std::size_t>(count));
      append_message(waiting_, RelayOutput{std::move(text)});
    }
  }

  // What has been read is given back to the system.
  void take_steps() {
    while (has_space()) {
      std::string bytes(kMostRelayedBytes, '\0');
      const ssize_t count = pread(steps_.get(), bytes.data(), bytes.size(), steps_read_);
      if (count <= 0) return;
      fallocate(steps_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, steps_read_, count);
      steps_read_ += count;
      bytes.resize(static_cast<std::size_t>(count));
      append_message(waiting_, RelaySteps{std::move(bytes)});
    }
  }

  void send() {
    while (!waiting_.empty()) {
      const ssize_t count = write(STDOUT_FILENO, waiting_.data(), waiting_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) is_given_up_ = is_given_up_ || errno != EAGAIN;
      if (count < 0) return;
      waiting_.erase(0, static_cast<std::size_t>(count));
    }
  }

  // Sends what the program has left, and how it has ended, as long as somebody takes it.
  void say_end() {
    bool is_said = false;
    while (!is_given_up_ && (!is_said || !waiting_.empty())) {
      const std::size_t before = waiting_.size();
      take_output();
      take_steps();
      if (!is_said && waiting_.size() == before && has_space()) {
        RelayEnd end{.exit_code = {}, .signal = {}, .peak_memory = peak_memory_};
        if (WIFSIGNALED(*status_)) end.signal = WTERMSIG(*status_);
        if (WIFEXITED(*status_)) end.exit_code = WEXITSTATUS(*status_);
        append_message(waiting_, end);
        is_said = true;
      }
      send();
      if (waiting_.empty()) continue;
      wait();
      take_signals();
      if (!take_orders().ok()) return;
    }
  }

  const std::string towards_;
  char** const command_;
  const SteadyClock clock_;
  std::string address_;                                              // of this host
  const sighandler_t interrupt_before_ = ::signal(SIGINT, SIG_IGN);  // what it did
  const sigset_t defaults_ = default_in_programs();
  FileDescriptor signals_, secret_, steps_;
  FileDescriptor output_;  // what the program prints
  off_t steps_read_ = 0;
  std::string lines_;    // of standard input, as far as they are not whole
  std::string waiting_;  // to be sent
  pid_t program_ = 0;
  bool has_orders_ = false;
  bool is_given_up_ = false;   // nobody needs the program any more
  std::optional<int> status_;  // once the program has ended
  std::int64_t peak_memory_ = 0;
};

}  // namespace

bool is_relay_command_line(int argc, const char* const* argv) {
  return argc > kWordsBefore && std::string_view(argv[1]).starts_with(kRelayWord);
}

int relay_main(int, char** argv) {
  let_writes_fail();
  Result<int> end = Relay(std::string(argv[1]).substr(kRelayWord.size()), argv + kWordsBefore).run();
  if (end.ok()) return *end;
  kill_descendants();
  std::fprintf(stderr, "%s\n", end.status().message().c_str());
  return static_cast<int>(exit_code_of(end.status()));
}

}  // namespace syncopate::experiments
