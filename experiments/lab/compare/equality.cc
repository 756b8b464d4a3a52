#include "experiments/lab/compare/equality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "experiments/cluster/process/data_of.h"
#include "experiments/config/comparison.h"
#include "experiments/lab/run/initial_weights.h"

namespace syncopate::experiments {
namespace {

// Long enough for every tensor to move and for a difference in data order or update rule to show; short enough for
// rounding not to grow.
constexpr std::int64_t kSteps = 30;
// Occasionally training still magnifies rounding: a ReLU whose input is within rounding of zero is on in one mode and
// off in another. That depends on the seed; a fault does not.
constexpr std::uint64_t kSeeds = 3;
// An epsilon is raised to this value. Gradients that are only rounding (such as those of a softmax's keys' biases) are
// far below it; all others are not.
constexpr double kLeastEpsilon = 1e-4;
// A weight decay is raised to this value. If it were left out, it would be more than 1 % of the movement.
constexpr double kLeastDecay = 1e-3;
constexpr double kLeastDecoupledDecay = 0.05;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double distance(std::span<const float> first, std::span<const float> second) {
  double sum = 0;
  for (std::size_t i = 0; i < first.size(); ++i) sum += std::pow(static_cast<double>(first[i]) - second[i], 2);
  return std::isfinite(sum) ? std::sqrt(sum) : kInfinite;
}

double length(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::pow(static_cast<double>(value), 2);
  return std::sqrt(sum);
}

EqualityGap gap_of(const std::string& tensor, std::span<const float> initial, std::span<const float> expected,
                   std::span<const float> actual) {
  const double moved = distance(expected, initial), apart = distance(expected, actual), began = length(initial);
  if (!std::isfinite(moved) || !std::isfinite(apart))
    return {EqualityGap::Verdict::kUnequal, tensor, kInfinite, kInfinite};
  const double movement = began > 0 ? moved / began : moved > 0 ? kInfinite : 0;
  const double gap = moved > 0 ? apart / moved : apart > 0 ? kInfinite : 0;
  if (movement >= kLeastMovement) {
    return {gap <= kEqualityTolerance ? EqualityGap::Verdict::kEqual : EqualityGap::Verdict::kUnequal, tensor, gap,
            movement};
  }
  const bool only_other_moved = apart > kLeastMovement * began;
  return {only_other_moved ? EqualityGap::Verdict::kUnequal : EqualityGap::Verdict::kNotShown, tensor, gap, movement};
}

// Returns whether `first` matters more than `second`: unequal, then not shown, then equal; within these, by size.
bool outweighs(const EqualityGap& first, const EqualityGap& second) {
  const auto weight = [](EqualityGap::Verdict verdict) {
    return verdict == EqualityGap::Verdict::kUnequal ? 2 : verdict == EqualityGap::Verdict::kNotShown ? 1 : 0;
  };
  if (first.verdict != second.verdict) return weight(first.verdict) > weight(second.verdict);
  return first.verdict == EqualityGap::Verdict::kNotShown ? first.movement < second.movement : first.gap > second.gap;
}

// Returns each mode as it is in step, as in "local,allreduce,ps:sync".
std::string modes_in_step(bool with_local, const std::vector<Mode>& modes_of_rows) {
  std::vector<std::string> modes;
  for (const ModeTraits& each : kModeTraits) {
    if (!each.is_reference() && std::ranges::find(modes_of_rows, each.mode) == modes_of_rows.end()) continue;
    if (each.is_distributed || with_local) modes.emplace_back(each.in_step);
  }
  return fmt::to_string(fmt::join(modes, ","));
}

struct Trained {
  std::string label;
  JobResult result;
};

EqualityOutcome failure(const Status& status) { return {exit_code_of(status), false, status.message()}; }

// Returns, for example, "local, allreduce and ps:sync".
std::string names_of(const std::vector<Trained>& runs) {
  std::string names = runs.front().label;
  for (std::size_t i = 1; i < runs.size(); ++i) names += (i + 1 < runs.size() ? ", " : " and ") + runs[i].label;
  return names;
}

std::string settings_of(const RunRequest& job) {
  return fmt::format("{} steps of {} at a rate of {:g}{}", kSteps, name_of(job.optimizer), learning_rate_of(job),
                     job.weight_decay > 0 ? fmt::format(" and a weight decay of {:g}", job.weight_decay) : "");
}

// The gap that matters most, and the run that it belongs to.
struct Finding {
  EqualityGap gap;
  std::string label;
};

Result<Finding> compare_with_first(const RunRequest& job, const std::vector<Trained>& runs) {
  const JobResult& reference = runs.front().result;
  SYNCOPATE_ASSIGN_OR_RETURN(const ModelWeights initial, initial_weights(job, reference.rows));
  std::optional<Finding> found;
  for (const Trained& run : std::span(runs).subspan(1)) {
    const EqualityGap gap = run.result.rows == reference.rows
                                ? equality_gap(initial.layout, initial.values, reference.weights, run.result.weights)
                                : EqualityGap{EqualityGap::Verdict::kUnequal, "the choice of rows", kInfinite, 0};
    if (!found || outweighs(gap, found->gap)) found = {gap, run.label};
  }
  return *found;
}

std::string sentence_of(const RunRequest& base, const RunRequest& job, const std::vector<Trained>& runs,
                        const Finding& found) {
  const EqualityGap& gap = found.gap;
  switch (gap.verdict) {
    case EqualityGap::Verdict::kUnequal:
      return fmt::format(
          "{} does not follow the curve of {}: after {}, with each of {} seeds, weights lie apart by more than "
          "rounding, {} by {:.2g} of the way that it has gone (tolerance {:.0e}); a comparison would compare more than "
          "the mode",
          found.label, runs.front().label, settings_of(job), kSeeds, gap.tensor, gap.gap, kEqualityTolerance);
    case EqualityGap::Verdict::kNotShown:
      return fmt::format(
          "equality: not shown for {}: after {} {} has moved by {:.1e} of its length, less than the {:.0e} from which "
          "a difference can be told from rounding",
          names_of(runs), settings_of(job), gap.tensor, gap.movement, kLeastMovement);
    case EqualityGap::Verdict::kEqual:
      break;
  }
  return fmt::format(
             "equality: {} follow the same curve{}: after {} no tensor lies further apart than {:.0e} of the way that "
             "it has "
             "gone ({}; tolerance {:.0e}){}",
             names_of(runs), compresses(base) ? " without --compress" : "", settings_of(job), gap.gap, gap.tensor,
             kEqualityTolerance, job.seed == base.seed ? "" : fmt::format(", with seed {}", job.seed)) +
         (sums_something(job) ? "" : "; one worker sums nothing, so that this shows little");
}

}  // namespace

EqualityGap equality_gap(const ParamLayout& layout, std::span<const float> initial, std::span<const float> expected,
                         std::span<const float> actual) {
  const std::size_t size = layout.size();
  if (initial.size() != size || expected.size() != size || actual.size() != size) {
    return {EqualityGap::Verdict::kUnequal, "the number of weights", kInfinite, kInfinite};
  }
  std::optional<EqualityGap> worst;
  for (const TensorSpec& tensor : layout.tensors()) {
    const EqualityGap gap =
        gap_of(tensor.name, slice(initial, tensor.range), slice(expected, tensor.range), slice(actual, tensor.range));
    if (!worst || outweighs(gap, *worst)) worst = gap;
  }
  return worst.value_or(EqualityGap{});
}

bool sums_something(RunRequest job) {
  job.mode = Mode::kAllreduce;
  return workers_of(job) > 1;
}

RunRequest equality_job(const RunRequest& base) {
  RunRequest job = base;
  job.epochs = 0;
  job.steps = kSteps;
  job.repeat = 1;
  job.warmup_steps = 0;
  job.target_accuracy = 0;
  job.stragglers = {};    // slow workers change no weight
  job.sample_costs = {};  // nor do samples that take longer
  if (worker::stashes_weights(job.pipeline_schedule)) job.pipeline_schedule = RunRequest().pipeline_schedule;
  job.faults = {};                           // a run with faults proves nothing
  job.shape.reset();                         // the speed of links changes no weight
  job.backup_workers = 0;                    // with them, sync uses other gradients each time
  job.precision = worker::Precision::kFp32;  // rounding of factors would be magnified like that of sums
  job.compress = {};                         // the loss of a codec is not a rounding of sums
  job.learning_rate = traits_of(job.optimizer).equality_rate;
  job.lr_schedule = {};  // a warm-up would hardly have begun
  if (job.weight_decay > 0) {
    job.weight_decay =
        std::max(job.weight_decay, job.optimizer == OptimizerChoice::kAdamW ? kLeastDecoupledDecay : kLeastDecay);
  }
  job.epsilon = std::max(job.epsilon, kLeastEpsilon);
  // Nobody wants to watch it.
  job.trace.reset();
  job.tensorboard = false;
  job.metrics.reset();
  return job;
}

EqualityOutcome check_equality(const RunRequest& base, const std::vector<Mode>& modes_of_rows,
                               const std::set<std::string>& ways, const std::string& folder, const Resolver& resolver,
                               const JobRunner& runner) {
  RunRequest job = equality_job(base);
  const Result<ParamLayout> local_layout = local_state_layout_of(base);
  if (!local_layout.ok()) return failure(local_layout.status());
  const bool norms_batches = local_layout->size() > 0;
  RunRequest distributed = base;
  distributed.mode = Mode::kAllreduce;
  const bool has_parts = has_samples_of_its_own(distributed);
  // With batch norm a worker's moments are those of its own batch, while local has all workers' batch; and local has no
  // parts by label.
  const bool with_local = !norms_batches && !has_parts;
  std::string modes = modes_in_step(with_local, modes_of_rows);
  std::vector<std::string> left_out;
  for (const std::string& way : ways) {
    const bool cuts_batches = !way.ends_with(name_of(WeightGather::kOnDemand)) || base.microbatches.value_or(1) > 1;
    if (norms_batches && cuts_batches) {
      left_out.push_back(way);
    } else {
      modes += "," + way;
    }
  }
  EqualityOutcome outcome;
  for (std::uint64_t attempt = 0; attempt < kSeeds; ++attempt) {
    job.seed = base.seed + attempt;
    const Result<std::vector<ComparedRun>> runs = comparison_runs(job, modes);
    if (!runs.ok()) return {ExitCode::kUsage, false, runs.status().message()};
    std::vector<Trained> trained;
    for (const ComparedRun& run : *runs) {
      Result<ResolvedRun> config = resolver(run.config);
      if (!config.ok()) return failure(config.status());
      std::string name = run.label + (attempt == 0 ? "" : fmt::format("-seed-{}", job.seed));
      std::ranges::replace(name, ':', '-');
      config->output = fmt::format("{}/{}", folder, name);
      trained.push_back({run.label, runner(*config)});
      const JobResult& result = trained.back().result;
      if (result.exit != ExitCode::kSuccess) return {result.exit, false, result.verdict};
    }
    const Result<Finding> found = compare_with_first(job, trained);
    if (!found.ok()) return failure(found.status());
    const bool is_unequal = found->gap.verdict == EqualityGap::Verdict::kUnequal;
    outcome = {is_unequal ? ExitCode::kUnequal : ExitCode::kSuccess, found->gap.verdict == EqualityGap::Verdict::kEqual,
               sentence_of(base, job, trained, *found)};
    if (norms_batches) outcome.line += "; local is left out, whose batch norms see all workers' batches as one";
    for (const std::string& way : left_out) {
      outcome.line += fmt::format("; {} is left out, whose batch norms see a microbatch at a time", way);
    }
    if (has_parts) outcome.line += "; local is left out, which has no workers to divide the samples among";
    if (!is_unequal) break;
  }
  return outcome;
}

}  // namespace syncopate::experiments
