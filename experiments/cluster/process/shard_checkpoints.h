// ShardCheckpoints: what a server has to do with checkpoints: its shards' parts are taken, and read back.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/shard_cutter.h"
#include "experiments/cluster/process/roles.h"
#include "ps/server/shard_server.h"

namespace syncopate::experiments {

class ShardCheckpoints {
 public:
  // Of the shards `first_shard` on, `shards` of them. The context outlives this.
  static Result<std::unique_ptr<ShardCheckpoints>> create(const RoleContext& context, int first_shard, int shards);

  // What shard `place` of these goes on from, out of a checkpoint's folder.
  Result<TrainingState> read(const std::string& folder, std::size_t place) const;

  // Each shard is served by one of `servers`, from `first_steps` on, until end(); does nothing in a run without
  // checkpoints.
  void begin(std::int64_t generation, const std::vector<ps::ShardServer*>& servers,
             const std::vector<std::int64_t>& first_steps);
  void end();
  // Until what is being written is written.
  void finish();

 private:
  ShardCheckpoints(const RoleContext& context, int first_shard, ParamLayout layout, const ParamLayout& local_layout)
      : context_(context), first_shard_(first_shard), layout_(std::move(layout)), forms_(layout_, local_layout) {}

  const RoleContext& context_;
  const int first_shard_;
  const ParamLayout layout_;
  const StateForms forms_;
  std::vector<std::unique_ptr<ShardCutter>> cutters_;  // by shard; empty in a run without checkpoints
};

}  // namespace syncopate::experiments
