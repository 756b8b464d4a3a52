// A run with a real coordinator and processes that do nothing but sleep: what they say, a test says in their names,
// over connections of its own.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "experiments/cluster/coordinator/coordinator.h"
#include "experiments/cluster/coordinator/host_runtime.h"
#include "tests/experiments/cluster/control/peer.h"
#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {

// What the coordinator has told its observer. To be read when the run has ended.
struct NotingObserver final : RunObserver {
  void on_training_begins(TimePoint) override { ++trainings_begun; }
  void on_steps(int worker, std::span<const StepRecord> records) override {
    for (const StepRecord& record : records) {
      steps.emplace_back(worker, record.step);
      ends.push_back(record.end);
    }
  }
  void on_evaluation(const EvaluationResult& result) override { accuracies.push_back(result.accuracy); }
  void on_final_weights(std::span<const float> weights, std::span<const float> local_state,
                        const TableKeys& rows) override {
    final_weights.assign(weights.begin(), weights.end());
    final_local_state.assign(local_state.begin(), local_state.end());
    final_rows = rows;
  }
  void on_worker_lost(int rank) override { lost.push_back(rank); }
  void on_worker_joined(int rank) override { joined.push_back(rank); }
  void on_fact(const std::string& name, const std::string& value) override { facts.emplace_back(name, value); }
  void on_report(const std::string& line) override { reports.push_back(line); }
  Status on_tick(TimePoint) override { return Status(); }

  int trainings_begun = 0;
  std::vector<std::pair<int, std::int64_t>> steps;  // worker and number
  std::vector<TimePoint> ends;                      // of the same steps
  std::vector<double> accuracies;
  std::vector<float> final_weights;
  std::vector<float> final_local_state;
  TableKeys final_rows;
  std::vector<int> lost;
  std::vector<int> joined;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<std::string> reports;
};

// Starts a sleeping child for each process; each can be killed, or made to exit with 0.
class SleepingProcesses final : public Launcher {
 public:
  Result<std::vector<StartedChild>> start(const JobPlan& plan, const LaunchOptions& options) override {
    Result<std::vector<StartedChild>> children = start_all(plan, options.log_directory);
    address_.set_value(options.rendezvous);
    return children;
  }

  // The child has the name of the one before. Once all have been killed it is, too: their run is to end.
  Result<StartedChild> start_again(const JobPlan& plan, const LaunchOptions& options, std::size_t process,
                                   int /*incarnation*/) override {
    const std::lock_guard lock(mutex_);
    unlink((options.log_directory + "/" + log_name_of(plan.processes[process]) + ".pipe").c_str());
    Result<StartedChild> child = start_one(plan, options.log_directory, process);
    if (all_killed_) {
      send_to(children_[plan.processes[process].name()], SIGKILL);
    } else {
      started_again_.set_value(name_of(plan.processes[process].role) + std::to_string(plan.processes[process].rank));
    }
    return child;
  }
  // What has been started again, "worker1": once a run.
  std::string started_again() { return started_again_.get_future().get(); }

  // Once all have been started.
  std::string address() { return address_.get_future().get(); }
  void kill(const std::string& name) { send(name, SIGKILL); }
  void kill_all() {
    const std::lock_guard lock(mutex_);
    all_killed_ = true;
    for (const auto& [name, child] : children_) send_to(child, SIGKILL);
  }
  // Makes it exit with 0, and returns when the coordinator knows: it has waited for it.
  void exit_and_wait(const std::string& name) {
    FileDescriptor(open(children_[name].pipe.c_str(), O_WRONLY | O_CLOEXEC));
    const TimePoint deadline = SteadyClock().now() + Peer::kDeadline;
    while (send(name, 0)) {
      if (SteadyClock().now() > deadline) FAIL() << name << " does not exit";
      std::this_thread::yield();
    }
  }

 private:
  struct Child {
    FileDescriptor handle;
    std::string pipe;
  };

  Result<std::vector<StartedChild>> start_all(const JobPlan& plan, const std::string& folder) {
    const std::lock_guard lock(mutex_);
    std::vector<StartedChild> children;
    for (std::size_t i = 0; i < plan.processes.size(); ++i) {
      Result<StartedChild> child = start_one(plan, folder, i);
      if (!child.ok()) return child.status();
      children.push_back(std::move(*child));
    }
    return children;
  }

