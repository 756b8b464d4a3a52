// A run that a test tells RunMonitor about, event by event.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "experiments/cluster/coordinator/run_monitor.h"

namespace syncopate::experiments {

constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr Duration kTimeout = std::chrono::seconds(10);
inline const ProcessEnd kGoodEnd{.exit_code = 0, .signal = {}};
inline const ProcessEnd kFailedEnd{.exit_code = 1, .signal = {}};
inline const ProcessEnd kKilled{.exit_code = {}, .signal = SIGKILL};
inline const Status kPeerIsLost(Code::kPeerLost, "rank 1 is gone");
inline const Status kNobodyAnswers(Code::kDeadlineExceeded, "no answer from shard 0 (server 0) for 10 s");

inline JobPlan plan_of(Mode mode, int workers, int servers, int replicas = 0) {
  ResolvedRun config;
  config.replicas = replicas;
  config.mode = mode;
  config.workers = workers;
  config.servers = servers;
  return make_plan(config, "run-7", "box");
}

// The same plan, whose workers, servers and standbys of odd ranks are on another host, "far".
inline JobPlan with_far_host(JobPlan plan) {
  for (ProcessSpec& process : plan.processes) {
    process.remote = process.rank % 2 == 1;
    if (process.remote) process.host = "far";
  }
  return plan;
}

// A run that a test tells what happens, and whose actions it reads as text: "stop: REASON", "kill worker 0",
// "lost 1", "joined 1", "start worker 1", "membership epoch 2", "release", "report: TEXT".
class WatchedRun {
 public:
  explicit WatchedRun(JobPlan plan, const RunMonitor::Options& options = {.timeout = kTimeout})
      : plan_(std::move(plan)), monitor_(plan_, options, clock_.now()) {}

  RunMonitor& monitor() { return monitor_; }
  TimePoint now() const { return clock_.now(); }
  std::size_t evaluator() const { return plan_.processes.size() - 1; }
  std::size_t worker(int rank) const { return index_of(Role::kWorker, rank); }
  std::size_t server(int rank) const { return index_of(Role::kServer, rank); }
  std::size_t standby(int rank) const { return index_of(Role::kStandby, rank); }

  void hello(std::size_t process) { monitor_.on_hello(process, 100 + static_cast<int>(process), "box", now()); }
  void everybody_says_hello() {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) hello(i);
  }
  void heartbeats_of_all_but(std::optional<std::size_t> silent) {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (i != silent && monitor_.still_there(i)) monitor_.on_heartbeat(i, "training", 7, {}, now());
    }
  }
  void ready(std::size_t process) { monitor_.on_ready_to_train(process, now()); }
  void join(std::size_t process) { monitor_.on_join_request(process, now()); }
  void trouble(std::size_t process, std::int64_t membership) {
    monitor_.on_trouble(process, membership, kNobodyAnswers, "training", 7, now());
  }
  // It has finished a step in this membership epoch.
  void step(std::size_t process) { monitor_.on_step_finished(process, monitor_.membership().number, 7); }
  // Others have waited at server 0 for that worker.
  void miss(int rank, std::int64_t membership = 0) {
    monitor_.on_missing(server(0), membership, rank, kTimeout * 3 / 4, now());
  }
  void finish(std::size_t process) { monitor_.on_finished(process, now()); }
  void fail(std::size_t process, const Status& status) { monitor_.on_failure(process, status, "training", 7, now()); }
  void end(std::size_t process, const ProcessEnd& how) { monitor_.on_end(process, how, now()); }
  void carrier_ends(const ProcessEnd& how) {
    std::vector<std::size_t> carried;
    for (std::size_t i = 0; i < evaluator(); ++i) carried.push_back(i);
    monitor_.on_carrier_end(carried, how, "mpirun", "its last line (mpirun.log)", now());
  }
  // Time passes in ticks of 100 ms; everybody but `silent` is heard meanwhile.
  void pass(Duration time, std::optional<std::size_t> silent = std::nullopt) {
    for (Duration passed{}; passed < time; passed += kTick) {
      clock_.advance(kTick);
      heartbeats_of_all_but(silent);
      monitor_.on_tick(now());
    }
  }

  // The same on a network that has lost a host, of which nobody is heard.
  void pass_without_host(Duration time, const std::string& host) {
    for (Duration passed{}; passed < time; passed += kTick) {
      clock_.advance(kTick);
      for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
        if (plan_.processes[i].host == host || !monitor_.still_there(i)) continue;
        monitor_.on_heartbeat(i, "training", 7, {}, now());
      }
      monitor_.on_tick(now());
    }
  }

  // Time passes in which nothing is heard and nothing judged.
  void let_pass(Duration time) { clock_.advance(time); }

  std::vector<std::string> actions() {
    std::vector<std::string> texts;
    for (const MonitorAction& action : monitor_.take_actions()) {
      texts.push_back(std::visit([this](const auto& one) { return text_of(one); }, action));
    }
    return texts;
  }
  std::optional<ExitCode> verdict() const {
    return monitor_.verdict() ? std::optional(monitor_.verdict()->code) : std::nullopt;
  }
  std::string line() const { return monitor_.verdict() ? monitor_.verdict()->line : "no verdict"; }

 private:
  std::size_t index_of(Role role, int rank) const {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == role && plan_.processes[i].rank == rank) return i;
    }
    ADD_FAILURE() << "no such process";
    return 0;
  }
  std::string text_of(const StopAll& stop) const { return "stop: " + stop.reason; }
  std::string text_of(const KillProcess& kill) const { return "kill " + plan_.processes[kill.process].name(); }
  std::string text_of(const RestartProcess& start) const { return "start " + plan_.processes[start.process].name(); }
  std::string text_of(const DropWorker& drop) const { return fmt::format("lost {}", drop.rank); }
  std::string text_of(const AddWorker& add) const { return fmt::format("joined {}", add.rank); }
  std::string text_of(const ReleaseTraining&) const { return "release"; }
  std::string text_of(const BeginMembershipEpoch&) const {
    return fmt::format("membership {}", monitor_.membership().number);
  }
  std::string text_of(const ReportLine& line) const { return "report: " + line.text; }

  ManualClock clock_;
  const JobPlan plan_;
  RunMonitor monitor_;
};

