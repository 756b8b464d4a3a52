// FinalWeights: decides which worker sends the final weights. Pure.
//
// Once all that are still there have asked, the first that has them sends them; the others stay until they have
// arrived, so that another can take over if that one is lost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace syncopate::experiments {

class FinalWeights {
 public:
  struct Answer {
    std::size_t process = 0;
    bool send_weights = false;  // false: they have arrived, and the worker may leave

    bool operator==(const Answer&) const = default;
  };

  // `holder`: the only one that has them, if it is one.
  explicit FinalWeights(std::optional<std::size_t> holder = {}) : holder_(holder) {}

  // `process` has finished training, and asks whether its weights are wanted.
  void on_question(std::size_t process) { waiting_.push_back(process); }
  void on_received() { received_ = true; }

  // Returns the answers that are due now; each worker is answered once. Nobody leaves before all that are still there
  // have asked: the others may still meet, and would find it gone. Call it after each of the above, and when a worker
  // has been lost.
  std::vector<Answer> take_answers(const std::function<bool(std::size_t process)>& still_there,
                                   bool all_have_asked = true);

 private:
  const std::optional<std::size_t> holder_;
  std::vector<std::size_t> waiting_;     // in the order in which they asked
  std::optional<std::size_t> hands_in_;  // the worker that was asked for them
  bool received_ = false;
};

inline std::vector<FinalWeights::Answer> FinalWeights::take_answers(
    const std::function<bool(std::size_t process)>& still_there, bool all_have_asked) {
  std::vector<Answer> answers;
  if (!all_have_asked) return answers;
  if (received_) {
    for (std::size_t process : std::exchange(waiting_, {})) answers.push_back({process, false});
    return answers;
  }
  std::erase_if(waiting_, [&](std::size_t process) { return !still_there(process); });
  const auto next = holder_ ? std::ranges::find(waiting_, *holder_) : waiting_.begin();
  if (next == waiting_.end() || (hands_in_ && still_there(*hands_in_))) return answers;
  hands_in_ = *next;
  waiting_.erase(next);
  answers.push_back({*hands_in_, true});
  return answers;
}

}  // namespace syncopate::experiments
