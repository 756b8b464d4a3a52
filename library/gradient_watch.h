// GradientWatch: looks at the gradients that a rank hands over, before they are summed, encoded or sent: whose it was
// that was not finite is not to be seen afterwards. Says so once on the log. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/on_nan.h"
#include "common/status.h"

namespace syncopate::library {

class GradientWatch {
 public:
  // kSkip is the caller's to carry out.
  explicit GradientWatch(int rank, OnNan on_nan = OnNan::kGoOn) : rank_(rank), on_nan_(on_nan) {}

  void begin_step(std::int64_t step);
  // The gradient of `tensor` is final.
  void look_at(const std::string& tensor, std::span<const float> values);
  // Returns whether what has been looked at in this step must not be handed over.
  bool holds_back() const { return !found_.empty() && on_nan_ == OnNan::kStop; }
  // Fails with invalid argument, naming rank, step and tensor, where the step must end.
  Status check() const;

 private:
  int rank_;
  OnNan on_nan_;
  std::int64_t step_ = 0;
  std::string found_;  // in this step; empty: nothing
  bool is_told_ = false;
};

}  // namespace syncopate::library
