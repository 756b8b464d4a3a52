// Pass: the purpose of a model's forward pass.
#pragma once

namespace syncopate::worker {

// In training, a batch norm normalises by the moments of the batch; in evaluation, by the running moments.
enum class Pass { kTraining, kEvaluation };

}  // namespace syncopate::worker
