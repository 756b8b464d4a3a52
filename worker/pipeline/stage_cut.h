// The cut of a chain of layers into the stages of a pipeline. Pure.
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
};

struct StageCut {
  // By stage: the first layer, and the first tensor; then the number of all.
  std::vector<std::size_t> layers, tensors;
  std::vector<SharedTensor> shared;

  int stages() const { return static_cast<int>(tensors.size()) - 1; }
  // Returns the part of the arena of a stage's own tensors. The stages' parts cover the arena.
  Range own(int stage, const ParamLayout& layout) const;
};

// Cuts layers into contiguous stages, of which each begins with a layer that has tensors of its own and does not work
// in place, so that the greatest cost of a stage is as small as it can be; among such cuts, each stage from the last on
// takes as many layers as it can. Fails with invalid argument if there are fewer such layers than stages. All arguments
// must be of the same model.
Result<StageCut> cut_into_stages(std::span<const LayerFacts> layers, const ParamLayout& layout, int stages);

}  // namespace syncopate::worker
