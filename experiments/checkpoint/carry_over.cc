#include "experiments/checkpoint/carry_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "common/os/whole_file.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/part_writer.h"
#include "experiments/checkpoint/run_facts.h"
#include "ps/server/shard_state.h"
#include "ps/tables/row_partition.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

using Facts = std::map<std::string, std::string>;

// How the same is learnt, which may differ.
constexpr std::array<std::string_view, 20> kMayDiffer{
    "--mode",           "--workers",    "--batch-size",          "--consistency",     "--staleness-lr",
    "--shard",          "--shuffle",    "--delay-compensation",  "--compress",        "--compress-answers",
    "--int8-rounding",  "--gossip",     "--momentum-correction", "--compress-warmup", "--compress-momentum",
    "--backup-workers", "--sync-every", "--elastic-alpha",       "--compress-decay",  kStagesFact};

// What the checkpoint's run was, as far as its facts say.
struct Predecessor {
  ps::Consistency consistency = {};
  bool had_servers = false;
  int workers = 1;
  std::int64_t batch_size = 1;

  std::int64_t global_batch() const { return batch_size * workers; }
  // Whether each of its steps was one of all workers.
  bool goes_in_step() const { return !had_servers || consistency.updates_together(); }
};

// Returns an empty text for what a run has not.
std::string fact(const Facts& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() || found->second == "none" ? std::string() : found->second;
}

// The length in steps follows from the batch.
bool has_another_batch(const Facts& there, const Facts& here) {
  return fact(there, "--workers") != fact(here, "--workers") ||
         fact(there, "--batch-size") != fact(here, "--batch-size");
}

std::string shown(const std::string& value) { return value.empty() ? "none" : printable(value); }

Result<Predecessor> predecessor_in(const Manifest& manifest) {
  const auto wrong = [](const std::string& name, const std::string& value) {
    return Status::data_loss(fmt::format("its manifest has {} for {}", shown(value), name));
  };
  const auto mode = std::ranges::find(kModeTraits, fact(manifest.facts, "--mode"), &ModeTraits::name);
  Predecessor run{.had_servers = mode != kModeTraits.end() && mode->has_servers_alone()};
  const std::string workers = fact(manifest.facts, "--workers"), batch = fact(manifest.facts, "--batch-size");
  const auto number_of_workers = parse_number<int>(workers);
  const auto samples = parse_number<std::int64_t>(batch);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  if (!number_of_workers || *number_of_workers < 1) return wrong("--workers", workers);
  if (!samples || *samples < 1 || *samples > kMost) return wrong("--batch-size", batch);
  run.workers = *number_of_workers;
  run.batch_size = *samples;
  if (!run.had_servers) return run;
  const std::string consistency = fact(manifest.facts, "--consistency");
  Result<ps::Consistency> parsed = ps::Consistency::parse(consistency);
  if (!parsed.ok()) return wrong("--consistency", consistency);
  run.consistency = *parsed;
  return run;
}

// Returns why a run with these facts can neither leave a state for another kind nor take one up; empty: it can.
std::string obstacle(const Facts& facts, bool pushes_weights) {
  const auto given = [&](const char* name, std::string_view usual) {
    const std::string value = fact(facts, name);
    return value.empty() || value == usual ? std::string() : fmt::format("{}={}", name, shown(value));
  };
  if (pushes_weights) return given("--consistency", "") + ": each worker has weights of its own beside the servers'";
  for (const char* name : {"--sync-every", "--gossip"}) {
    const std::string option = given(name, name == std::string_view("--gossip") ? "off" : "1");
    if (!option.empty()) return option + ": each worker has weights of its own, and there are no common ones";
  }
  if (const std::string option = given("--backup-workers", "0"); !option.empty()) {
    return option + ": gradients were dropped, so that nobody knows what of the data was learnt";
  }
  if (const std::string option = given("--adam-freeze-variance", ""); !option.empty()) {
    return option + ": what is remembered depends on the updates made since the variance was frozen";
  }
  return {};
}

worker::BatchOrder order_of(const Successor& run, std::int64_t batch_size, int workers) {
  return {.dataset_size = run.train_samples,
          .batch_size = static_cast<int>(batch_size),
          .workers = workers,
          .drop_last = run.config.drop_last};
}

