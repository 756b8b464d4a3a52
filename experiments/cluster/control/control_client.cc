#include "experiments/cluster/control/control_client.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>
#include <zmq.hpp>

#include "common/os/process_memory.h"
#include "experiments/cluster/control/control_channel.h"
#include "experiments/cluster/control/control_thread.h"
#include "experiments/cluster/control/trace_records.h"
#include "experiments/cluster/control/wire_records.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

// Converts the process's calls to messages, and waits where necessary. The control thread does the rest.
class Client final : public ControlClient {
 public:
  Client(const ControlOptions& options, Activity& activity)
      : activity_(activity),
        channel_(options.self.role, options.self.rank, patience_, options.threads),
        thread_(options.make_line, options.run_id, options.threads, activity, channel_, *patience_, *link_faults_) {}

  ~Client() override { channel_.post_records(); }

  Status wait_for_welcome(TimePoint deadline) {
    SYNCOPATE_ASSIGN_OR_RETURN(control::Welcome welcome, channel_.wait_for_welcome(deadline));
    config_toml_ = welcome.config_toml();
    checkpoints_ = welcome.checkpoints();
    checkpoint_terms_ = {.digests = welcome.checkpoint_digests() ? Digests::kYes : Digests::kNo,
                         .resumed = welcome.resumed_checkpoint(),
                         .resumed_digest = welcome.resumed_digest(),
                         .last_step = welcome.last_step()};
    announced_steps_.assign(welcome.announced_steps().begin(), welcome.announced_steps().end());
    return {};
  }

  const std::string& config_toml() const override { return config_toml_; }
  const std::string& checkpoints() const override { return checkpoints_; }
  const CheckpointTerms& checkpoint_terms() const override { return checkpoint_terms_; }
  const std::vector<std::int64_t>& announced_steps() const override { return announced_steps_; }
  std::shared_ptr<Patience> patience() const override { return patience_; }
  std::shared_ptr<const LinkFaults> link_faults() const override { return link_faults_; }

  void set_timeout(Duration timeout, Duration stall_warning) override { thread_.set_timeout(timeout, stall_warning); }

  Subscription on_stop(std::function<void()> callback) override { return channel_.on_stop(std::move(callback)); }
  Subscription on_worker_lost(std::function<void(int)> callback) override {
    return channel_.on_worker_lost(std::move(callback));
  }
  Subscription on_regroup(std::function<void()> callback) override { return channel_.on_regroup(std::move(callback)); }
  Subscription on_checkpoint_order(std::function<void(std::int64_t, std::int64_t)> callback) override {
    return channel_.on_checkpoint_order(std::move(callback));
  }
  Subscription on_heartbeat(std::function<allreduce::CollectiveState()> state) override {
    return channel_.on_heartbeat(std::move(state));
  }

  // Questions.

  Result<MembershipEpoch> join_membership(std::int64_t after, TimePoint deadline) override {
    ToCoordinator request;
    request.mutable_join_request()->set_after(after);
    if (!channel_.knows_membership(after)) channel_.post(std::move(request));
    return channel_.join(after, deadline);
  }

  Result<std::vector<std::string>> exchange(const std::string& group, int rank, int size, const std::string& value,
                                            TimePoint deadline) override {
    ToCoordinator message;
    control::Publish& publish = *message.mutable_publish();
    publish.set_group(group);
    publish.set_rank(rank);
    publish.set_size(size);
    publish.set_value(value);
    SYNCOPATE_ASSIGN_OR_RETURN(FromCoordinator answer, ask(message, deadline));
    if (answer.members().values_size() != size) {
      return Status::data_loss(
          fmt::format("{} members of {}, which has {}", answer.members().values_size(), group, size));
    }
    return std::vector<std::string>(answer.members().values().begin(), answer.members().values().end());
  }

  bool is_off() const override { return channel_.is_off(); }

  Result<EpochDecision> ask_epoch(std::int64_t epoch, TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_epoch_question()->set_epoch(epoch);
    SYNCOPATE_ASSIGN_OR_RETURN(FromCoordinator answer, ask(message, deadline));
    return EpochDecision{answer.epoch_answer().go_on(), Duration(answer.epoch_answer().elapsed())};
  }

  void request_batches(const BatchRequest& request) override {
    ToCoordinator message;
    control::BatchRequest& wire = *message.mutable_batch_request();
    wire.set_membership_epoch(channel_.joined());
    wire.set_number(++batch_requests_);
    wire.set_wanted(request.wanted);
    wire.set_anew(request.anew);
    wire.mutable_held()->Add(request.held.begin(), request.held.end());
    if (request.anew) channel_.post_records();  // so that batches that have been trained are not given to others
    channel_.post(std::move(message));
  }

  Result<std::optional<BatchRange>> take_batches(std::optional<TimePoint> deadline) override {
    ToCoordinator question;
    question.mutable_batch_request()->set_number(batch_requests_);
    std::optional<FromCoordinator> answer = channel_.take(question);
    if (!answer && deadline) {
      SYNCOPATE_ASSIGN_OR_RETURN(FromCoordinator awaited, channel_.wait_for(question, *deadline));
      channel_.take(question);  // the answer is discarded
      answer = std::move(awaited);
    }
    if (!answer) return std::optional<BatchRange>();
    return std::optional(BatchRange{answer->batch_lease().begin(), answer->batch_lease().end()});
  }

