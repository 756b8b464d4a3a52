#include "experiments/lab/run/simulated_compute_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/text/format.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/profile_choice.h"

namespace syncopate::experiments {
namespace {

std::string milliseconds_text(Duration duration) { return format_ms(seconds(duration) * 1e3) + " ms"; }

// Returns "update 4.1 GB/s, sum 11 GB/s, as measured", or nothing where nothing takes time.
std::string processing_text(const ProcessingTimes& times, const char* source) {
  const auto rate = [](const char* what, double seconds_per_byte) {
    return seconds_per_byte > 0 ? fmt::format("{} {:.3g} GB/s, ", what, 1e-9 / seconds_per_byte) : std::string();
  };
  const std::string rates = rate("update", times.update) + rate("sum", times.sum) + rate("encode", times.encode) +
                            rate("decode", times.decode);
  return rates.empty() ? "" : rates + source;
}

// Returns the FLOPs of a worker's forward pass: a profile says them, a model counts its own.
Result<double> forward_flops_of(const ResolvedRun& config) {
  double flops_per_sample = 0;
  if (is_profile(config)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, profile_of(config));
    flops_per_sample = profile.forward_flops();
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
    const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                               worker::make_model(model_spec(config), form, 1, *backend));
    flops_per_sample = model->flops_per_sample();
  }
  if (flops_per_sample > 0) return flops_per_sample * config.batch_size;
  return Status::invalid_argument(
      fmt::format("--compute={}: {} says nothing of its FLOPs; give the time of a step, as in --compute=5ms",
                  config.compute.to_string(), config.model));
}

// Returns how long a step takes where that is not measured, and says in `facts` where it comes from.
Result<Duration> given_step(const ResolvedRun& config, SimulationFacts& facts) {
  if (config.compute.step) {
    facts.compute = fmt::format("{} a step, as given, a third of it forward", milliseconds_text(*config.compute.step));
    return *config.compute.step;
  }
  if (!config.compute.device.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::TypicalStep typical, device_step_of(config));
    const Duration step = from_seconds(typical.seconds);
    facts.compute = fmt::format("{} a step, a third of it forward: typical of {}, not measured on yours: {}",
                                milliseconds_text(step), config.compute.device, typical.basis);
    return step;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const double forward_flops, forward_flops_of(config));
  constexpr double kPasses = 3;  // backward does each product of the forward pass twice
  const Duration step = from_seconds(kPasses * forward_flops / *config.compute.flops_per_second);
  facts.compute = fmt::format("{} a step: {} GFLOPs, a third of them forward, at {}", milliseconds_text(step),
                              format_count(kPasses * forward_flops / 1e9), config.compute.to_string());
  return step;
}

// Returns the times of a model's tensors for a batch, as measured for a profile; in proportion, for another batch size.
Result<ComputeTimes> times_by_profile(const prediction::ModelProfile& profile, const ParamLayout& layout,
                                      int batch_size) {
  const auto are_same = [](const prediction::TensorProfile& one, const TensorSpec& other) {
    return one.name == other.name && one.shape == other.shape;
  };
  if (!std::ranges::equal(profile.tensors, layout.tensors(), are_same)) {
    return Status::invalid_argument(
        fmt::format("the profile of {} has other tensors than the model that the run trains; measure it anew with "
                    "`run_experiment profile`",
                    profile.model));
  }
  ComputeTimes times;
  const double stretch = static_cast<double>(batch_size) / profile.batch_size;
  for (const prediction::TensorProfile& tensor : profile.tensors) {
    times.forward.push_back(from_seconds(stretch * tensor.forward_seconds));
    times.backward.push_back(from_seconds(stretch * tensor.backward_seconds));
  }
  return times;
}

