#include "experiments/cluster/coordinator/host_runtime.h"

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "common/os/exhaustion.h"
#include "common/os/resource_limits.h"
#include "experiments/cluster/coordinator/process_table.h"

namespace syncopate::experiments {
namespace {

std::chrono::milliseconds rounded_up(Duration duration) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::max(duration, Duration::zero()));
}

class HostRuntime final : public ClusterRuntime {
 public:
  HostRuntime(const JobPlan& plan, HostRuntimeOptions options, Launcher& launcher, Interrupts& interrupts)
      : plan_(plan),
        options_(std::move(options)),
        launcher_(launcher),
        interrupts_(interrupts),
        control_(plan, options_.listen) {}

  Threads& threads() override { return os_threads(); }
  ControlServer& control() override { return control_; }

  Status start() override {
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<StartedChild> children, launcher_.start(plan_, launch_options()));
    processes_.emplace(plan_.processes.size(), std::move(children));
    return {};
  }

  Status start_again(std::size_t process) override {
    SYNCOPATE_ASSIGN_OR_RETURN(StartedChild child, launcher_.start_again(plan_, launch_options(), process,
                                                                         control_.begin_incarnation(process)));
    processes_->add(std::move(child));
    return {};
  }

  std::optional<pid_t> check_hello(std::size_t process, pid_t pid) override {
    const bool is_carried_here = processes_->is_carried(process) && !plan_.processes[process].remote;
    if (is_carried_here && !processes_->watch_carried(process, pid)) return std::nullopt;
    return processes_->pid_of_child(process).value_or(pid);
  }

  bool empty() const override { return !processes_ || processes_->empty(); }
  std::vector<EndedChild> take_ended() override { return processes_->take_ended(); }
  std::vector<std::size_t> carried() const override { return processes_->carried(); }
  void kill_process(std::size_t process) override { processes_->kill_process(process); }
  std::optional<pid_t> signal_process(std::size_t process, int signal) override {
    return processes_->signal_process(process, signal);
  }
  void kill_all() override { processes_->kill_children(); }

  void wait_for_news(Duration at_most) override {
    zmq::pollitem_t items[] = {control_.incoming(),
                               {nullptr, interrupts_.handle(), ZMQ_POLLIN, 0},
                               {nullptr, processes_->handle(), ZMQ_POLLIN, 0}};
    zmq::poll(items, std::size(items), rounded_up(at_most));
  }
  void wait_for_message(Duration at_most) override {
    zmq::pollitem_t item = control_.incoming();
    zmq::poll(&item, 1, rounded_up(at_most));
  }
  std::optional<int> take_interrupt() override { return interrupts_.take(); }

  // Connections that were rejected, say, may use up all descriptors that there can be.
  std::string take_shortage() override {
    if (descriptors_ran_out_ || has_free_descriptor()) return {};
    descriptors_ran_out_ = true;
    return fmt::format("run_experiment has no file descriptor left: connections hold them{}", limit_behind(EMFILE));
  }

 private:
  LaunchOptions launch_options() {
    return {.program = options_.program,
            .rendezvous = control_.address(),
            .log_directory = options_.log_directory,
            .secret = SecretText(options_.listen.keys.to_text().view(), "\n")};
  }

  const JobPlan& plan_;
  const HostRuntimeOptions options_;
  Launcher& launcher_;
  Interrupts& interrupts_;
  ZmqControlServer control_;
  std::optional<ProcessTable> processes_;  // set once they have been started
  bool descriptors_ran_out_ = false;
};

}  // namespace

Result<std::unique_ptr<ClusterRuntime>> make_host_runtime(const JobPlan& plan, HostRuntimeOptions options,
                                                          Launcher& launcher, Interrupts& interrupts) {
  std::unique_ptr<ClusterRuntime> runtime;
  const Status status =
      caught([&] { runtime = std::make_unique<HostRuntime>(plan, std::move(options), launcher, interrupts); });
  if (!status.ok()) return status.in("run_experiment itself");
  return runtime;
}

}  // namespace syncopate::experiments