// By the names of what workers and servers keep beside weights.
std::set<std::string> parts_left(const Manifest& manifest) {
  std::set<std::string> left;
  for (const StoredPart& part : manifest.parts) {
    for (const StoredFile& file : part.files) {
      const std::string& name = file.part;
      if (name == ps::shard_part::kSum) {
        left.insert("gradients that servers had summed, and that had made no update yet");
      } else if (name == ps::shard_part::kMeanSquare) {
        left.insert("the mean square of gradients, which adaptive delay compensation goes by");
      } else if (name == ps::shard_part::kMirror) {
        left.insert("the weights as compressed answers had brought them to the workers");
      } else if (name.starts_with("velocity")) {
        left.insert("each worker's velocity (--compress-momentum)");
      } else if (name.starts_with("local_state")) {
        left.insert("each worker's own running moments: all workers begin with the mean of them");
      } else if (owner_of(name) >= 0) {
        left.insert("what each worker's codec had kept back (error feedback)");
      }
    }
  }
  return left;
}

std::string differences_text(const std::vector<std::string>& differences) {
  std::string text;
  for (const std::string& one : differences) text += (text.empty() ? "" : ", ") + one;
  return text;
}

// Returns how many updates a chunk has made once all workers have trained `step` steps, and how many pushes each of
// them has made.
ps::ChunkCounts counts_at(std::int64_t step, const ResolvedRun& config) {
  const ps::Consistency consistency = consistency_of(config);
  const std::int64_t pushes = step / consistency.period();
  ps::ChunkCounts counts{
      .version = pushes * config.workers / consistency.pushes_an_update(config.workers, config.workers),
      .clocks = ps::Clocks(config.workers)};
  std::ranges::fill(counts.clocks.pushes, pushes);
  return counts;
}

// Moments of adam are weighted means that begin at zero: after n updates, a bias correction of 1 - beta^n makes up for
// that. Where the number changes, they are scaled so that what the correction makes of them stays the same.
void rescale(std::span<float> moments, float beta, std::int64_t before, std::int64_t after) {
  if (before < 1 || after < 1 || before == after) return;
  const auto weight = [&](std::int64_t updates) { return 1 - std::pow(static_cast<double>(beta), updates); };
  const auto factor = static_cast<float>(weight(after) / weight(before));
  for (float& value : moments) value *= factor;
}

// How many updates the weights of a piece have had.
std::int64_t updates_of_piece(const TrainingState& state, std::size_t begin, std::int64_t steps) {
  std::int64_t updates = steps;
  for (const Range& piece : state.pieces(state_part::kWeights)) {
    if (piece.begin > begin) break;
    const auto counts = state.counts.find(ps::shard_part::chunk_at(piece.begin));
    updates = counts != state.counts.end() && !counts->second.empty() ? counts->second.front() : steps;
  }
  return updates;
}

// The same for the rows of tables, which have weights, first and second moments behind each other.
void rescale_rows(const OptimizerConfig& optimizer, std::int64_t steps, std::int64_t after, TrainingState& state) {
  for (auto& [table, rows] : state.rows) {
    std::vector<std::int64_t> updates = ps::table_updates(table, state);
    if (updates.empty()) updates = {steps};  // of a run without servers
    const std::size_t width = rows.row_floats / 3;
    if (rows.values.size() != rows.keys.size() * 3 * width) continue;  // restoring says what is wrong
    for (std::size_t i = 0; i < rows.keys.size(); ++i) {
      const std::int64_t before = updates[ps::shard_of_row(table, rows.keys[i], updates.size())];
      const std::span<float> moments = std::span(rows.values).subspan(i * rows.row_floats + width, 2 * width);
      rescale(moments.first(width), optimizer.beta1, before, after);
      rescale(moments.last(width), optimizer.beta2, before, after);
    }
  }
}

void drop_foreign_parts(const ResolvedRun& config, TrainingState& state) {
  TrainingState kept;
  kept.step = state.step;
  const std::size_t memories = state_floats(optimizer_of(config));
  std::vector<std::string> names{state_part::kWeights};
  for (std::size_t i = 0; i < memories; ++i) names.emplace_back(state_part::kOptimizer[i]);
  for (const std::string& name : names) {
    for (const Range& piece : state.pieces(name)) kept.put(name, piece.begin, state.values(name, piece));
  }
  kept.rows = std::move(state.rows);
  kept.counts = std::move(state.counts);
  state = std::move(kept);
}

