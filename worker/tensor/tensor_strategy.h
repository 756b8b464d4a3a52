// TensorStrategy: how workers stay in agreement that have parts of layers. The weights of a part, which are all that
// the worker's arenas have, are synchronised among its replicas by another strategy. This one adds what makes a whole
// model of the parts:
//
//   save, restore    a state has the whole model's arena; each worker adds, and takes, its shares
//   gather_weights   the first worker gets all weights, in memory of their own until the next step (job_weights)
//
// What the workers have whole they update alike, from gradients with the same bits.
#pragma once

#include <memory>

#include "common/sync_strategy.h"
#include "worker/tensor/split_layout.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::worker {

// `of_part` is of any kind that has no tables, goes by each weight alone and computes on the host; if it is resumable,
// so is this. `gathers`: this is the replica of the model whose first worker has the weights where they are wanted. The
// layout and the links must outlive the strategy.
std::unique_ptr<SyncStrategy> make_tensor_strategy(std::unique_ptr<SyncStrategy> of_part, const SplitLayout& layout,
                                                   bool gathers, TensorLinks& links);

}  // namespace syncopate::worker