  Status ask_leave(TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_leave_question();
    return ask(message, deadline).status();
  }

  Result<bool> ask_finish(TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_finish_question();
    SYNCOPATE_ASSIGN_OR_RETURN(FromCoordinator answer, ask(message, deadline));
    return answer.finish_answer().send_weights();
  }

  void report_not_finite(const worker::NotFinite& what) override {
    ToCoordinator message;
    *message.mutable_not_finite() = to_wire(what);
    channel_.post(std::move(message));
  }

  Result<bool> announce_step(std::int64_t step, TimePoint deadline) override {
    ToCoordinator message;
    message.mutable_step_announcement()->set_step(step);
    channel_.post_records();  // so that all steps are known of a process that is killed now
    SYNCOPATE_ASSIGN_OR_RETURN(const FromCoordinator answer, ask(message, deadline));
    return answer.step_answer().plant_nan();
  }

  bool wants_snapshots() const override { return channel_.wants_snapshots(); }

  Result<WeightsSnapshot> next_snapshot() override { return channel_.next_snapshot(); }

  // Reports.

  void add(const StepRecord& record) override { channel_.add(record); }

  void report_trouble(const Status& status) override {
    ToCoordinator message;
    message.mutable_trouble()->set_membership_epoch(channel_.joined());
    *message.mutable_trouble()->mutable_failure() = to_wire(status, activity_);
    channel_.post(std::move(message));
  }

  void report_missing(int rank, Duration waited) override {
    ToCoordinator message;
    control::MissingWorker& missing = *message.mutable_missing_worker();
    missing.set_membership_epoch(channel_.joined());
    missing.set_rank(rank);
    missing.set_waited(waited.count());
    channel_.post(std::move(message));
  }

  void report_checkpoint(const std::string& writer, const CheckpointReport& report) override {
    ToCoordinator message;
    *message.mutable_checkpoint_report() = to_wire(writer, report);
    channel_.post(std::move(message));
  }

  void send_local_state(std::int64_t point, std::span<const float> state) override {
    ToCoordinator message;
    message.mutable_local_state()->set_point(point);
    message.mutable_local_state()->mutable_values()->Add(state.begin(), state.end());
    channel_.post(std::move(message));
  }

  void send_snapshot(const WeightsSnapshot& stamp, std::span<const float> weights) override {
    ToCoordinator message;
    *message.mutable_snapshot() = to_wire(stamp);
    channel_.post(std::move(message), zmq::message_t(weights.data(), weights.size_bytes()));
  }

  void send_evaluation(const WeightsSnapshot& stamp, const EvaluationScores& scores) override {
    ToCoordinator message;
    *message.mutable_evaluation() = to_wire(stamp, scores);
    channel_.post(std::move(message));
  }

  void tell(const std::string& name, const std::string& value) override {
    ToCoordinator message;
    message.mutable_fact()->set_name(name);
    message.mutable_fact()->set_value(value);
    channel_.post(std::move(message));
  }

  void send_trace(std::span<const TraceEvent> events, std::int64_t dropped) override {
    for (control::Trace& batch : to_wire(events, dropped)) {
      ToCoordinator message;
      *message.mutable_trace() = std::move(batch);
      channel_.post(std::move(message));
    }
  }

  void count_dropped(std::int64_t messages) override { dropped_.fetch_add(messages); }

  void finished(const ServerFigures& figures) override {
    ToCoordinator message;
    ServerFigures all = figures;
    all.dropped += dropped_.load();
    *message.mutable_finished() = to_wire(all);
    message.mutable_finished()->set_peak_memory(peak_memory_bytes());
    channel_.post_records();
    channel_.post(std::move(message));
  }

  void failed(const Status& status) override { channel_.fail(to_wire(status, activity_)); }

 private:
  Result<FromCoordinator> ask(const ToCoordinator& question, TimePoint deadline) {
    channel_.post(question);
    return channel_.wait_for(question, deadline);
  }

  Activity& activity_;
  std::atomic<std::int64_t> dropped_ = 0;
  std::int64_t batch_requests_ = 0;  // used by the thread that trains
  // Facts of the welcome; see ControlClient.
  std::string config_toml_;
  std::string checkpoints_;
  CheckpointTerms checkpoint_terms_;
  std::vector<std::int64_t> announced_steps_;

  const std::shared_ptr<Patience> patience_ = std::make_shared<Patience>();
  const std::shared_ptr<LinkFaults> link_faults_ = std::make_shared<LinkFaults>();
  ControlChannel channel_;
  ControlThread thread_;  // last: it uses all of the above, and ends first
};

}  // namespace

Result<std::unique_ptr<ControlClient>> ControlClient::connect(const ControlOptions& options, Activity& activity,
                                                              TimePoint deadline) {
  try {
    auto client = std::make_unique<Client>(options, activity);
    SYNCOPATE_RETURN_IF_ERROR(client->wait_for_welcome(deadline));
    return std::unique_ptr<ControlClient>(std::move(client));
  } catch (const zmq::error_t& error) {
    return Status::internal(fmt::format("connecting to the coordinator at {}: {}", options.address, error.what()));
  }
}

}  // namespace syncopate::experiments
