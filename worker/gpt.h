// A small transformer in the form of GPT-2 (Radford et al. 2019, "Language models are unsupervised multitask learners",
// section 2.3): tokens and learnt positions, blocks of x + attention(norm(x)) and x + mlp(norm(x)) with a GELU between
// 4 · width, a last norm, and the embedding as the output's weights. Weights begin as N(0, 0.02²), those that write to
// the residual stream divided by sqrt(2 · layers); no dropout.
//
// With V characters, T positions, L layers of width C it has V·C + T·C + L·(12·C² + 13·C) + 2·C parameters.
#pragma once

#include <string>

#include "common/status.h"
#include "worker/chain_builder.h"
#include "worker/data/dataset.h"

namespace syncopate::worker {

// Whether `spec` names such a model: "gpt" or "gpt:LAYERS-HEADS-WIDTH".
bool is_gpt(const std::string& spec);

// Its layers, appended to the draft's layout. kInvalidArgument: a spec that says no such shape, or samples that are no
// texts.
Result<Layers> gpt_layers(const std::string& spec, const SampleForm& form, ModelDraft& draft);

}  // namespace syncopate::worker
