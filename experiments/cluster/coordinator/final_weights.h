// FinalWeights: which worker hands in the final weights. Pure.
//
// Every worker holds them. The first that asks hands them in; the others stay until they have arrived, so that another
// can take over should that one be lost.
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
    bool send_weights = false;  // false: they are there, and it may go

    bool operator==(const Answer&) const = default;
  };

  // `process` has ended its training, and asks whether its weights are wanted.
  void on_question(std::size_t process) { waiting_.push_back(process); }
  void on_received() { received_ = true; }

  // Who is to be answered now, once each. To be called after each of the above, and when a worker has been lost.
  std::vector<Answer> take_answers(const std::function<bool(std::size_t process)>& still_there);

 private:
  std::vector<std::size_t> waiting_;     // in the order in which they have asked
  std::optional<std::size_t> hands_in_;  // who was asked for them
  bool received_ = false;
};

}  // namespace syncopate::experiments
