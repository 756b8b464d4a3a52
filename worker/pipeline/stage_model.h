// StageModel: the layers of one stage of a pipeline, or of one of its chunks, for the microbatches of a step, one at a
// time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/backend/compute_backend.h"
#include "worker/model.h"
#include "worker/pipeline/pipeline_schedule.h"
#include "worker/pipeline/stage_cut.h"
#include "worker/tensor/split_layout.h"
#include "worker/tensor/tensor_links.h"

namespace syncopate::worker {

// A batch of this model is a microbatch, whose values are the activations that the stage before has sent; on the first
// stage it is what a model's batch is. Layout and arenas are those of the whole model: it reads, and writes the
// gradients of, its own part, and that of what it borrows (SharedTensor), which it does not report.
class StageModel : public Model {
 public:
  // What forward has made, for the stage behind: (batch, output values). Empty on the last stage.
  virtual In outputs() const = 0;
  // Where that stage's gradient of it has to lie before backward, which may overwrite it; empty on the last.
  virtual Out output_gradient() = 0;
  // What backward has made, for the stage before: the gradient of the batch's values; empty on the first.
  virtual In input_gradient() const = 0;
};

// What is known of a model before any of its layers is built to run.
struct ChainFacts {
  ParamLayout layout, local_layout;
  std::vector<LayerFacts> layers;          // a layer's cost is its FLOPs
  std::vector<std::size_t> local_through;  // by layer: the tensors of the local layout up to and with it
  SplitLayout split;                       // `layout` is its own
  std::vector<std::size_t> sums;           // with the other parts of layers, of a sample in a step, in values
};
// As a worker has the model that has that part of each layer that can be divided. Fails as make_model() does, and as
// make_split_model() does.
Result<ChainFacts> chain_facts(const std::string& spec, const SampleForm& form, const LayerPart& part = {});

// By chunk, one for each microbatch that is in flight there (most_in_flight).
using StagePasses = std::vector<std::vector<std::unique_ptr<StageModel>>>;

// Makes that place's stage of that cut, for microbatches of that many samples: each has activations of its own, and all
// have one local state, of the whole model, in which each stage keeps that of its own layers. If the schedule splits
// backward, backward_weights() may be called after others' passes, until the next forward of the same. Layers of other
// stages take no memory. Layers are divided as in make_split_model(), and sum by `sums`, which is null if they are
// whole. It, and the backend, which computes on the host, outlive them.
Result<StagePasses> make_stage(const std::string& spec, const SampleForm& form, const StageCut& cut,
                               const PipelinePlace& place, int samples, ComputeBackend& backend,
                               const LayerPart& part = {}, TensorSums* sums = nullptr);

}  // namespace syncopate::worker
