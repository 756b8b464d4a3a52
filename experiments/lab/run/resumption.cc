#include "experiments/lab/run/resumption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/lab/report/kept_results.h"
#include "worker/work.h"

namespace syncopate::experiments {
namespace {

// Returns after how many updates training ends: with backup workers there are more of them than steps of all workers.
std::int64_t updates_of(const ResolvedRun& config, std::int64_t total_steps) {
  return worker::UntilUpdated::updates_of(total_steps * config.workers, batches_a_step(config));
}

// Returns where to look for the checkpoint to resume from, if the run resumes. One of --resume=auto that was ended
// after its last checkpoint goes on from the one before.
std::optional<std::string> resumed_folder(const ResolvedRun& config, std::int64_t updates) {
  if (!resumes_here(config)) return config.resume;
  const CheckpointStore store(config.output + "/checkpoints");
  const std::vector<std::int64_t> steps = store.steps();
  if (steps.empty()) return std::nullopt;
  const auto before_the_end = std::ranges::find_if(steps, [&](std::int64_t step) { return step < updates; });
  const bool is_newest = before_the_end == steps.begin() || before_the_end == steps.end();
  return is_newest ? store.folder() : store.path_of(*before_the_end);
}

// For a person, before the start.
std::vector<std::string> lines_of(const CarryOver& carried, const std::string& folder) {
  std::vector<std::string> lines{fmt::format("goes on at step {} from {}, of another kind of run: {}", carried.step,
                                             folder, fmt::join(carried.choices, ", "))};
  for (const std::string& one : carried.left_behind) lines.push_back("not carried over: " + one);
  return lines;
}

// Returns how many samples these many batches have, of one worker each.
std::int64_t samples_of(std::int64_t batches, const ResolvedRun& config, const JobFacts& job) {
  const std::int64_t in_epoch = job.steps_per_epoch * config.workers;
  if (in_epoch <= 0) return 0;
  // A last batch that is not full counts as one that is, until the epoch is over.
  const std::int64_t rest = std::min(batches % in_epoch * config.batch_size, job.samples_per_epoch);
  return batches / in_epoch * job.samples_per_epoch + rest;
}

}  // namespace

std::map<std::string, std::string> facts_of(const ResolvedRun& config, const JobFacts& job) {
  std::map<std::string, std::string> facts = facts_of(config, job.layout, job.steps_per_epoch);
  if (!job.data_sum.empty()) facts["what the data holds"] = job.data_sum;
  // A batch norm's running moments are with the workers of its stage.
  if (!is_pipelined(config)) return facts;
  const std::string stages = fmt::format("{}", config.pipeline) +
                             (interleaves_stages(config) ? fmt::format(" in {} chunks", config.pipeline_chunks) : "");
  if (job.local_layout.size() > 0) facts["--pipeline"] = stages;
  // Servers have counted the pushes of a stage's workers alone.
  if (has_servers(config)) facts[kStagesFact] = stages;
  return facts;
}

Result<Resumption> find_resumed(const ResolvedRun& config, JobFacts& job, RunFacts& facts, Console& console) {
  Resumption resumption;
  if (config.checkpoint_key_file) {
    Result<CheckpointKey> key = CheckpointKey::read(*config.checkpoint_key_file);
    if (!key.ok()) return Status::invalid_argument("--checkpoint-key-file: " + key.status().message());
    resumption.key = std::move(*key);
  }
  const std::optional<std::string> folder = resumed_folder(config, updates_of(config, job.total_steps));
  if (!folder) return resumption;
  const StateForms forms(job.layout, job.local_layout);
  const std::map<std::string, std::string> own_facts = facts_of(config, job);
  const auto check = [&](const Manifest& manifest) -> Status {
    SYNCOPATE_ASSIGN_OR_RETURN(
        resumption.carry_over,
        plan_carry_over(manifest, {.config = config, .facts = own_facts, .train_samples = job.train_samples}));
    return check_steps_left(resumption.carry_over ? resumption.carry_over->step : manifest.step,
                            updates_of(config, job.total_steps));
  };
  Result<FoundCheckpoint> found = newest_checkpoint(*folder, forms, check, resumption.key ? &*resumption.key : nullptr);
  if (!found.ok()) return found.status().in("--resume=" + *config.resume);
  // Refusing it would protect nobody: an attacker who changed it can have removed the authentication, too.
  if (found->checkpoint.claims_authentication() && !resumption.key) {
    found->passed_over.push_back(
        fmt::format("checkpoint {} is authenticated, and no key was given: whether somebody has changed it is not "
                    "checked; --checkpoint-key-file=FILE names the key",
                    found->checkpoint.folder()));
  }
  for (const std::string& line : found->passed_over) console.warn(line);
  facts.events.insert(facts.events.end(), found->passed_over.begin(), found->passed_over.end());
  resumption.manifest_digest = found->checkpoint.digest();
  resumption.folder = found->checkpoint.folder();
  job.first_step = found->checkpoint.manifest().step;
  job.batches_done = batches_done(found->checkpoint.manifest(), config);
  if (const std::optional<CarryOver>& carried = resumption.carry_over) {
    job.first_step = carried->step;
    job.batches_done = carried->step * config.workers;
    for (const std::string& line : lines_of(*carried, found->checkpoint.folder())) {
      console.warn(line);
      facts.events.push_back(line);
    }
  }
  job.samples_before = samples_of(job.batches_done, config, job);
  job.seconds_before = found->checkpoint.manifest().seconds;
  facts.resumed_at = job.first_step;
  facts.resumed_samples = job.samples_before;
  facts.resumed_seconds = job.seconds_before;
  facts.resumed_from = found->checkpoint.folder();
  return resumption;
}

Status take_over(const ResolvedRun& config, const JobFacts& job, Resumption& resumption) {
  if (!resumption.carry_over) return {};
  const CheckpointKey* const key = resumption.key ? &*resumption.key : nullptr;
  SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint from,
                             Checkpoint::open(resumption.folder, {.digest = resumption.manifest_digest}));
  const std::map<std::string, std::string> facts = facts_of(config, job);
  SYNCOPATE_ASSIGN_OR_RETURN(resumption.folder,
                             carry_over(from, StateForms(job.layout, job.local_layout), *resumption.carry_over,
                                        {.config = config, .facts = facts, .train_samples = job.train_samples},
                                        config.output + "/carried-over", key));
  SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint carried, Checkpoint::open(resumption.folder));
  resumption.manifest_digest = carried.digest();
  resumption.carry_over.reset();
  return {};
}

}  // namespace syncopate::experiments
