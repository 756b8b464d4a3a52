#include "experiments/lab/predict/device_prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/text/format.h"
#include "common/text/list_text.h"
#include "experiments/config/commands.h"
#include "experiments/config/device_choice.h"
#include "experiments/config/resolution.h"
#include "experiments/config/wrapped_text.h"
#include "experiments/lab/predict/own_model.h"
#include "experiments/lab/report/text_table.h"
#include "prediction/device_steps.h"

namespace syncopate::experiments {
namespace {

using prediction::LeastTime;

constexpr int kColumns = 80;
constexpr std::size_t kShownOperations = 6;

// Takes an option out of those that a run knows.
std::string taken(GivenOptions& given, const std::string& name, const std::string& otherwise) {
  const auto found = given.find(name);
  if (found == given.end()) return otherwise;
  std::string value = std::move(found->second);
  given.erase(found);
  return value;
}

Status check_given(const GivenOptions& given) {
  constexpr std::array kNeeded = {"model", "batch-size"};
  const auto is_in = [](const auto& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const auto& [name, value] : given) {
    if (is_in(kNeeded, name) || is_in(kOfDeviceSteps, name)) continue;
    return Status::invalid_argument(
        fmt::format("--{}: is of an exchange, and predict --device is of one worker's step alone; leave it out", name));
  }
  for (const std::string name : kNeeded) {
    if (given.contains(name)) continue;
    return Status::invalid_argument(
        fmt::format("--{0} is missing beside --device, as in --{0}={1}", name, name == "model" ? "resnet50" : "64"));
  }
  return {};
}

Result<ResolvedRun> resolved_of(GivenOptions given) {
  set_usual_data(given);
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest request, apply_options(given));
  if (is_profile(request)) {
    return Status::invalid_argument(fmt::format(
        "--model={}: a profile does not say which operations it has; name a model to train", request.model));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {presumed(request)}));
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  return presumed(request);
}

// Requires one of prediction::kRatePrecisions, which have the same names.
worker::Precision precision_named(std::string_view name) {
  using worker::Precision;
  constexpr std::array kAll = {Precision::kFp32, Precision::kTf32, Precision::kBf16, Precision::kFp16};
  return *std::ranges::find_if(kAll, [&](Precision precision) { return name == name_of(precision); });
}

Result<bool> is_on(const std::string& name, const std::string& value) {
  if (value == "on" || value == "off") return value == "on";
  return Status::invalid_argument(fmt::format("--{}={}: must be on or off", name, value));
}

std::string seconds_text(double seconds) { return format_ms(seconds * 1e3); }

std::string giga_text(double flops) {
  constexpr double kGiga = 1e9;
  return flops < 100 * kGiga ? fmt::format("{:.3g}", flops / kGiga) : format_count(flops / kGiga);
}

std::string data_text(const ResolvedRun& config) {
  if (learns_patterns(config)) {
    const int side = config.image_size.value_or(worker::kUsualPatternSide);
    return fmt::format("{} ({}x{}, {} classes)", config.dataset, side, side, config.classes);
  }
  if (learns_grammar(config)) {
    return fmt::format("{} (context {}, vocabulary {})", config.dataset, config.context, config.vocabulary);
  }
  return config.dataset;
}

std::string headline(const DevicePrediction& prediction) {
  const double seconds = prediction.least_seconds();
  return fmt::format(
      "{} on {}, batches of {}, {}, {}: on {} a step takes at least {} ms. That is at most {} samples/s.",
      prediction.config.model, data_text(prediction.config), prediction.config.batch_size,
      name_of(prediction.config.precision), traits_of(prediction.config.optimizer).name, prediction.device.title,
      seconds_text(seconds), format_count(prediction.config.batch_size / seconds));
}

std::vector<std::string> cells_of(const std::string& name, const LeastTime& time) {
  return {name,
          seconds_text(time.seconds),
          seconds_text(time.compute_seconds),
          seconds_text(time.memory_seconds),
          giga_text(time.flops),
          format_bytes(time.bytes),
          std::to_string(time.launches)};
}

std::string parts_table(const DevicePrediction& prediction) {
  const StepWork& work = prediction.work;
  return text_table({{"ms, at least", "all", "compute-bound", "memory-bound", "GFLOP", "bytes", "launches"},
                     cells_of("forward", least_time(work.forward, prediction.peak)),
                     cells_of("backward", least_time(work.backward, prediction.peak)),
                     cells_of("update", least_time({&work.update, 1}, prediction.peak)),
                     cells_of("step", prediction.step())});
}

std::string operations_table(const DevicePrediction& prediction) {
  std::vector<prediction::DeviceOperation> all = prediction.work.forward;
  all.insert(all.end(), prediction.work.backward.begin(), prediction.work.backward.end());
  all.push_back(prediction.work.update);
  std::vector<std::vector<std::string>> rows{{"largest operations", "x", "ms", "bound by"}};
  for (const prediction::LikeOperations& like : largest(all, prediction.peak, kShownOperations)) {
    rows.push_back({like.name, std::to_string(like.count), seconds_text(like.seconds),
                    like.is_compute_bound ? "compute" : "memory"});
  }
  return text_table(rows);
}

