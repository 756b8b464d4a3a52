#include "experiments/lab/compare/begun_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/config/toml.h"
#include "experiments/lab/compare/row_processes.h"
#include "experiments/lab/report/paired_comparison.h"
#include "experiments/lab/report/summary_text.h"

namespace syncopate::experiments {
namespace {

// Returns what is true of every run, and nothing where runs differ. A local run, which stands for the workers of the
// others, counts only among its like.
template <typename TextOf>
std::string shared_text(const ComparisonJob& job, const TextOf& text_of) {
  std::vector<const ResolvedRun*> configs;
  for (const PlannedRun& run : job.runs) {
    if (is_distributed(run.config)) configs.push_back(&run.config);
  }
  if (configs.empty()) configs.push_back(&job.runs.front().config);
  const std::string text = text_of(*configs.front());
  return std::ranges::all_of(configs, [&](const ResolvedRun* one) { return text_of(*one) == text; }) ? text : "";
}

std::string title_of(const ComparisonJob& job) {
  std::vector<std::string> parts = {
      shared_text(job, [](const ResolvedRun& run) { return model_on_data(run); }),
      shared_text(
          job,
          [](const ResolvedRun& run) { return fmt::format("{} worker{}", run.workers, run.workers == 1 ? "" : "s"); }),
      shared_text(job,
                  [](const ResolvedRun& run) {
                    return runs_command(run) ? "" : fmt::format("batch {} a worker", run.batch_size);
                  }),
      job.varied.empty() ? "" : fmt::format("{} varied", fmt::join(job.varied, " and ")),
      shared_text(job,
                  [](const ResolvedRun& run) {
                    const std::string link = describe_link(run);
                    return link.empty() ? link : "link: " + link;
                  }),
  };
  // Where links differ, what is said of them all is left.
  if (job.base.cluster == ClusterKind::kNamespaces && parts.back().empty()) {
    parts.push_back("on network namespaces of this machine");
  }
  if (job.base.cluster == ClusterKind::kSimulated) {
    parts.push_back("simulated in virtual time");
    parts.push_back(
        shared_text(job, [](const ResolvedRun& run) { return std::string("network ") + name_of(run.network); }));
    parts.push_back(shared_text(job, [](const ResolvedRun& run) { return "compute " + run.compute.to_string(); }));
  }
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Returns what runs share that all train at the rate that was given for the reference's updates.
std::string shared_toml(const std::vector<PlannedRun>& runs) {
  std::vector<ResolvedRun> configs;
  for (const PlannedRun& run : runs) {
    configs.push_back(run.config);
    configs.back().learning_rate = run.base_rate;
  }
  return to_toml(configs);
}

}  // namespace

ComparisonReport begin_report(const ComparisonJob& job, std::size_t rounds) {
  ComparisonReport report{.job = title_of(job),
                          .command = job.command,
                          .config_toml = shared_toml(job.runs),
                          .started = calendar_text(calendar_stamp()),
                          .version = fmt::format("{} ({})", program_version(), source_fingerprint()),
                          .machine = this_environment(),
                          .rate_rule = runs_command(job.base) ? "" : name_of(job.rate_rule),
                          .target = job.base.target_accuracy,
                          .prices = job.prices,
                          .simulated = job.base.cluster == ClusterKind::kSimulated,
                          .is_certain = std::ranges::all_of(job.runs, times_are_certain, &PlannedRun::config),
                          .rounds_asked = rounds,
                          .analyses = job.auto_rounds ? kMostAnalyses : 1,
                          .margin = job.auto_rounds ? job.auto_rounds->margin : 0,
                          .varied = job.varied};
  report.left_out = job.left_out;
  for (const PlannedRun& run : job.runs) {
    ComparedRow row{.label = run.label, .mode = run.mode, .values = run.values};
    set_processes(run.config, row);
    row.rounds.resize(rounds);
    row.evals.resize(rounds);
    row.seeds.resize(rounds);
    row.folders.resize(rounds);
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace syncopate::experiments
