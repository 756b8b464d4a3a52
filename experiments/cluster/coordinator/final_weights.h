// FinalWeights: decides which worker sends the final weights. Pure.
//
// Every worker has them. The first that asks sends them; the others stay until they have arrived, so that another can
// take over if that one is lost.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace syncopate::experiments {

class FinalWeights {
 public:
  struct Answer {
    std::size_t process = 0;
    bool send_weights = false;  // false: they have arrived, and the worker may leave

    bool operator==(const Answer&) const = default;
  };

  // `process` has finished training, and asks whether its weights are wanted.
  void on_question(std::size_t process) { waiting_.push_back(process); }
  void on_received() { received_ = true; }

  // Returns the answers that are due now; each worker is answered once. Call it after each of the above, and when a
  // worker has been lost.
  std::vector<Answer> take_answers(const std::function<bool(std::size_t process)>& still_there);

 private:
  std::vector<std::size_t> waiting_;     // in the order in which they asked
  std::optional<std::size_t> hands_in_;  // the worker that was asked for them
  bool received_ = false;
};

}  // namespace syncopate::experiments
