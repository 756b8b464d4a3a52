// Pass: what a model's forward is for.
#pragma once

namespace syncopate::worker {

// In training, a batch norm normalises by the moments of the batch; in evaluation, by those that it has kept.
enum class Pass { kTraining, kEvaluation };

}  // namespace syncopate::worker
