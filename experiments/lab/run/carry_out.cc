#include "experiments/lab/run/carry_out.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "common/text/format.h"
#include "experiments/cluster/coordinator/host_runtime.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/simulated/simulated_cluster.h"
#include "experiments/config/profile_choice.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {
namespace {

std::unique_ptr<Launcher> launcher_of(const ResolvedRun& config) {
  return config.launcher == LauncherKind::kMpirun ? make_mpirun_launcher() : make_local_launcher();
}

// Returns the size of the largest message of a process: all weights, and the numbers of all rows.
std::int64_t largest_frame_of(const ParamLayout& layout) {
  constexpr std::size_t kBesides = std::size_t{64} << 20;
  return static_cast<std::int64_t>(kBesides + 2 * sizeof(float) * layout.parameter_count());
}

// Each run has a secret of its own.
Result<ListenOptions> listen_options_of(const ResolvedRun& config, const ParamLayout& layout) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::make());
  return ListenOptions{.keys = keys,
                       .address = spans_hosts(config) ? config.listen_address : "",
                       .largest_frame = largest_frame_of(layout)};
}

Result<RunOutcome> run_on_hosts(const RunToCarryOut& run, RunObserver& observer, Interrupts& interrupts) {
  SYNCOPATE_ASSIGN_OR_RETURN(ListenOptions listen, listen_options_of(run.config, run.layout));
  const std::unique_ptr<Launcher> launcher = launcher_of(run.config);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ClusterRuntime> runtime,
      make_host_runtime(run.plan,
                        {.program = own_program(), .log_directory = run.log_directory, .listen = std::move(listen)},
                        *launcher, interrupts));
  return coordinate(run.config, run.plan, run.options, *runtime, observer);
}

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
    SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form,
                               worker::sample_form(dataset_spec(config), config.data_dir));
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
Result<ComputeTimes> computing_of(const RunToCarryOut& run, SoloTimes& solo, SimulationFacts& facts) {
  if (run.config.compute.is_solo()) {
    SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, solo.computing(run.config));
    facts.compute = fmt::format("{} a step, {} of it forward, measured on this machine, alone, before its first run",
                                milliseconds_text(times.step()), milliseconds_text(times.forward_pass()));
    return times;
  }
  if (!run.config.compute.profile.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, compute_profile_of(run.config));
    SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, times_by_profile(profile, run.layout, run.config.batch_size));
    const bool is_own = run.config.compute.profile == ComputeModel::kOwnProfile;
    const bool is_stretched = profile.batch_size != run.config.batch_size;
    facts.compute = fmt::format("{} a step, {} of it forward, by {}{}: {}", milliseconds_text(times.step()),
                                milliseconds_text(times.forward_pass()),
                                is_own ? "the model's profile" : "the profile " + run.config.compute.profile,
                                is_stretched ? fmt::format(", in proportion from batches of {} to {}",
                                                           profile.batch_size, run.config.batch_size)
                                             : "",
                                profile.source);
    return times;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Duration step, given_step(run.config, facts));
  return divided(step, run.layout);
}

Result<ProcessingTimes> processing_of(const ResolvedRun& config, SoloTimes& solo, SimulationFacts& facts) {
  using Source = ProcessingModel::Source;
  if (config.processing.source == Source::kNone) return ProcessingTimes();
  ProcessingTimes times;
  if (config.processing.source == Source::kSolo) {
    SYNCOPATE_ASSIGN_OR_RETURN(times, solo.processing(config));
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

Result<SimulatedCompute> compute_of(const RunToCarryOut& run, SoloTimes& solo, SimulationFacts& facts) {
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, computing_of(run, solo, facts));
  SYNCOPATE_ASSIGN_OR_RETURN(ProcessingTimes processing, processing_of(run.config, solo, facts));
  facts.without_time = without_time(run.config, processing);
  if (run.config.described_cluster) facts.cluster = run.config.described_cluster->file;
  if (!is_profile(run.config)) return SimulatedCompute{.times = std::move(times), .processing = processing};
  SYNCOPATE_ASSIGN_OR_RETURN(const prediction::ModelProfile profile, profile_of(run.config));
  const std::int64_t scale = scale_for(profile, run.config);
  facts.profile =
      fmt::format("sizes and FLOPs by {}; nothing is computed, and one element stands for {}", profile.source, scale);
  for (double* each : {&processing.sum, &processing.update, &processing.encode, &processing.decode}) {
    *each *= static_cast<double>(scale);
  }
  return SimulatedCompute{.times = phantom_times(profile, times.step(), scale),
                          .processing = processing,
                          .phantom = make_phantom(profile, scale)};
}

// Sees a phantom's run as that of the whole model.
class WholeModelObserver final : public RunObserver {
 public:
  WholeModelObserver(RunObserver& observer, std::int64_t scale) : observer_(observer), scale_(scale) {}

  void on_training_begins(TimePoint now) override { observer_.on_training_begins(now); }
  void on_steps(int worker, std::span<const StepRecord> steps) override {
    std::vector<StepRecord> whole(steps.begin(), steps.end());
    for (StepRecord& step : whole) {
      step.sync.bytes_out *= scale_;
      step.sync.bytes_in *= scale_;
    }
    observer_.on_steps(worker, whole);
  }
  void on_evaluation(const EvaluationResult& result) override { observer_.on_evaluation(result); }
  // They are of the phantom, and all zero.
  void on_final_weights(std::span<const float>, std::span<const float>, const TableKeys&) override {}
  void on_worker_lost(int rank) override { observer_.on_worker_lost(rank); }
  void on_worker_joined(int rank) override { observer_.on_worker_joined(rank); }
  void on_fact(const std::string& name, const std::string& value) override { observer_.on_fact(name, value); }
  void on_report(const std::string& line) override { observer_.on_report(line); }
  Status on_tick(TimePoint now) override { return observer_.on_tick(now); }

 private:
  RunObserver& observer_;
  const std::int64_t scale_;
};

Result<RunOutcome> simulate_as_asked(const RunToCarryOut& run, const SimulatedCompute& compute, RunObserver& observer,
                                     Interrupts& interrupts) {
  if (!compute.phantom) {
    return simulate(run.config, run.plan, run.options, compute, run.log_directory, observer, interrupts);
  }
  const SharedZeros zeros(compute.phantom->layout.size());
  const ResolvedRun config = scaled_down(run.config, compute.scale());
  WholeModelObserver whole(observer, compute.scale());
  return simulate(config, run.plan, run.options, compute, run.log_directory, whole, interrupts);
}

Result<RunOutcome> run_simulated(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer,
                                 Interrupts& interrupts, SimulationFacts& facts) {
  if (run.config.mode != Mode::kLocal) facts.network = name_of(run.config.network);
  SYNCOPATE_ASSIGN_OR_RETURN(const SimulatedCompute compute, compute_of(run, solo, facts));
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  Result<RunOutcome> outcome = simulate_as_asked(run, compute, observer, interrupts);
  facts.wall_seconds += seconds(clock.now() - begin);
  return outcome;
}

}  // namespace

Result<RunOutcome> carry_out(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer, Interrupts& interrupts,
                             std::optional<SimulationFacts>& facts) {
  if (run.config.cluster == ClusterKind::kReal) return run_on_hosts(run, observer, interrupts);
  if (!facts) facts.emplace();
  return run_simulated(run, solo, observer, interrupts, *facts);
}

}  // namespace syncopate::experiments
