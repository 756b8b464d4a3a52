// The training loss of a run as a curve of few points, from the record of its steps. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "experiments/lab/report/training_piece.h"
#include "experiments/lab/why/recorded_steps.h"

namespace syncopate::experiments {

// Returns at most `most` pieces of the same number of steps. Steps without a loss count, but not in the mean; a piece
// without any loss is left out.
std::vector<TrainingPiece> training_pieces(const RecordedSteps& recorded, std::size_t most);

// Returns how many pieces a curve has of `steps` steps of all workers: 1 to `most`, so that each piece has a few steps
// of each worker.
std::size_t pieces_of(std::size_t steps, int workers, std::size_t most);

}  // namespace syncopate::experiments
