// ModelPart: what a worker trains, where that is a part of the run's model.
#pragma once

#include <memory>

#include "worker/pipeline/pipelined_model.h"
#include "worker/tensor/tensor_model.h"

namespace syncopate::experiments {

// Its parts, by which it finds other workers; both null where it is the whole model.
struct ModelPart {
  worker::PipelinedModel* stage = nullptr;  // set if it is a stage of a pipeline
  worker::TensorModel* layers = nullptr;    // set if it has parts of layers

  bool is_whole() const { return stage == nullptr && layers == nullptr; }
};

struct OwnedPart {
  std::unique_ptr<worker::Model> model;
  ModelPart part;  // of the model
};

}  // namespace syncopate::experiments