// Returns the mean of these workers' local states; empty: there are none.
Result<std::vector<float>> mean_local_state(const Checkpoint& from, const StateForms& forms, int begin, int end) {
  if (forms.local_size() == 0) return std::vector<float>();
  std::vector<double> sum(forms.local_size());
  std::vector<float> one(forms.local_size());
  int found = 0;
  for (int worker = begin; worker < end; ++worker) {
    TrainingState state;
    SYNCOPATE_RETURN_IF_ERROR(from.read(forms, {.worker = worker, .alone = true}, state));
    const std::string name = state_part::local_state_of(worker);
    if (state.pieces(name).empty()) continue;
    SYNCOPATE_RETURN_IF_ERROR(state.read(name, {0, one.size()}, one));
    for (std::size_t i = 0; i < one.size(); ++i) sum[i] += static_cast<double>(one[i]);
    ++found;
  }
  std::vector<float> mean;
  for (const double value : sum) mean.push_back(static_cast<float>(value / std::max(found, 1)));
  return found > 0 ? mean : std::vector<float>();
}

}  // namespace

Result<std::optional<CarryOver>> plan_carry_over(const Manifest& manifest, const Successor& run) {
  CarryOver plan;
  Facts all = manifest.facts;
  all.insert(run.facts.begin(), run.facts.end());
  bool may_differ = true;
  for (const auto& [name, value] : all) {
    const std::string there = fact(manifest.facts, name), here = fact(run.facts, name);
    if (there == here) continue;
    may_differ = may_differ && (std::ranges::find(kMayDiffer, name) != kMayDiffer.end() ||
                                (name == kLengthFact && has_another_batch(manifest.facts, run.facts)));
    plan.differences.push_back(fmt::format("{} is {} there and {} here", printable(name), shown(there), shown(here)));
    // What one of the two has alone follows from its mode.
    if ((!there.empty() && !here.empty()) || name == kStagesFact) plan.choices.push_back(plan.differences.back());
  }
  if (plan.differences.empty()) return std::optional<CarryOver>();
  if (!may_differ) {
    return Status::invalid_argument(
        fmt::format("is of another run: {}; give the run the options that it had, as its config.toml has them; only "
                    "mode, workers, batch, consistency and compression may be others",
                    differences_text(plan.differences)));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Predecessor before, predecessor_in(manifest));
  const ResolvedRun& config = run.config;
  const auto refused = [&](const std::string& what, const std::string& why) {
    return Status::invalid_argument(
        fmt::format("cannot be carried over ({}): {} has {}", differences_text(plan.differences), what, why));
  };
  if (const std::string why = obstacle(manifest.facts, before.had_servers && before.consistency.pushes_weights());
      !why.empty()) {
    return refused("its run", why);
  }
  if (const std::string why = obstacle(run.facts, has_servers(config) && config.consistency.pushes_weights());
      !why.empty()) {
    return refused("this run", why);
  }
  ResolvedRun there = config;
  there.consistency = before.consistency;
  there.workers = before.workers;
  there.backup_workers = 0;
  there.pipeline = there.tensor = 1;  // a run whose workers go at their own pace, and that has checkpoints, has neither
  const std::int64_t steps = before.goes_in_step() ? manifest.step : batches_done(manifest, there) / before.workers;
  const worker::BatchOrder old_order = order_of(run, before.batch_size, before.workers),
                           new_order = order_of(run, config.batch_size, config.workers);
  const std::int64_t old_epoch = std::max<std::int64_t>(1, old_order.steps_per_epoch());
  const std::int64_t trained = steps % old_epoch * before.global_batch(), global = new_order.global_batch_size();
  plan.step = steps / old_epoch * new_order.steps_per_epoch() + std::min(trained / global, new_order.steps_per_epoch());
  if (const std::int64_t again = trained - trained / global * global; again > 0) {
    plan.left_behind.push_back(
        fmt::format("the place within a batch: {} samples of epoch {} are trained again", again, steps / old_epoch));
  }
  if (!before.goes_in_step()) {
    plan.left_behind.emplace_back(
        "which batches had been trained, since workers went at their own pace: the first ones in the job's order count "
        "as trained");
    plan.left_behind.emplace_back("which worker had come how far, and the mean staleness");
  }
  const std::set<std::string> parts = parts_left(manifest);
  plan.left_behind.insert(plan.left_behind.end(), parts.begin(), parts.end());
  // A run of one worker has neither: its samples come as the usual choice has them.
  const auto chosen = [](const Facts& facts, const char* name, const char* usual) {
    const std::string value = fact(facts, name);
    return value.empty() ? std::string(usual) : value;
  };
  for (const auto& [name, usual] : {std::pair("--shard", "random"), std::pair("--shuffle", "global")}) {
    if (chosen(manifest.facts, name, usual) == chosen(run.facts, name, usual)) continue;
    plan.left_behind.push_back(
        fmt::format("the order of the samples ({}), so that some of the epoch under way are "
                    "trained twice and others not",
                    name));
  }
  return std::optional(std::move(plan));
}

