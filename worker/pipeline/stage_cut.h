// The cut of a chain of layers into the stages of a pipeline, or into the chunks of stages. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::worker {

// What the cut has to know of a layer.
struct LayerFacts {
  double cost = 0;              // of a pass through it, in any unit
  std::size_t tensors_end = 0;  // in the layout: the tensors up to and with the layer's own
  Range reads = {};             // of the arena; also another layer's tensor, where weights are tied
  bool in_place = false;        // it writes its output over its input
  std::size_t outputs = 0;      // values per sample that the next layer reads; 0 where that is not known
  // Places in the arena whose gradients it makes in a pass of their own, where backward is in two passes.
  std::vector<Range> late_gradients = {};
};

// Returns the layers with a cost that is the sum of those of their tensors, by tensor of the layout; where no layers
// are known there is one for each tensor.
std::vector<LayerFacts> layers_by_tensors(std::span<const LayerFacts> layers, const ParamLayout& layout,
                                          std::span<const double> costs);

// A tensor that the layers of one stage own and those of a later one read and make a part of the gradient of, as the
// tokens of a gpt.
struct SharedTensor {
  std::size_t tensor = 0;  // in the layout
  Range range;             // of the arena
  int owner = 0;           // stages
  int borrower = 0;
  int owner_chunk = 0, borrower_chunk = 0;  // of theirs
};

struct StageCut {
  // By chunk, in the order of the chain, where chunk c of stage s is number c S + s: the first layer, and the first
  // tensor; then the number of all. Without chunks, by stage.
  std::vector<std::size_t> layers, tensors;
  std::vector<SharedTensor> shared;
  int stages = 1;

  int chunks() const { return static_cast<int>(tensors.size() - 1) / stages; }  // of each stage
  // Returns the part of the arena of the tensors of chunk `number` of the chain. All chunks' cover the arena.
  Range chunk(int number, const ParamLayout& layout) const;
  // Returns those of a stage, ascending.
  std::vector<Range> own(int stage, const ParamLayout& layout) const;
};

// Cuts layers into contiguous stages, or into `chunks` of each, so that each begins with a layer that has tensors of
// its own and does not work in place, and the greatest cost of a chunk is as small as it can be; among such cuts, each
// from the last on takes as many layers as it can. Fails with invalid argument if there are fewer such layers than
// chunks, or if a stage with several shares a tensor with itself. All arguments must be of the same model.
Result<StageCut> cut_into_stages(std::span<const LayerFacts> layers, const ParamLayout& layout, int stages,
                                 int chunks = 1);

}  // namespace syncopate::worker
