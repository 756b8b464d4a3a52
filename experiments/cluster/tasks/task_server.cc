#include "experiments/cluster/tasks/task_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sodium.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/os/readiness.h"
#include "common/os/signal_actions.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "common/transport/local_socket.h"
#include "experiments/cluster/coordinator/interrupts.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/cluster/host/host_report.h"
#include "experiments/cluster/launcher/launcher.h"
#include "experiments/cluster/process/private_memory.h"
#include "experiments/cluster/tasks/task_address.h"
#include "experiments/cluster/tasks/task_command.h"
#include "experiments/cluster/tasks/task_connection.h"
#include "experiments/cluster/tasks/task_entrance.h"
#include "experiments/cluster/tasks/task_meeting.h"

namespace syncopate::experiments {
namespace {

using Kind = TaskMessage::Kind;

constexpr std::chrono::milliseconds kAwakeAtLeastEvery{250};
constexpr int kSignalled = 128;  // as in shells
constexpr Duration kSendTimeout = std::chrono::seconds(5);
// As long as Slurm and torchrun wait between SIGTERM and SIGKILL.
constexpr Duration kEndsWithin = std::chrono::seconds(30);

void say_as(const TaskPlace& place, const std::string& what) {
  fmt::print(stderr, "run_experiment: rank {} of {}: {}\n", place.rank, launcher_of(place.by), what);
}

// How others come to this task, and the first one's connection if it is here already.
struct Door {
  std::unique_ptr<TaskEntrance> entrance;
  std::optional<TaskConnection> first = {};
};

Result<Door> open_door(const TaskServerOptions& options) {
  if (options.place.one_host) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, local_address_of(options.place, options.place.rank));
    Result<FileDescriptor> listener = listen_locally(name);
    if (!listener.ok()) return with_way_out(listener.status(), options.place);
    return Door{local_entrance(std::move(*listener))};
  }
  SYNCOPATE_ASSIGN_OR_RETURN(MeetingWithFirst met, meet_first_task(options.place, options.patience));
  return Door{std::move(met.entrance), std::move(met.first)};
}

class TaskServer {
 public:
  TaskServer(const TaskServerOptions& options, Door door)
      : options_(options), entrance_(std::move(door.entrance)), give_up_(clock_.now() + options.patience) {
    if (door.first) newcomers_.push_back(std::move(*door.first));
  }
  ~TaskServer() { end_process(); }

  int serve() {
    while (!exit_) {
      wait();
      for (TaskConnection& newcomer : entrance_->admit()) newcomers_.push_back(std::move(newcomer));
      look_at_newcomers();
      look_at_holder();
      look_at_shell();
      look_at_process();
      look_at_time();
    }
    return *exit_;
  }

 private:
  void wait() {
    std::vector<pollfd> items{{interrupts_.handle(), POLLIN, 0}};
    entrance_->add_to(items);
    for (const TaskConnection& newcomer : newcomers_) items.push_back({newcomer.descriptor(), POLLIN, 0});
    if (holder_) items.push_back({holder_->descriptor(), POLLIN, 0});
    if (shell_) items.push_back({shell_->descriptor(), POLLIN, 0});
    if (process_) items.push_back({process_->handle.descriptor(), POLLIN, 0});
    if (output_.open()) items.push_back({output_.get(), POLLIN, 0});
    ready_before(clock_.now() + kAwakeAtLeastEvery, items);
  }

  // A connection is the coordinator's or a shell's, as its first message says.
  void look_at_newcomers() {
    std::vector<TaskConnection> silent;
    for (TaskConnection& newcomer : newcomers_) {
      Result<std::optional<TaskMessage>> message = newcomer.receive();
      if (!message.ok()) continue;
      if (!*message) {
        silent.push_back(std::move(newcomer));
      } else if ((*message)->kind == Kind::kHold && !holder_) {
        const HoldOrder order = HoldOrder::parse((*message)->bytes);
        const HostReport report = this_host(order.with_gpus, order.towards);
        if (newcomer.send({Kind::kReport, to_json_line(report)}, clock_.now() + kSendTimeout).ok()) {
          holder_ = std::move(newcomer);
        }
      } else if ((*message)->kind == Kind::kCommand && holder_) {
        begin(std::move(newcomer), (*message)->bytes);
        sodium_memzero((*message)->bytes.data(), (*message)->bytes.size());
      }
    }
    newcomers_ = std::move(silent);
  }

  void look_at_holder() {
    if (!holder_) return;
    const Result<std::optional<TaskMessage>> message = holder_->receive();
    if (message.ok() && !*message) return;
    const bool is_over = message.ok() && (*message)->kind == Kind::kRelease;
    if (!is_over) say("the process with rank 0 has ended or is out of reach, and the run was not over");
    exit_ = static_cast<int>(is_over ? ExitCode::kSuccess : ExitCode::kProcessLost);
  }

