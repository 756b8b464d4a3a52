// The learning rate of each step, as a pure function of the step. A worker computes it and, under ps, sends it with its
// push, so that a server needs no schedule of its own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

// --lr-schedule is a comma-separated list: one shape (constant, step, cosine), and any of the modifiers (linear,
// warmup).
struct LearningRateSchedule {
  enum class Shape { kConstant, kStep, kCosine };

  Shape shape = Shape::kConstant;
  double step_epochs = 0;  // step:EPOCHS:FACTOR multiplies the rate by FACTOR every EPOCHS epochs
  double step_factor = 1;
  bool linear_scaling = false;  // linear: the base rate times the growth of the minibatch (Goyal 2017, section 2.1)
  double warmup_epochs = 0;     // warmup:EPOCHS rises linearly to the rate over that time (Goyal 2017, section 2.2);
                                // with linear it begins at the base rate, else at zero

  // Parses "constant", "cosine,warmup:1" or "linear,warmup:5,step:30:0.1". An error says what is wrong and what would
  // be right.
  static Result<LearningRateSchedule> parse(std::string_view text);
};

// Returns the schedule in the form that parse reads.
std::string to_string(const LearningRateSchedule& schedule);

struct LearningRateContext {
  double base_rate = 0;
  // The minibatch of an update in units of one worker's batch: the factor of linear.
  double minibatch_growth = 1;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 1;  // of one worker; cosine reaches zero there (Loshchilov and Hutter 2017, equation 5)
};

// Returns the rate of step `step`, 0 .. total_steps-1.
double learning_rate_at(const LearningRateSchedule& schedule, const LearningRateContext& context, std::int64_t step);

}  // namespace syncopate