Result<std::string> carry_over(const Checkpoint& from, const StateForms& forms, const CarryOver& plan,
                               const Successor& run, const std::string& folder, const CheckpointKey* key) {
  const ResolvedRun& config = run.config;
  SYNCOPATE_ASSIGN_OR_RETURN(const Predecessor before, predecessor_in(from.manifest()));
  TrainingState state;
  SYNCOPATE_RETURN_IF_ERROR(from.read(forms, {}, state));
  drop_foreign_parts(config, state);
  const ps::ChunkCounts counts = counts_at(plan.step, config);
  if (has(traits_of(config.optimizer), rule_number::kBeta1)) {
    const std::int64_t after = has_servers(config) ? counts.version : plan.step;
    const OptimizerConfig optimizer = optimizer_of(config);
    // The norm of adamax has no bias.
    const std::size_t biased = optimizer.kind == OptimizerKind::kAdamax ? 1 : 2;
    for (std::size_t i = 0; i < biased; ++i) {
      const char* const name = state_part::kOptimizer[i];
      for (const Range& piece : state.pieces(name)) {
        rescale(state.within(name, piece), i == 0 ? optimizer.beta1 : optimizer.beta2,
                updates_of_piece(state, piece.begin, from.manifest().step), after);
      }
    }
    rescale_rows(optimizer, from.manifest().step, after, state);
  }
  state.counts.clear();
  state.step = plan.step;
  if (has_servers(config)) {
    for (const Range& piece : state.pieces(state_part::kWeights)) ps::put_chunk_counts(piece.begin, counts, state);
    for (const auto& [table, rows] : state.rows) {
      ps::put_table_counts(table, 0, 1, {.version = counts.version, .clocks = counts.clocks}, state);
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  const std::string attempt = folder + "/" + attempt_name(plan.step, 0);
  SYNCOPATE_RETURN_IF_ERROR(make_folder(attempt));
  const Digests digests = key != nullptr ? Digests::kYes : Digests::kNo;
  Manifest manifest{.run = from.manifest().run, .step = plan.step, .facts = run.facts, .parts = {}};
  manifest.seconds = from.manifest().seconds;
  SYNCOPATE_ASSIGN_OR_RETURN(
      StoredPart shared,
      write_part({.folder = attempt, .writer = "carried", .share = Share::kAll, .digests = digests}, forms, state));
  manifest.parts.push_back(std::move(shared));
  // Both runs have as many stages, where local states are the workers' of a stage, and else one.
  const std::string staged = fact(run.facts, "--pipeline");  // "2", or "2 in 3 chunks"
  const int stages = parse_number<int>(staged.substr(0, staged.find(' '))).value_or(1);
  for (int worker = 0; worker < config.workers; ++worker) {
    const int stage = worker * stages / config.workers;
    SYNCOPATE_ASSIGN_OR_RETURN(
        const std::vector<float> local,
        mean_local_state(from, forms, stage * before.workers / stages, (stage + 1) * before.workers / stages));
    if (local.empty()) break;
    TrainingState own;
    own.step = plan.step;
    own.put(state_part::local_state_of(worker), 0, local);
    SYNCOPATE_ASSIGN_OR_RETURN(
        StoredPart part,
        write_part({.folder = attempt, .writer = worker_writer(worker), .share = Share::kOwnOnly, .digests = digests},
                   forms, own));
    manifest.parts.push_back(std::move(part));
  }
  CheckpointStore store(folder);
  SYNCOPATE_RETURN_IF_ERROR(store.complete(manifest, 0, key));
  return store.path_of(plan.step);
}

}  // namespace syncopate::experiments