  void look_at_shell() {
    while (shell_) {
      const Result<std::optional<TaskMessage>> message = shell_->receive();
      if (message.ok() && !*message) return;
      if (!message.ok()) {
        end_process();
        shell_.reset();
      } else if ((*message)->kind == Kind::kSignal) {
        signal_process((*message)->bytes);
      }
    }
  }

  void signal_process(std::string_view number) const {
    for (const int allowed : {SIGKILL, SIGSTOP, SIGCONT}) {
      if (process_ && parse_number<int>(number) == allowed) kill(process_->pid, allowed);
    }
  }

  void begin(TaskConnection shell, std::string_view bytes) {
    // The shell of the process before this one may have been killed only now.
    look_at_shell();
    const Result<TaskCommand> command = parse_task_command(bytes);
    if (process_ || !command.ok()) {
      finish(shell, static_cast<int>(ExitCode::kInternal),
             command.ok() ? "has a process already" : command.status().message());
      return;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return finish(shell, static_cast<int>(ExitCode::kOutput), "cannot make a pipe");
    FileDescriptor read_end(ends[0]), write_end(ends[1]);
    std::vector<std::string> words{command->on_gpu ? gpu_program_of(options_.program) : options_.program};
    words.insert(words.end(), command->arguments.begin(), command->arguments.end());
    Result<StartedChild> child = start_child(words, command->environment, "the process",
                                             fmt::format("/proc/self/fd/{}", write_end.get()), command->input.view());
    if (!child.ok()) return finish(shell, static_cast<int>(exit_code_of(child.status())), child.status().message());
    child->input = FileDescriptor();
    fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    process_ = std::move(*child);
    output_ = std::move(read_end);
    shell_ = std::move(shell);
  }

  void finish(TaskConnection& shell, int exit_code, const std::string& message) {
    const TimePoint deadline = clock_.now() + kSendTimeout;
    (void)shell.send({Kind::kOutput, message + "\n"}, deadline);
    (void)shell.send({Kind::kEnd, std::to_string(exit_code)}, deadline);
  }

  void look_at_process() {
    if (!process_) return;
    int status = 0;
    const bool has_ended = waitpid(process_->pid, &status, WNOHANG) == process_->pid;
    pass_output_on();
    if (!has_ended) return;
    const int code = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
    if (shell_) (void)shell_->send({Kind::kEnd, std::to_string(code)}, clock_.now() + kSendTimeout);
    process_.reset();
    output_ = FileDescriptor();
    shell_.reset();
  }

  void pass_output_on() {
    std::array<char, 8192> bytes;
    while (output_.open()) {
      const ssize_t count = read(output_.get(), bytes.data(), bytes.size());
      if (count < 0) return;
      if (count == 0) {
        output_ = FileDescriptor();
      } else if (shell_) {
        (void)shell_->send({Kind::kOutput, std::string(bytes.data(), static_cast<std::size_t>(count))},
                           clock_.now() + kSendTimeout);
      }
    }
  }

  void end_process() {
    if (!process_) return;
    end_child(*process_);
    reap(*process_);
    process_.reset();
    output_ = FileDescriptor();
  }

  void look_at_time() {
    const TimePoint now = clock_.now();
    if ((interrupts_.take() || getppid() != parent_) && !asked_to_end_) {
      asked_to_end_ = now;
      if (!holder_) exit_ = static_cast<int>(ExitCode::kInterrupted);
    }
    if (asked_to_end_ && now - *asked_to_end_ >= kEndsWithin + options_.grace && !exit_) {
      say("the run has not ended in time; this process ends");
      exit_ = kSignalled + SIGTERM;
    }
    if (!holder_ && now >= give_up_ && !exit_) {
      say(fmt::format("the process with rank 0 has not come within {:.3g} s", seconds(options_.patience)));
      exit_ = static_cast<int>(ExitCode::kTimeout);
    }
  }

  void say(const std::string& what) const { say_as(options_.place, what); }

  const TaskServerOptions& options_;
  const SteadyClock clock_;
  const pid_t parent_ = getppid();
  Interrupts interrupts_;
  const std::unique_ptr<TaskEntrance> entrance_;
  TimePoint give_up_;
  std::vector<TaskConnection> newcomers_;
  std::optional<TaskConnection> holder_;  // the coordinator
  std::optional<TaskConnection> shell_;   // stands for process_ on the coordinator's host
  std::optional<StartedChild> process_;
  FileDescriptor output_;  // of process_
  std::optional<TimePoint> asked_to_end_;
  std::optional<int> exit_;
};

}  // namespace

int serve_task(const TaskServerOptions& options) {
  keep_memory_private();
  let_writes_fail();
  Result<Door> door = open_door(options);
  if (!door.ok()) {
    say_as(options.place, printable(door.status().message()));
    return static_cast<int>(exit_code_of(door.status()));
  }
  return TaskServer(options, std::move(*door)).serve();
}

}  // namespace syncopate::experiments
