// TrainingPiece: a point of the curve of a run's training loss.
#pragma once

namespace syncopate::experiments {

// A piece of a run's training: means over some steps that ended one after the other, of all workers.
struct TrainingPiece {
  double seconds = 0;  // since training began, when its last step ended
  double steps = 0;    // of all workers, until then
  double samples = 0;
  double loss = 0;  // mean over the piece's samples
};

}  // namespace syncopate::experiments
