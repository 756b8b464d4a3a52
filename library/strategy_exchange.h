// StrategyExchange: Syncopate's own way of training, a SyncStrategy: gradients in, next weights out. The model's
// weights live in the strategy's arena. Under allreduce each rank makes the update, or that of its part of the weights;
// under parameter servers they do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allreduce/collective/collective_activity.h"
#include "common/param_layout.h"
#include "library/gradient_exchange.h"
#include "library/gradient_release.h"
#include "library/training_options.h"
#include "library/weight_watch.h"

namespace syncopate::ps {
class PsStrategy;
}

namespace syncopate::library {

// A parameter server that this rank has started (Group::servers_to_start).
struct StartedServer {
  int number = 0;
  int pid = 0;
};

// What the optimizer remembers (state_floats of its kind), each by tensor, as many floats as the tensor has.
using TensorMemories = std::vector<std::vector<std::span<float>>>;

class StrategyExchange final : public GradientExchange {
 public:
  // An operation of all ranks, and of the servers, if there are any: these take part in it with the same name and
  // options (server.h). `started` are those that this rank has started.
  static Result<std::unique_ptr<StrategyExchange>> connect(std::shared_ptr<Group> group, const std::string& name,
                                                           const ParamLayout& layout, const TrainingOptions& options,
                                                           const std::vector<StartedServer>& started);
  ~StrategyExchange() override;

  // Where the weights of `tensor` lie. Before join, rank 0 puts the initial ones there.
  std::span<float> weights(std::size_t tensor) const;
  // Where its gradient belongs. It is free from begin_step until gradient_in_place, and again after finish_step.
  std::span<float> gradients(std::size_t tensor) const;
  // Whether one optimizer makes the updates, which restore() and save() know. Fails with invalid argument where each
  // rank has one of its own (local-sgd, easgd).
  Status has_one_optimizer() const;
  // Before join, on rank 0, which has put its weights in place: all ranks go on from these and from `memories`, which
  // `updates` (at least 1) have made. Where ranks share the update, on all of them, with the same.
  Status restore(std::int64_t updates, const TensorMemories& memories);
  // An operation of all ranks: returns once all have rank 0's weights, or, where they continue, those of the rank that
  // has finished most steps. Fails with invalid argument, naming a rank, if tensors or options differ.
  Status join();
  // The steps that have been finished, and before them the updates of restore().
  std::int64_t steps() const { return step_; }
  // Between steps, on any rank, alone; where ranks share the update, an operation of all of them, which leaves anything
  // in gradients(). Writes what the optimizer remembers to `memories`. Returns how many updates have
  // made it. Under parameter servers they are asked for it, and the weights become those of the same moment, chunk by
  // chunk: where ranks do not wait for each other some chunks may have had more updates than is returned, the least.
  Result<std::int64_t> save(const TensorMemories& memories);

  const Group& group() const override { return *group_; }
  // Fails also for another rate than that of the steps before, under a rule that has one alone (ftrl).
  Status check_rate(double learning_rate) const override;
  void begin_step(double learning_rate) override;
  bool has(std::size_t tensor) const override { return release_->is_ready(tensor); }
  // Copies the gradient. One that is absent counts as zeros.
  void gradient(std::size_t tensor, std::span<float> values, bool is_absent) override;
  // As gradient(), for one that lies in gradients(tensor) already.
  void gradient_in_place(std::size_t tensor);
  // Before finish_step: whether the tensor's gradient, which was handed over, is still what `values` are, bit for bit.
  bool has_same(std::size_t tensor, std::span<const float> values) const;
  // A tensor to whose weights here somebody has written since they came from servers, which do not know, as far as a
  // WeightWatch notices. None where ranks have the weights.
  std::optional<std::size_t> written_tensor() const;
  // The next weights are in the arena. Fails with invalid argument, naming two ranks and their rates, if ranks make
  // this step at different ones; where they do not wait for each other, one of them may learn of it in a later step.
  Result<SyncStats> finish_step() override;
  std::vector<std::size_t> absent_everywhere() const override { return {}; }
  int missed() override { return connected_.collective ? connected_.collective->missed() : -1; }
  Status leave() override;

 private:
  StrategyExchange(std::shared_ptr<Group> group, const ParamLayout& layout)
      : group_(std::move(group)), layout_(layout) {}
  Status connect_allreduce(const std::string& name, const TrainingOptions& options);
  Status connect_shares(const std::string& name, const TrainingOptions& options);
  // Writes what all ranks together remember.
  Status sum_shares(const TrainingState& own, const TensorMemories& memories);
  Status connect_servers(const std::string& name, const TrainingOptions& options,
                         const std::vector<StartedServer>& started);
  Status watch_servers(const std::string& name, const std::vector<StartedServer>& started);
  void interrupt();

  const std::shared_ptr<Group> group_;
  const ParamLayout layout_;
  ConnectedCollective connected_;           // the collective is null under parameter servers
  allreduce::CollectiveActivity activity_;  // for the tracer; its times are nobody's
  std::unique_ptr<SyncStrategy> strategy_;
  ps::PsStrategy* servers_ = nullptr;  // the strategy, where servers make updates
  bool is_shared_ = false;             // each rank updates a part
  std::optional<InterruptedByLoss> interrupted_by_loss_;
  std::vector<int> watched_pids_;  // of the servers of this host
  ParamArenas arenas_;
  std::optional<GradientRelease> release_;   // from join on
  std::optional<WeightWatch> weight_watch_;  // where servers make updates, from join on
  std::int64_t step_ = 0;
  bool has_one_rate_ = false;
  std::optional<double> rate_;  // of the last step
  bool in_step_ = false;        // or in join: others may be waited for
};

}  // namespace syncopate::library
