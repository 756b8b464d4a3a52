#include "library/gradient_watch.h"

#include <fmt/format.h>

#include <utility>

#include "common/finite.h"
#include "common/text/log.h"

namespace syncopate::library {

void GradientWatch::begin_step(std::int64_t step) {
  step_ = step;
  found_.clear();
}

void GradientWatch::look_at(const std::string& tensor, std::span<const float> values) {
  if (!found_.empty() || all_finite(values)) return;
  found_ = fmt::format("step {}: on rank {} the gradient of {} is {}", step_, rank_, tensor,
                       name_of_not_finite(values[*first_not_finite(values)]));
  if (on_nan_ != OnNan::kStop && !std::exchange(is_told_, true)) {
    log_warning("{}, and goes to all ranks; this is said once", found_);
  }
}

Status GradientWatch::check() const {
  return holds_back() ? Status::invalid_argument(found_ + "; on_nan=stop ends the step") : Status();
}

}  // namespace syncopate::library
