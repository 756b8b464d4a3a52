// A small transformer in the form of GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners",
// section 2.3): tokens and learnt positions, blocks of x + attention(norm(x)) and x + mlp(norm(x)) with a hidden layer
// of 4 · width under GELU, a last norm, and the embedding as the output's weights. Weights begin as N(0, 0.02²), those
// that write to the residual stream divided by sqrt(2 · layers). There is no dropout.
//
// With V characters, T positions, and L layers of width C it has V·C + T·C + L·(12·C² + 13·C) + 2·C parameters.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/chain_builder.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

// Returns whether `spec` names such a model: "gpt" or "gpt:LAYERS-HEADS-WIDTH".
bool is_gpt(const std::string& spec);

// Returns its layers, and appends their tensors to the draft's layout. kInvalidArgument: `spec` does not give a valid
// shape, or the samples are not texts.
Result<Layers> gpt_layers(const std::string& spec, const SampleForm& form, ModelDraft& draft);

}  // namespace syncopate::worker
