// ShardCheckpoints: a server's part in checkpoints: it takes its shards' parts, and reads them back.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/shard_cutter.h"
#include "experiments/cluster/control/subscription.h"
#include "experiments/cluster/process/roles.h"
#include "ps/server/shard_server.h"

namespace syncopate::experiments {

// A shard of a server: of which stage of the model, and its number among the shards of that stage.
struct HeldShard {
  int stage = 0;
  int shard = 0;
};

class ShardCheckpoints {
 public:
  // The context outlives this.
  static Result<std::unique_ptr<ShardCheckpoints>> create(const RoleContext& context, std::vector<HeldShard> shards);

  // Returns the state from which the server's shard in that place goes on, read from a checkpoint's folder.
  Result<TrainingState> read(const std::string& folder, std::size_t place) const;

  // Each shard is served by one of `servers`, from `first_steps` on, until end(). Does nothing in a run without
  // checkpoints.
  void begin(std::int64_t membership_epoch, const std::vector<ps::ShardServer*>& servers,
             const std::vector<std::int64_t>& first_steps);
  void end();
  // Waits until nothing is being written.
  void finish();

 private:
  ShardCheckpoints(const RoleContext& context, std::vector<HeldShard> shards, ParamLayout layout,
                   const ParamLayout& local_layout)
      : context_(context), shards_(std::move(shards)), layout_(std::move(layout)), forms_(layout_, local_layout) {}

  const RoleContext& context_;
  const std::vector<HeldShard> shards_;
  const ParamLayout layout_;
  const StateForms forms_;
  std::vector<std::unique_ptr<ShardCutter>> cutters_;  // by shard; empty in a run without checkpoints
  Subscription orders_;                                // from begin() to end(); after what it uses
};

}  // namespace syncopate::experiments
