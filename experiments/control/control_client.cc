#include "experiments/control/control_client.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <zmq.hpp>

#include "common/peak_memory.h"
#include "experiments/control/clock_offset.h"
#include "experiments/control/control_line.h"
#include "experiments/control/progress_watch.h"
#include "experiments/control/wire_records.h"
#include "experiments/exit_code.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr Duration kRecordsEvery = std::chrono::milliseconds(200);
constexpr Duration kWatchdogMargin = std::chrono::seconds(2);

class Client final : public ControlClient {
 public:
  Client(const ControlOptions& options, Activity& activity)
      : activity_(activity),
        role_(options.role),
        rank_(options.rank),
        line_(options.address, control_identity(options.role, options.rank), options.keys) {
    ToCoordinator hello;
    hello.mutable_hello()->set_run_id(options.run_id);
    hello.mutable_hello()->set_pid(getpid());
    hello.mutable_hello()->set_host(host_name());
    line_.post(hello);
    last_heard_ = next_records_ = clock_.now();
    line_.open(
        {.on_message = [this](FromCoordinator& message, const zmq::message_t& weights) { handle(message, weights); },
         .on_tick = [this](TimePoint now) { return tick(now); }});
  }

  ~Client() override { post_records(); }

  Status wait_for_welcome(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    answered_.wait_until(lock, deadline, [&] { return (welcomed_ && clocks_compared_) || stopped_; });
    if (welcomed_ && clocks_compared_) return Status();
    if (stopped_) return Status(Code::kCancelled, "told to stop");
    return Status(Code::kDeadlineExceeded, "the coordinator does not answer");
  }

  const std::string& config_toml() const override { return config_toml_; }
  const std::string& checkpoints() const override { return checkpoints_; }

  void set_timeout(Duration timeout, Duration stall_warning) override {
    {
      const std::lock_guard lock(mutex_);
      timeout_ = timeout;
      stall_warning_ = stall_warning;
    }
    line_.wake();
  }

  void on_stop(std::function<void()> callback) override {
    const std::lock_guard callbacks(callback_mutex_);
    stop_callback_ = std::move(callback);
    if (stop_called_ && stop_callback_) stop_callback_();
  }

  void on_worker_lost(std::function<void(int)> callback) override {
    const std::lock_guard callbacks(callback_mutex_);
    worker_lost_callback_ = std::move(callback);
    if (!worker_lost_callback_) return;
    for (int rank : lost_workers_) worker_lost_callback_(rank);
  }

  Result<Generation> join_generation(std::int64_t after, TimePoint deadline) override {
    ToCoordinator request;
    request.mutable_join_request()->set_after(after);
    std::unique_lock lock(mutex_);
    const auto is_there = [&] { return newest_ && newest_->number > after && takes_part(*newest_, role_, rank_); };
    if (!is_there()) line_.post(request);
    answered_.wait_until(lock, deadline, [&] { return stopped_ || is_there(); });
    if (stopped_) return Status(Code::kCancelled, "told to stop");
    if (!is_there()) return Status(Code::kDeadlineExceeded, fmt::format("no generation after {}", after));
    joined_ = newest_->number;
    return *newest_;
  }

  void on_regroup(std::function<void()> callback) override {
    const std::lock_guard callbacks(callback_mutex_);
    regroup_callback_ = std::move(callback);
    if (regroup_callback_ && superseded()) regroup_callback_();
  }

  void report_trouble(const Status& status) override {
    ToCoordinator message;
    control::Trouble& trouble = *message.mutable_trouble();
    {
      const std::lock_guard lock(mutex_);
      trouble.set_generation(joined_);
    }
    *trouble.mutable_failure() = failure_of(status);
    line_.post(message);
  }

  void report_missing(int rank, Duration waited) override {
    ToCoordinator message;
    control::MissingWorker& missing = *message.mutable_missing_worker();
    {
      const std::lock_guard lock(mutex_);
      missing.set_generation(joined_);
    }
    missing.set_rank(rank);
    missing.set_waited(waited.count());
    line_.post(message);
  }