// Two workers, two servers, an evaluator, all there.
class PsRun : public WatchedRun {
 public:
  explicit PsRun(bool survives, int workers = 2)
      : WatchedRun(plan_of(Mode::kPs, workers, 2), {.recovery = {.survives_workers = survives}, .timeout = kTimeout}) {
    everybody_says_hello();
  }
};

// Whoever is left forms a group anew; and what is lost comes back after two seconds, if `respawns`.
class ElasticRun : public WatchedRun {
 public:
  explicit ElasticRun(bool respawns = false)
      : WatchedRun(
            plan_of(Mode::kAllreduce, 3, 0),
            {.recovery = {.survives_workers = true,
                          .regroups_without_worker = true,
                          .respawn_after = respawns ? std::optional<Duration>(std::chrono::seconds(2)) : std::nullopt},
             .timeout = kTimeout}) {
    everybody_says_hello();
  }
};

// Two workers, one server and its standby.
class ReplicatedRun : public WatchedRun {
 public:
  explicit ReplicatedRun(std::optional<Duration> respawn_after = std::nullopt)
      : WatchedRun(plan_of(Mode::kPs, 2, 1, 1),
                   {.recovery = {.survives_workers = true, .has_standbys = true, .respawn_after = respawn_after},
                    .timeout = kTimeout}) {
    everybody_says_hello();
    for (const int rank : {0, 1}) ready(worker(rank));
    (void)actions();
  }
};

// Two workers and two servers, with standbys if there are `replicas`, that train and have written a checkpoint.
class GoingBackRun : public WatchedRun {
 public:
  explicit GoingBackRun(int replicas = 0, std::optional<Duration> respawn_after = std::nullopt)
      : GoingBackRun(plan_of(Mode::kPs, 2, 2, replicas), replicas, respawn_after) {}
  GoingBackRun(const JobPlan& plan, int replicas, std::optional<Duration> respawn_after)
      : WatchedRun(plan, {.recovery = {.survives_workers = true,
                                       .has_standbys = replicas > 0,
                                       .goes_back = true,
                                       .respawn_after = respawn_after},
                          .timeout = kTimeout}) {
    everybody_says_hello();
    for (const int rank : {0, 1}) ready(worker(rank));
    monitor().on_checkpoint(kCheckpoint);
    (void)actions();
  }
  // It was started again, and is ready.
  void comes_back(std::size_t process) {
    hello(process);
    join(process);
  }

  static constexpr const char* kCheckpoint = "checkpoints/step-000100";
};

class AllreduceRun : public WatchedRun {
 public:
  AllreduceRun() : WatchedRun(plan_of(Mode::kAllreduce, 2, 0)) { everybody_says_hello(); }
};

}  // namespace syncopate::experiments