// Returns how long a step takes, and says in `facts` where that comes from.
Result<ComputeTimes> computing_of(const ResolvedRun& config, const ParamLayout& layout, SoloTimes& solo,
                                  SimulationFacts& facts) {
  if (config.compute.is_solo()) {
    SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, solo.computing(config));
    facts.compute = fmt::format("{} a step, {} of it forward, measured on this machine, alone, before its first run",
                                milliseconds_text(times.step()), milliseconds_text(times.forward_pass()));
    return times;
  }
  if (!config.compute.profile.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, compute_profile_of(config));
    SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, times_by_profile(profile, layout, config.batch_size));
    const bool is_own = config.compute.profile == ComputeModel::kOwnProfile;
    const bool is_stretched = profile.batch_size != config.batch_size;
    facts.compute = fmt::format(
        "{} a step, {} of it forward, by {}{}: {}", milliseconds_text(times.step()),
        milliseconds_text(times.forward_pass()),
        is_own ? "the model's profile" : "the profile " + config.compute.profile,
        is_stretched ? fmt::format(", in proportion from batches of {} to {}", profile.batch_size, config.batch_size)
                     : "",
        profile.source);
    return times;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Duration step, given_step(config, facts));
  return divided(step, layout);
}

ProcessingTimes processing_of(const ResolvedRun& config, const ParamLayout& layout, SoloTimes& solo,
                              SimulationFacts& facts) {
  using Source = ProcessingModel::Source;
  if (config.processing.source == Source::kNone) return {};
  ProcessingTimes times;
  if (config.processing.source == Source::kSolo) {
    times = solo.processing(config, layout);
  } else {
    const auto inverse = [](double rate) { return rate > 0 ? 1 / rate : 0; };
    times = {.sum = inverse(config.processing.sum),
             .update = inverse(config.processing.update),
             .encode = inverse(config.processing.encode),
             .decode = inverse(config.processing.decode)};
  }
  facts.processing = processing_text(
      times, config.processing.source == Source::kSolo ? "measured on this machine, alone" : "as given");
  return times;
}

std::string without_time(const ResolvedRun& config, const ProcessingTimes& times) {
  const bool encodes = compresses(config) && may_compress(config);
  const bool has_products = encodes && codec_of(config).kind == CodecKind::kPowerSgd;
  std::vector<std::string> parts;
  if (times.sum == 0) parts.emplace_back("sums");
  if (times.update == 0) parts.emplace_back("updates");
  if (encodes && !has_products && times.encode == 0) parts.emplace_back("encoding");
  if (encodes && !has_products && times.decode == 0) parts.emplace_back("decoding");
  if (has_products) parts.emplace_back("PowerSGD's products");
  parts.insert(parts.end(), {"evaluation", "reading data"});
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Result<SimulatedCompute> simulated_compute_of(const ResolvedRun& config, const ParamLayout& layout, SoloTimes& solo,
                                              SimulationFacts& facts) {
  ProcessingTimes processing = processing_of(config, layout, solo, facts);
  facts.without_time = without_time(config, processing);
  if (config.described_cluster) facts.cluster = config.described_cluster->file;
  if (runs_command(config) && config.compute.is_solo()) {
    facts.compute = "as each rank of the script took for each step, alone on this machine";
    return SimulatedCompute{.times = {}, .processing = processing};
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, computing_of(config, layout, solo, facts));
  if (!is_profile(config)) return SimulatedCompute{.times = std::move(times), .processing = processing};
  SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, profile_of(config));
  const std::int64_t scale = scale_for(profile, config);
  facts.profile =
      fmt::format("sizes and FLOPs by {}; nothing is computed, and one element stands for {}", profile.source, scale);
  for (double* each : {&processing.sum, &processing.update, &processing.encode, &processing.decode}) {
    *each *= static_cast<double>(scale);
  }
  return SimulatedCompute{.times = phantom_times(profile, times.step(), scale),
                          .processing = processing,
                          .phantom = make_phantom(profile, scale)};
}

double simulated_timeout_of(const ResolvedRun& config, const ParamLayout& layout) {
  const LinkShape link = config.shape.value_or(usual_simulated_link());
  const double bytes = static_cast<double>(layout.parameter_count() * sizeof(float)) * config.workers;
  constexpr double kThereAndBack = 2, kPatience = 2;
  const double needed = std::ceil(kPatience * kThereAndBack * bytes / link.payload_bytes_per_second());
  return config.timeout_seconds == RunSettings().timeout_seconds ? std::max(config.timeout_seconds, needed)
                                                                 : config.timeout_seconds;
}

}  // namespace syncopate::experiments
