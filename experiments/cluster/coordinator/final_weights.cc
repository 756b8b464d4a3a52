#include "experiments/cluster/coordinator/final_weights.h"

#include <utility>

namespace syncopate::experiments {

std::vector<FinalWeights::Answer> FinalWeights::take_answers(
    const std::function<bool(std::size_t process)>& still_there) {
  std::vector<Answer> answers;
  if (received_) {
    for (std::size_t process : std::exchange(waiting_, {})) answers.push_back({process, false});
    return answers;
  }
  std::erase_if(waiting_, [&](std::size_t process) { return !still_there(process); });
  if (waiting_.empty() || (hands_in_ && still_there(*hands_in_))) return answers;
  hands_in_ = waiting_.front();
  waiting_.erase(waiting_.begin());
  answers.push_back({*hands_in_, true});
  return answers;
}

}  // namespace syncopate::experiments
