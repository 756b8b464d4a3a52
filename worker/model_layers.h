// The layers of a model by its name, for who builds only some of them (pipeline/stage_model).
#pragma once

#include <string>

#include "common/status.h"
#include "worker/chain_builder.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

// Returns the layers of the model that make_model(spec) makes, which ends in softmax and cross-entropy or a squared
// error, and appends their tensors to the draft's layouts. The draft's backend must outlive them. Fails as make_model
// does, and with invalid argument for a recommender, which is no chain.
Result<Layers> model_layers(const std::string& spec, const SampleForm& form, ModelDraft& draft);

}  // namespace syncopate::worker