  void on_checkpoint_order(std::function<void(std::int64_t, std::int64_t)> callback) override {
    const std::lock_guard callbacks(callback_mutex_);
    checkpoint_callback_ = std::move(callback);
  }

  void report_checkpoint(const std::string& writer, const CheckpointReport& report) override {
    ToCoordinator message;
    *message.mutable_checkpoint_report() = to_wire(writer, report);
    line_.post(message);
  }

  void on_heartbeat(std::function<allreduce::CollectiveState()> state) override {
    const std::lock_guard callbacks(callback_mutex_);
    collective_state_ = std::move(state);
  }

  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    ToCoordinator message;
    control::Publish& publish = *message.mutable_publish();
    publish.set_group(group);
    publish.set_rank(rank);
    publish.set_size(size);
    publish.set_value(value);
    Result<FromCoordinator> answer = ask(message, "group " + group, deadline, Scope::kGeneration);
    if (!answer.ok()) return answer.status();
    return std::vector<std::string>(answer->members().values().begin(), answer->members().values().end());
  }

  bool is_off() const override {
    const std::lock_guard lock(mutex_);
    return stopped_ || is_superseded();
  }

  Result<EpochDecision> ask_epoch(std::int64_t epoch, TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_epoch_question()->set_epoch(epoch);
    Result<FromCoordinator> answer = ask(message, epoch_key(epoch), deadline, Scope::kGeneration);
    if (!answer.ok()) return answer.status();
    return EpochDecision{answer->epoch_answer().go_on(), answer->epoch_answer().snapshot()};
  }

  Status ask_leave(TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_leave_question();
    return ask(message, "leave", deadline, Scope::kGeneration).status();
  }

  Result<bool> ask_finish(TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_finish_question();
    Result<FromCoordinator> answer = ask(message, "finish", deadline, Scope::kRun);
    if (!answer.ok()) return answer.status();
    return answer->finish_answer().send_weights();
  }

  const std::vector<std::int64_t>& announced_steps() const override { return announced_steps_; }

  Status announce_step(std::int64_t step, TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_step_announcement()->set_step(step);
    post_records();  // of a process that is killed now, all steps are known
    return ask(message, fmt::format("step {}", step), deadline, Scope::kGeneration).status();
  }

  std::shared_ptr<const LinkCut> link_cut() const override { return link_cut_; }

  void add(const StepRecord& record) override {
    const std::lock_guard lock(mutex_);
    *records_.mutable_steps()->add_steps() = to_wire(record);
  }

  void send_local_state(std::int64_t epoch, std::span<const float> state) override {
    ToCoordinator message;
    message.mutable_local_state()->set_epoch(epoch);
    message.mutable_local_state()->mutable_values()->Add(state.begin(), state.end());
    line_.post(message);
  }

  void send_snapshot(const WeightsSnapshot& stamp, std::span<const float> weights) override {
    ToCoordinator message;
    *message.mutable_snapshot() = to_wire(stamp);
    line_.post(message, zmq::message_t(weights.data(), weights.size_bytes()));
  }

  Result<WeightsSnapshot> next_snapshot() override {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [&] { return stopped_ || !snapshots_.empty(); });
    if (snapshots_.empty()) return Status(Code::kCancelled, "no more snapshots");
    WeightsSnapshot snapshot = std::move(snapshots_.front());
    snapshots_.pop_front();
    return snapshot;
  }

  void send_evaluation(const WeightsSnapshot& stamp, double accuracy, double loss,
                       const TestFigures& figures) override {
    ToCoordinator message;
    control::Evaluation& evaluation = *message.mutable_evaluation();
    *evaluation.mutable_snapshot() = to_wire({.epoch = stamp.epoch,
                                              .steps_done = stamp.steps_done,
                                              .taken = stamp.taken,
                                              .final = stamp.final,
                                              .weights = {}});
    evaluation.set_accuracy(accuracy);
    evaluation.set_loss(loss);
    if (figures.auc) evaluation.set_auc(*figures.auc);
    if (figures.hit_rate) evaluation.set_hit_rate(*figures.hit_rate);
    if (figures.ndcg) evaluation.set_ndcg(*figures.ndcg);
    line_.post(message);
  }

  void tell(const std::string& name, const std::string& value) override {
    ToCoordinator message;
    message.mutable_fact()->set_name(name);
    message.mutable_fact()->set_value(value);
    line_.post(message);
  }

  void count_dropped(std::int64_t messages) override { dropped_.fetch_add(messages); }

  void finished(std::int64_t updates, std::int64_t pushes, std::int64_t dropped) override {
    ToCoordinator message;
    control::ServerFacts& server = *message.mutable_finished()->mutable_server();
    server.set_updates(updates);
    server.set_pushes(pushes);
    server.set_dropped(dropped + dropped_.load());
    message.mutable_finished()->set_peak_memory(peak_memory_bytes());
    post_records();
    line_.post(message);
  }

  void failed(const Status& status) override {
    if (failed_.exchange(true)) return;
    ToCoordinator message;
    *message.mutable_failure() = failure_of(status);
    post_records();
    line_.post(message);
  }

 private:
  // How long an answer is waited for: as long as this generation, or as the run.
  enum class Scope { kGeneration, kRun };

  static std::string epoch_key(std::int64_t epoch) { return fmt::format("epoch {}", epoch); }

  control::Failure failure_of(const Status& status) const {
    control::Failure failure;
    failure.set_code(static_cast<int>(status.code()));
    failure.set_message(status.message());
    failure.set_operation(activity_.operation());
    failure.set_step(activity_.step());
    return failure;
  }

  bool superseded() {
    const std::lock_guard lock(mutex_);
    return is_superseded();
  }
  // With mutex_.
  bool is_superseded() const { return newest_ && newest_->number > joined_; }

  static std::string host_name() {
    char name[256] = {};
    gethostname(name, sizeof(name) - 1);
    return name;
  }

  void post_records() {
    ToCoordinator records;
    {
      const std::lock_guard lock(mutex_);
      records.Swap(&records_);
    }
    if (records.steps().steps_size() > 0) line_.post(records);
  }

  Result<FromCoordinator> ask(const ToCoordinator& question, const std::string& key, TimePoint deadline, Scope scope) {
    line_.post(question);
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return stopped_ || (scope == Scope::kGeneration && is_superseded()); };
    answered_.wait_until(lock, deadline, [&] { return is_over() || answers_.contains(key); });
    const auto found = answers_.find(key);
    if (found != answers_.end()) return found->second;  // and kept: several threads may ask for one group
    if (is_over()) return Status(Code::kCancelled, stopped_ ? "told to stop" : "the run goes on in a new generation");
    return Status(Code::kDeadlineExceeded, fmt::format("waiting for {}: not everybody is there", key));
  }

  // The control thread.

  TimePoint tick(TimePoint now) {
    const Duration beat_every = beat_interval();
    if (!last_beat_ || now - *last_beat_ >= beat_every) {
      beat();
      last_beat_ = now;
      if (compares_clocks_) ask_time();
    }
    if (now >= next_records_) {
      post_records();
      next_records_ = now + kRecordsEvery;
    }
    check_coordinator(now);
    check_own_progress(now);
    return std::min(*last_beat_ + beat_every, next_records_);
  }

  void beat() {
    ToCoordinator message;
    message.mutable_heartbeat()->set_operation(activity_.operation());
    message.mutable_heartbeat()->set_step(activity_.step());
    {
      const std::lock_guard callbacks(callback_mutex_);
      if (collective_state_) *message.mutable_heartbeat()->mutable_collective() = to_wire(collective_state_());
    }
    line_.post(message);
  }

  void ask_time() {
    ToCoordinator message;
    message.mutable_clock_question()->set_sent(clock_.now().time_since_epoch().count());
    line_.post(message);
  }

  // The first questions are asked one upon another, then one with each heartbeat.
  void take_time(const control::ClockAnswer& answer) {
    const auto time = [](std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); };
    offset_.add({.sent = time(answer.sent()),
                 .received = time(answer.received()),
                 .answered = time(answer.answered()),
                 .heard = clock_.now()});
    if (++clock_answers_ < ClockOffset::kExchanges) return ask_time();
    if (const auto estimate = offset_.estimate()) {
      ToCoordinator message;
      message.mutable_clock_report()->set_offset(estimate->offset.count());
      message.mutable_clock_report()->set_uncertainty(estimate->uncertainty.count());
      line_.post(message);
    }
    const std::lock_guard lock(mutex_);
    clocks_compared_ = true;
  }

  void handle(FromCoordinator& message, const zmq::message_t& weights) {
    last_heard_ = clock_.now();
    switch (message.kind_case()) {
      case FromCoordinator::kWelcome: {
        compares_clocks_ = message.welcome().compare_clocks();
        if (compares_clocks_) ask_time();
        const std::lock_guard lock(mutex_);
        config_toml_ = message.welcome().config_toml();
        checkpoints_ = message.welcome().checkpoints();
        announced_steps_.assign(message.welcome().announced_steps().begin(), message.welcome().announced_steps().end());
        clocks_compared_ = !compares_clocks_;
        welcomed_ = true;
        break;
      }
      case FromCoordinator::kClockAnswer:
        take_time(message.clock_answer());
        break;
      case FromCoordinator::kMembers:
        return keep("group " + message.members().group(), message);
      case FromCoordinator::kEpochAnswer:
        return keep(epoch_key(message.epoch_answer().epoch()), message);
      case FromCoordinator::kGeneration:
        return take_generation(from_wire(message.generation()));
      case FromCoordinator::kStepAnswer:
        return keep(fmt::format("step {}", message.step_answer().step()), message);
      case FromCoordinator::kCutLinks:
        spdlog::info("links are cut for {:.3g} s", seconds(Duration(message.cut_links().length())));
        return link_cut_->cut_until(clock_.now() + Duration(message.cut_links().length()));
      case FromCoordinator::kLeaveAnswer:
        return keep("leave", message);
      case FromCoordinator::kFinishAnswer:
        return keep("finish", message);
      case FromCoordinator::kWorkerLost: {
        const std::lock_guard callbacks(callback_mutex_);
        lost_workers_.push_back(message.worker_lost().rank());
        if (worker_lost_callback_) worker_lost_callback_(message.worker_lost().rank());
        return;
      }
      case FromCoordinator::kSnapshot: {
        WeightsSnapshot snapshot = from_wire(message.snapshot());
        snapshot.weights.resize(weights.size() / sizeof(float));
        if (weights.size() > 0) {
          std::memcpy(snapshot.weights.data(), weights.data(), snapshot.weights.size() * sizeof(float));
        }
        const std::lock_guard lock(mutex_);
        snapshots_.push_back(std::move(snapshot));
        break;
      }
      case FromCoordinator::kCheckpointOrder: {
        const control::CheckpointOrder& order = message.checkpoint_order();
        const std::lock_guard callbacks(callback_mutex_);
        if (checkpoint_callback_) checkpoint_callback_(order.generation(), order.step());
        return;
      }
      case FromCoordinator::kStop:
        if (!message.stop().reason().empty()) spdlog::info("told to stop: {}", message.stop().reason());
        return stop_work();
      case FromCoordinator::kAlive:
      case FromCoordinator::KIND_NOT_SET:
        return;
    }
    answered_.notify_all();
  }

  // What was lost and answered before it belongs to an earlier one; whoever sees the new one must not see that any
  // more.
  void take_generation(const Generation& generation) {
    const std::lock_guard callbacks(callback_mutex_);
    lost_workers_.clear();
    {
      const std::lock_guard lock(mutex_);
      if (newest_ && newest_->number >= generation.number) return;
      newest_ = generation;
      answers_.clear();
    }
    answered_.notify_all();
    if (regroup_callback_ && superseded()) regroup_callback_();
  }

  void keep(const std::string& key, FromCoordinator& message) {
    {
      const std::lock_guard lock(mutex_);
      answers_[key].Swap(&message);
    }
    answered_.notify_all();
  }

  void stop_work() {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      stopped_ = true;
    }
    answered_.notify_all();
    const std::lock_guard callbacks(callback_mutex_);
    stop_called_ = true;
    if (stop_callback_) stop_callback_();
  }

  void check_coordinator(TimePoint now) {
    const Duration silence = now - last_heard_;
    if (silence < timeout() || std::exchange(coordinator_is_silent_, true)) return;
    spdlog::error("nothing heard from the coordinator for {:.1f} s: stopping", seconds(silence));
    stop_work();
  }

  // Ends the process where a wait that cannot be interrupted (inside MPI, say) has passed its deadline.
  void check_own_progress(TimePoint now) {
    const std::optional<Duration> still =
        progress_.stands_still_for(activity_.changes(), activity_.may_last(), timeout(), now);
    if (!still) return;
    failed(Status(Code::kDeadlineExceeded, fmt::format("no progress for {:.0f} s", seconds(*still))));
    line_.flush_and_close();
    _exit(static_cast<int>(ExitCode::kTimeout));
  }

  Duration beat_interval() {
    const std::lock_guard lock(mutex_);
    return heartbeat_interval(timeout_, stall_warning_);
  }
  Duration timeout() {
    const std::lock_guard lock(mutex_);
    return timeout_;
  }

  Activity& activity_;
  const Role role_;
  const int rank_;
  SteadyClock clock_;
  const std::shared_ptr<LinkCut> link_cut_ = std::make_shared<LinkCut>();

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable answered_;
  ToCoordinator records_;
  std::map<std::string, FromCoordinator> answers_;
  std::deque<WeightsSnapshot> snapshots_;
  std::optional<Generation> newest_;  // that is known
  std::int64_t joined_ = -1;
  std::string config_toml_;
  std::string checkpoints_;
  std::vector<std::int64_t> announced_steps_;
  Duration timeout_ = std::chrono::seconds(30);
  Duration stall_warning_{};
  bool welcomed_ = false;
  bool clocks_compared_ = false;  // as far as is asked for
  bool stopped_ = false;

  std::mutex callback_mutex_;  // of what follows; held while a callback runs
  std::function<void()> stop_callback_;
  std::function<void(int)> worker_lost_callback_;
  std::function<void()> regroup_callback_;
  std::function<void(std::int64_t, std::int64_t)> checkpoint_callback_;
  std::function<allreduce::CollectiveState()> collective_state_;
  std::vector<int> lost_workers_;
  bool stop_called_ = false;

  // Of the control thread alone.
  std::optional<TimePoint> last_beat_;
  TimePoint next_records_{};
  TimePoint last_heard_{};
  bool coordinator_is_silent_ = false;
  bool compares_clocks_ = false;
  ClockOffset offset_;  // of the coordinator's clock
  std::size_t clock_answers_ = 0;
  ProgressWatch progress_{kWatchdogMargin, clock_.now()};

  std::atomic<bool> failed_ = false;
  std::atomic<std::int64_t> dropped_ = 0;

  ControlLine line_;  // last: its thread uses all of the above, and ends first
};

}  // namespace

Duration heartbeat_interval(Duration timeout, Duration stall_warning) {
  const Duration interval = std::min<Duration>(std::chrono::seconds(1), timeout / 10);
  return stall_warning > Duration::zero() ? std::min(interval, stall_warning / 5) : interval;
}

Result<std::unique_ptr<ControlClient>> ControlClient::connect(const ControlOptions& options, Activity& activity,
                                                              TimePoint deadline) {
  try {
    auto client = std::make_unique<Client>(options, activity);
    SYNCOPATE_RETURN_IF_ERROR(client->wait_for_welcome(deadline));
    return std::unique_ptr<ControlClient>(std::move(client));
  } catch (const zmq::error_t& error) {
    return Status(Code::kInternal,
                  fmt::format("connecting to the coordinator at {}: {}", options.address, error.what()));
  }
}

}  // namespace syncopate::experiments
