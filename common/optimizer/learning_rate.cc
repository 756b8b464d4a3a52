#include "common/optimizer/learning_rate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "common/text/split_text.h"

namespace syncopate {
namespace {

// A number above zero.
std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) return {};
  return value;
}

// Reads a list part by part; what is wrong with a part is an error message, empty if nothing is.
class Parser {
 public:
  std::string read(std::string_view part) {
    const std::vector<std::string_view> fields = split_text(part, ':');
    const std::string_view name = fields[0];
    if (name == "constant" || name == "cosine" || name == "step") return read_shape(name, fields);
    if (name == "linear") return read_linear(fields);
    if (name == "warmup") return read_warmup(fields);
    return fmt::format("'{}' is none of constant, cosine, step:EPOCHS:FACTOR, linear, warmup:EPOCHS", part);
  }
  const LearningRateSchedule& schedule() const { return schedule_; }

 private:
  using Shape = LearningRateSchedule::Shape;

  std::string read_shape(std::string_view name, const std::vector<std::string_view>& fields) {
    if (has_shape_) return fmt::format("'{}' is a second shape; one of constant, cosine, step is right", name);
    has_shape_ = true;
    if (name == "step") return read_step(fields);
    if (fields.size() != 1) return fmt::format("'{}' takes no number", name);
    schedule_.shape = name == "cosine" ? Shape::kCosine : Shape::kConstant;
    return {};
  }

  std::string read_step(const std::vector<std::string_view>& fields) {
    const auto epochs = fields.size() == 3 ? positive(fields[1]) : std::nullopt;
    const auto factor = fields.size() == 3 ? positive(fields[2]) : std::nullopt;
    if (!epochs || !factor) return "step must be step:EPOCHS:FACTOR with two numbers above zero, as in step:30:0.1";
    schedule_.shape = Shape::kStep;
    schedule_.step_epochs = *epochs;
    schedule_.step_factor = *factor;
    return {};
  }

  std::string read_linear(const std::vector<std::string_view>& fields) {
    if (fields.size() != 1) return "'linear' takes no number";
    if (schedule_.linear_scaling) return "'linear' stands twice";
    schedule_.linear_scaling = true;
    return {};
  }

  std::string read_warmup(const std::vector<std::string_view>& fields) {
    const auto epochs = fields.size() == 2 ? positive(fields[1]) : std::nullopt;
    if (!epochs) return "warmup must be warmup:EPOCHS with a number above zero, as in warmup:5";
    if (schedule_.warmup_epochs > 0) return "'warmup' stands twice";
    schedule_.warmup_epochs = *epochs;
    return {};
  }

  LearningRateSchedule schedule_;
  bool has_shape_ = false;
};

double shape_factor(const LearningRateSchedule& schedule, double epoch, double progress) {
  switch (schedule.shape) {
    case LearningRateSchedule::Shape::kConstant:
      return 1;
    case LearningRateSchedule::Shape::kStep:
      return std::pow(schedule.step_factor, std::floor(epoch / schedule.step_epochs));
    case LearningRateSchedule::Shape::kCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
  }
  return 1;
}

}  // namespace

Result<LearningRateSchedule> LearningRateSchedule::parse(std::string_view text) {
  Parser parser;
  for (std::string_view part : split_text(text, ',')) {
    const std::string error = parser.read(part);
    if (!error.empty()) return Status::invalid_argument(error);
  }
  return parser.schedule();
}

std::string to_string(const LearningRateSchedule& schedule) {
  std::vector<std::string> parts;
  if (schedule.shape == LearningRateSchedule::Shape::kCosine) parts.emplace_back("cosine");
  if (schedule.shape == LearningRateSchedule::Shape::kStep) {
    parts.push_back(fmt::format("step:{}:{}", schedule.step_epochs, schedule.step_factor));
  }
  if (schedule.linear_scaling) parts.emplace_back("linear");
  if (schedule.warmup_epochs > 0) parts.push_back(fmt::format("warmup:{}", schedule.warmup_epochs));
  return parts.empty() ? "constant" : fmt::format("{}", fmt::join(parts, ","));
}

double learning_rate_at(const LearningRateSchedule& schedule, const LearningRateContext& context, std::int64_t step) {
  const double epoch = static_cast<double>(step) / static_cast<double>(context.steps_per_epoch);
  const double progress = static_cast<double>(step) / static_cast<double>(context.total_steps);
  const double scaled = context.base_rate * (schedule.linear_scaling ? context.minibatch_growth : 1);
  const double rate = scaled * shape_factor(schedule, epoch, progress);
  if (epoch >= schedule.warmup_epochs) return rate;
  // The warm-up scales the rate that the shape asks for now, so that there is no jump where it ends.
  const double first = schedule.linear_scaling ? 1.0 / context.minibatch_growth : 0.0;
  return rate * (first + (1 - first) * epoch / schedule.warmup_epochs);
}

}  // namespace syncopate