  // With mutex_.
  Result<StartedChild> start_one(const JobPlan& plan, const std::string& folder, std::size_t i) {
    const std::string name = plan.processes[i].name(), log = folder + "/" + log_name_of(plan.processes[i]);
    const std::string pipe = log + ".pipe";  // it reads until somebody has opened that for writing and closed it again
    if (mkfifo(pipe.c_str(), 0600) != 0) return Status::internal("mkfifo " + pipe);
    Result<StartedChild> child = start_child({"cat", pipe}, {}, name, log);
    if (!child.ok()) return child;
    child->process = i;
    children_[name] = {FileDescriptor(fcntl(child->handle.descriptor(), F_DUPFD_CLOEXEC, 0)), pipe};
    return child;
  }

  // False once there is no such process.
  bool send(const std::string& name, int signal) {
    const std::lock_guard lock(mutex_);
    return send_to(children_[name], signal);
  }
  static bool send_to(const Child& child, int signal) {
    return syscall(SYS_pidfd_send_signal, child.handle.get(), signal, nullptr, 0) == 0;
  }

  std::promise<std::string> address_, started_again_;
  std::mutex mutex_;                       // of what follows
  std::map<std::string, Child> children_;  // by name
  bool all_killed_ = false;
};

class CoordinatedRun {
 public:
  // The model keeps `local_state_size` values beside its weights.
  explicit CoordinatedRun(const RunRequest& config, bool workers_are_elsewhere = false,
                          std::size_t local_state_size = 0)
      : config_(resolved(config)),
        plan_(make_plan(config_, "run-7",
                        {.coordinator = "box",
                         .hosts = {{.name = workers_are_elsewhere ? "node1" : "box",
                                    .slots = config_.workers,
                                    .remote = workers_are_elsewhere}}})),
        thread_([this, local_state_size] {
          const Result<std::unique_ptr<ClusterRuntime>> runtime =
              make_host_runtime(plan_, {.program = {}, .log_directory = folder_.path(), .listen = {.keys = keys_}},
                                processes_, interrupts_);
          outcome_.emplace(coordinate(config_, plan_,
                                      {.last_words_time = Peer::kDeadline, .local_state_size = local_state_size},
                                      **runtime, observer_));
        }),
        address_(processes_.address()) {}
  ~CoordinatedRun() { end(); }

  // A new connection of this process's.
  std::unique_ptr<Peer> connect(Role role, int rank, int incarnation = 0) {
    return std::make_unique<Peer>(address_, keys_, ProcessIdentity{role, rank, incarnation});
  }
  // The connection of a process that has been welcomed.
  Peer& process(Role role, int rank) {
    std::unique_ptr<Peer>& peer = peers_[{role, rank}];
    if (peer) return *peer;
    peer = connect(role, rank);
    peer->say_hello(plan_.run_id);
    EXPECT_TRUE(peer->hear().first.has_welcome());
    return *peer;
  }
  Peer& worker(int rank) { return process(Role::kWorker, rank); }
  Peer& server(int rank) { return process(Role::kServer, rank); }
  Peer& evaluator() { return process(Role::kEvaluator, 0); }

  SleepingProcesses& processes() { return processes_; }

  // Kills what is left, and waits for the coordinator.
  const RunOutcome& end() {
    processes_.kill_all();
    if (thread_.joinable()) thread_.join();
    EXPECT_TRUE(outcome_->ok()) << outcome_->status().message();
    return **outcome_;
  }
  // To be read after end().
  const NotingObserver& observer() const { return observer_; }

 private:
  testing_support::TemporaryFolder folder_;
  const RunKeys keys_ = *RunKeys::make();
  const ResolvedRun config_;
  const JobPlan plan_;
  SleepingProcesses processes_;
  NotingObserver observer_;
  Interrupts interrupts_;
  std::optional<Result<RunOutcome>> outcome_;  // of the thread, until it has ended
  std::jthread thread_;
  const std::string address_;
  std::map<std::pair<Role, int>, std::unique_ptr<Peer>> peers_;
};

}  // namespace syncopate::experiments