std::string memory_line(const DevicePrediction& prediction) {
  const StepWork& work = prediction.work;
  const bool fits = work.memory_bytes() <= prediction.device.memory_bytes;
  return fmt::format(
      "memory: {} of the device's {}{}: {} for weights, gradients and the optimizer's state, {} for activations and "
      "two batches; workspaces of libraries come on top.",
      format_bytes(work.memory_bytes()), format_bytes(prediction.device.memory_bytes),
      fits ? "" : ", which is more than there is", format_bytes(work.arena_bytes), format_bytes(work.activation_bytes));
}

std::string launches_line(const DevicePrediction& prediction) {
  const int launches = prediction.step().launches;
  const double each = prediction.device.launch_seconds;
  if (prediction.is_captured) {
    return fmt::format(
        "launches: {} a step, given as one CUDA graph, whose cost is not counted; one by one (--cuda-graphs=off), at "
        "{:.3g} us each, they take the host {} ms.",
        launches, each * 1e6, seconds_text(launches * each));
  }
  return fmt::format(
      "launches: {} a step, at {:.3g} us each, take the host {} ms, beside the device's {} ms: a step "
      "takes no less than the longer of the two.",
      launches, each * 1e6, seconds_text(prediction.launch_seconds()), seconds_text(prediction.step().seconds));
}

// What others have measured of that step, if anything.
std::string measured_line(const DevicePrediction& prediction) {
  const std::string device = prediction.device.name + ":" + name_of(prediction.config.precision);
  if (!prediction::names_device(device)) return "";
  const Result<prediction::TypicalStep> step =
      prediction::typical_step(device, prediction.config.model, prediction.config.batch_size);
  if (!step.ok()) return "";
  return fmt::format("measured by others: {} ms, {:.1f} x this bound: {}.\n", seconds_text(step->seconds),
                     step->seconds / prediction.least_seconds(), step->basis);
}

std::string rates_line(const DevicePrediction& prediction) {
  const prediction::DeviceRates& device = prediction.device;
  return fmt::format("rates of {}: {:.4g} TFLOPS in {}, {:.4g} GB/s. Source: {}.", device.name,
                     prediction.peak.flops_per_second / 1e12, name_of(prediction.config.precision),
                     prediction.peak.bytes_per_second / 1e9, device.source);
}

constexpr const char* kWhatItIs =
    "This is a bound and no prediction: each operation is taken to run at the device's peak rates, with each value "
    "read and written once. Real kernels reach a part of these rates. Products, convolutions and attention are "
    "counted as FLOPs, everything else by its bytes, as if all came from the device's memory: what a small model "
    "leaves in its cache may take less.";

}  // namespace

LeastTime DevicePrediction::step() const {
  LeastTime sum = least_time(work.forward, peak);
  sum += least_time(work.backward, peak);
  sum += least_time({&work.update, 1}, peak);
  return sum;
}

double DevicePrediction::launch_seconds() const { return is_captured ? 0 : step().launches * device.launch_seconds; }

double DevicePrediction::least_seconds() const { return std::max(step().seconds, launch_seconds()); }

bool asks_for_a_device(const std::vector<std::string>& options) {
  return std::ranges::any_of(
      options, [](const std::string& word) { return word == "--device" || word.starts_with("--device="); });
}

Result<DevicePrediction> parse_device_prediction(const std::vector<std::string>& options) {
  std::vector<std::string> line = {"predict"};
  line.insert(line.end(), options.begin(), options.end());
  SYNCOPATE_ASSIGN_OR_RETURN(CommandWords read, command_words(line));
  GivenOptions& given = read.given;
  DevicePrediction prediction;
  SYNCOPATE_ASSIGN_OR_RETURN(prediction.device, open_device(taken(given, "device", "")));
  const std::string precision = taken(given, "precision", prediction.device.precisions().front());
  const Result<double> rate = rate_of(prediction.device, precision);
  if (!rate.ok()) return rate.status().in("--precision=" + precision);
  prediction.peak = {.flops_per_second = *rate, .bytes_per_second = prediction.device.bytes_per_second};
  SYNCOPATE_ASSIGN_OR_RETURN(prediction.is_captured, is_on("cuda-graphs", taken(given, "cuda-graphs", "on")));
  SYNCOPATE_RETURN_IF_ERROR(check_given(given));
  SYNCOPATE_ASSIGN_OR_RETURN(prediction.config, resolved_of(given));
  prediction.config.precision = precision_named(precision);
  SYNCOPATE_ASSIGN_OR_RETURN(prediction.work, step_work(prediction.config));
  return prediction;
}

std::string device_prediction_text(const DevicePrediction& prediction) {
  std::string notes;
  for (const std::string& line : {memory_line(prediction), launches_line(prediction), measured_line(prediction),
                                  rates_line(prediction), std::string(kWhatItIs)}) {
    if (!line.empty()) notes += wrapped(line, 0, kColumns);
  }
  return wrapped(headline(prediction), 0, kColumns) + "\n" + parts_table(prediction) + "\n" +
         operations_table(prediction) + "\n" + notes;
}

}  // namespace syncopate::experiments
