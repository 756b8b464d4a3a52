#include "experiments/lab/compare/circumstances.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_text.h"

namespace syncopate::experiments {
namespace {

bool shares_cores(const ResolvedRun& run, int cores) {
  const bool is_here = run.cluster == ClusterKind::kNamespaces || run.hosts.empty();
  return run.cluster != ClusterKind::kSimulated && is_here && run.device == DeviceKind::kCpu && run.workers > cores;
}

// Where computing takes all workers equally long in each step, nobody is ever late.
bool has_equal_steps(const ResolvedRun& run) {
  const bool is_measured = runs_command(run) && run.compute.is_solo();  // step by step, of each rank
  return run.cluster == ClusterKind::kSimulated && run.workers > 1 && run.stragglers.empty() &&
         run.sample_costs.are_equal() && !is_measured;
}

// Servers run on hosts that workers have not.
bool has_hosts_more(const ResolvedRun& run) {
  return separate_servers_of(run) > 0 && run.hosts.empty() &&
         (run.cluster == ClusterKind::kSimulated || run.cluster == ClusterKind::kNamespaces);
}

}  // namespace

std::vector<std::string> circumstances_of(std::span<const PlannedRun> rows, const RunSettings& base,
                                          const std::vector<std::string>& varied, int cores) {
  std::vector<std::string> lines;
  const auto varies = [&](const char* option) { return std::ranges::find(varied, option) != varied.end(); };
  const auto any = [&](auto&& holds) {
    return std::ranges::any_of(rows, [&](const PlannedRun& row) { return holds(row.config); });
  };
  if (varies("workers") && any([&](const ResolvedRun& run) { return shares_cores(run, cores); })) {
    lines.push_back(fmt::format(
        "beware: workers beyond {} share this machine's {} cores, so that the curve over them is of shared cores; "
        "--cluster=simulated gives each a machine of its own",
        cores, cores));
  }
  if (any([](const ResolvedRun& run) { return has_equal_steps(run) && !goes_at_own_pace(run); }) &&
      any([](const ResolvedRun& run) { return has_equal_steps(run) && goes_at_own_pace(run); })) {
    lines.push_back(
        "beware: computing takes every worker equally long in every step, as on no real machine: nobody waits for a "
        "slower one, and workers that wait for nobody still meet at the servers all at once; "
        "--sample-cost=lognormal:1 lets samples cost unequally");
  }
  const auto in_step = [](const ResolvedRun& run) { return runs_command(run) && !goes_at_own_pace(run); };
  const auto alone = std::ranges::find_if(
      rows, [](const PlannedRun& row) { return runs_command(row.config) && goes_at_own_pace(row.config); });
  if (alone != rows.end() && any(in_step)) {
    lines.push_back(fmt::format(
        "beware: the program itself sets its rate, the same in all rows, and {} makes an update of each of {} workers' "
        "gradients where others make one of their mean: it goes as many times as far a pass, so that accuracies are "
        "of different trainings; a rate of 1/{} would be as far",
        alone->label, alone->config.workers, alone->config.workers));
  }
  const auto more = std::ranges::find_if(rows, [](const PlannedRun& row) { return has_hosts_more(row.config); });
  if (more != rows.end() && any([](const ResolvedRun& run) { return run.workers > 1 && !has_hosts_more(run); })) {
    const ResolvedRun& run = more->config;
    lines.push_back(fmt::format(
        "beware: servers have hosts of their own here, so that {} runs on {} hosts and not on its workers' {}; "
        "--hosts={}x1 puts servers on these, --servers=colocated one on each",
        more->label, run.workers + separate_servers_of(run), run.workers, run.workers));
  }
  for (const PlannedRun& row : rows) {
    const std::string caution = link_caution(row.config);
    if (caution.empty()) continue;
    lines.push_back("beware: " + caution);
    break;
  }
  if (!base.stragglers.empty() && !varies("straggler")) {
    lines.push_back(fmt::format("straggler {}, in all modes but local", base.stragglers.to_string()));
  }
  if (!base.sample_costs.are_equal() && !varies("sample-cost")) {
    lines.push_back(fmt::format("samples cost {}, in all modes", base.sample_costs.to_string()));
  }
  if (!base.faults.empty() && !varies("fault")) {
    lines.push_back(fmt::format("fault {}, in all modes but local", base.faults.to_string()));
  }
  if (compresses(base) && !varies("compress")) {
    lines.push_back(fmt::format("--compress={}, in all modes that have it", to_string(base.compress)));
  }
  if (base.shape && !varies("shape") && base.cluster == ClusterKind::kReal) {
    lines.push_back(fmt::format("link: emulated, {}, in all modes but local", base.shape->describe()));
  }
  return lines;
}

}  // namespace syncopate::experiments
