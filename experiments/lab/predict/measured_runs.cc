#include "experiments/lab/predict/measured_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"
#include "experiments/config/given_values.h"
#include "experiments/lab/compare/kept_comparison.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/finished_run.h"
#include "experiments/lab/report/statistics.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/run_prediction.h"
#include "prediction/published_table.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::ExchangePlan;
using prediction::PublishedRow;

constexpr std::uint64_t kMostTableBytes = 1 << 20;

// What has been read so far, before repeats are put together.
struct Collected {
  MeasuredRuns found;
  std::set<std::string> jobs;                    // models with their batches
  bool by_size = false;                          // whether a run chose its schedule by size
  std::set<int> workers_a_host;                  // of runs over several hosts
  std::multimap<int, double> alone;              // samples/s of one worker, by its batch
  std::map<int, std::vector<double>> computing;  // seconds of a step but for its exchange, by workers
};

std::optional<ExchangePlan> plan_of_mode(const std::string& mode) {
  static const std::map<std::string, Exchange> exchanges = {{"", Exchange::kRing},
                                                            {"local", Exchange::kRing},
                                                            {"allreduce", Exchange::kRing},
                                                            {"allreduce:ring", Exchange::kRing},
                                                            {"allreduce:tree", Exchange::kTree},
                                                            {"allreduce:halving-doubling", Exchange::kHalvingDoubling},
                                                            {"allreduce:hierarchical", Exchange::kHierarchical},
                                                            {"ps", Exchange::kServers},
                                                            {"ps:sync", Exchange::kServers}};
  const auto found = exchanges.find(mode);
  if (found == exchanges.end()) return std::nullopt;
  return ExchangePlan{.exchange = found->second};
}

std::string cell(const PublishedRow& row, const char* column) { return row.has(column) ? row.text(column) : ""; }

// A number of a row, above 0.
Result<double> figure_in(const PublishedRow& row, const char* column) {
  const std::optional<double> figure = parse_number<double>(row.text(column));
  if (figure && *figure > 0 && *figure < 1e18) return *figure;
  return Status::invalid_argument(
      fmt::format("{}: {}: must be a number above 0, with a point and without separators", column, row.text(column)));
}

Result<int> count_in(const PublishedRow& row, const char* column, int most) {
  const std::optional<int> count = parse_number<int>(row.text(column));
  if (count && *count >= 1 && *count <= most) return *count;
  return Status::invalid_argument(fmt::format("{}: {}: must be 1 to {}", column, row.text(column), most));
}

Status set_servers(const PublishedRow& row, const GivenOptions& given, int workers, ExchangePlan& plan) {
  SYNCOPATE_ASSIGN_OR_RETURN(plan.sharding, read_sharding(given.at("sharding")));
  const std::string servers = cell(row, "servers");
  plan.colocated = servers == "each";
  if (plan.colocated) {
    plan.servers = workers;
    return {};
  }
  if (!servers.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(plan.servers, count_in(row, "servers", kMostPredictedWorkers));
    return {};
  }
  SYNCOPATE_ASSIGN_OR_RETURN(plan.servers,
                             number_in<int>("servers", given.at("servers"), 1, kMostPredictedWorkers, ""));
  return {};
}

Status add_row(const PublishedRow& row, const GivenOptions& given, Collected& collected) {
  MeasuredRun run;
  SYNCOPATE_ASSIGN_OR_RETURN(run.workers, count_in(row, "workers", kMostPredictedWorkers));
  const std::string mode = cell(row, "mode");
  const std::optional<ExchangePlan> plan = plan_of_mode(mode);
  if (!plan && run.workers > 1) {
    collected.found.left_out.push_back(fmt::format("{} with {} workers: no form describes it", mode, run.workers));
    return {};
  }
  run.plan = plan.value_or(ExchangePlan());
  if (run.plan.exchange == Exchange::kServers) {
    SYNCOPATE_RETURN_IF_ERROR(set_servers(row, given, run.workers, run.plan));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(run.plan.bucket_bytes,
                               bytes_in("bucket-bytes", given.at("bucket-bytes"), 0, kMostBucketBytes, kBucketRange));
  }
  if (!cell(row, "batch_size").empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(collected.found.job.batch_size, count_in(row, "batch_size", 1 << 20));
    collected.jobs.insert("batch_size " + row.text("batch_size"));
  }
  if (row.has("samples_per_second")) {
    SYNCOPATE_ASSIGN_OR_RETURN(run.samples_per_second, figure_in(row, "samples_per_second"));
  } else {
    int batch = collected.found.job.batch_size;
    if (batch == 0 && given.contains("batch-size")) {
      SYNCOPATE_ASSIGN_OR_RETURN(batch, number_in<int>("batch-size", given.at("batch-size"), 1, 1 << 20, ""));
    }
    if (batch == 0) return Status::invalid_argument("step_ms needs the samples of a step: add --batch-size");
    SYNCOPATE_ASSIGN_OR_RETURN(const double ms, figure_in(row, "step_ms"));
    run.samples_per_second = run.workers * batch / (ms / 1e3);
  }
  collected.found.runs.push_back(std::move(run));
  return {};
}

// Without blanks around commas and lines' ends, and without empty lines at the end.
std::string tidied(const std::string& text) {
  std::string tidy;
  for (const char c : text) {
    const bool ends_cell = c == ',' || c == '\n' || c == '\r';
    while (ends_cell && !tidy.empty() && (tidy.back() == ' ' || tidy.back() == '\t')) tidy.pop_back();
    const bool begins_cell = tidy.empty() || tidy.back() == ',' || tidy.back() == '\n';
    if (!begins_cell || (c != ' ' && c != '\t')) tidy += c;
  }
  while (!tidy.empty() && std::isspace(static_cast<unsigned char>(tidy.back())) != 0) tidy.pop_back();
  return tidy + "\n";
}

Status add_table(const std::string& path, const GivenOptions& given, Collected& collected) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostTableBytes));
  const Result<std::vector<PublishedRow>> rows = prediction::read_table(tidied(text));
  if (!rows.ok()) return rows.status().in(path);
  if (rows->empty()) return Status::invalid_argument(path + ": has no row below its first line");
  const PublishedRow& first = rows->front();
  if (!first.has("workers") || (!first.has("samples_per_second") && !first.has("step_ms"))) {
    return Status::invalid_argument(
        fmt::format("{}: its first line must name the columns workers, and samples_per_second or step_ms, with commas "
                    "between them; mode, servers and batch_size if they are known; it is \"{}\". Of a comparison or a "
                    "study, give the folder",
                    path, printable(text.substr(0, text.find('\n')))));
  }
  for (std::size_t i = 0; i < rows->size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(add_row((*rows)[i], given, collected).in(fmt::format("{}: line {}", path, i + 2)));
  }
  return {};
}

// The rate at which it went once all workers were warm, or where they shared no such time, of the whole run.
double rate_of(const RunReport& report) {
  return report.window ? report.window->samples_per_second : report.samples_per_second.value_or(0);
}

// The samples of a worker's step, which of a program of the person's own are those that it has told.
int batch_of(const FinishedRun& run) {
  if (!runs_command(run.config)) return run.config.batch_size;
  const RunReport& report = run.summary.reports.front();
  return static_cast<int>(
      std::max<std::int64_t>(1, report.total_samples / std::max<std::int64_t>(1, report.total_steps)));
}

// The run with `link` as what the processes of a host share, where it knows of no link. All without hosts are on one.
ResolvedRun linked(ResolvedRun config, const std::optional<LinkShape>& link) {
  config.command.clear();  // what it exchanges is known all the same; its model is for --profile to say
  if (config.shape || !link) return config;
  config.shape = *link;
  if (config.hosts.empty()) config.hosts = {{.name = "localhost", .slots = config.workers}};
  config.cluster = ClusterKind::kNamespaces;  // whose links are of hosts, as real ones are
  return config;
}

void add_run(const FinishedRun& run, const std::optional<LinkShape>& link, Collected& collected) {
  const ResolvedRun config = linked(run.config, link);
  const auto leave_out = [&](const std::string& why) {
    collected.found.left_out.push_back(fmt::format("{}: {}", run.folder, why));
  };
  if (run.summary.outcome != "completed") return leave_out(run.summary.outcome);
  const int batch = batch_of(run);
  if (!is_distributed(config) || (config.workers == 1 && !has_servers(config))) {
    for (const RunReport& report : run.summary.reports) collected.alone.emplace(batch, rate_of(report));
    return;
  }
  const std::optional<FormOfRun> form = form_of(config);
  if (!form && !config.shape) return leave_out("its link is not known; --shape gives its nominal rate");
  if (!form || form->is_asynchronous) {
    return leave_out(
        fmt::format("{}: forms are of rings, trees, halving-doubling and hierarchical allreduce, and of ps "
                    "sync whose servers are all on workers' hosts or all on others, without stragglers, "
                    "faults and codecs",
                    describe(config)));
  }
  JobDefaults& job = collected.found.job;
  if (!runs_command(run.config)) {
    job.profile = profile_like(config);
    if (!job.profile) return leave_out("its tensors are not known");
    job.profile_name = config.model;
  }
  job.batch_size = batch;
  job.link = config.shape;
  job.workers_per_host = std::max(job.workers_per_host.value_or(1), form->network.workers_per_host);
  collected.jobs.insert(fmt::format("{}, {} samples a step, {}",
                                    runs_command(run.config) ? command_of(run.config) : config.model, batch,
                                    config.shape->to_string()));
  if (sums_among_workers(config) && config.collective == CollectiveKind::kBySize) collected.by_size = true;
  if (form->network.hosts() > 1) collected.workers_a_host.insert(form->network.workers_per_host);
  for (const RunReport& report : run.summary.reports) {
    if (!(rate_of(report) > 0)) continue;
    collected.found.runs.push_back({config.workers, form->plan, rate_of(report)});
    collected.computing[config.workers].push_back((report.split_ms.step - report.split_ms.exposed_wait) / 1e3);
  }
}

Status add_folder(const std::string& folder, const std::optional<LinkShape>& link, Collected& collected) {
  std::vector<std::string> runs = {folder};
  if (is_of_comparison(folder)) {
    runs.clear();
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (std::filesystem::exists(entry.path() / "summary.json", ignored)) runs.push_back(entry.path().string());
    }
    std::ranges::sort(runs);
    if (runs.empty()) return Status::invalid_argument(folder + ": holds no finished run");
  }
  for (const std::string& run : runs) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FinishedRun finished, read_finished_run(run));
    add_run(finished, link, collected);
  }
  return {};
}

// Puts repeats together.
std::vector<MeasuredRun> medians_of(const std::vector<MeasuredRun>& runs) {
  const auto key_of = [](const MeasuredRun& run) {
    const ExchangePlan plan = run.is_alone() ? ExchangePlan() : run.plan;
    return std::tuple(plan.exchange, plan.colocated, plan.spare_servers, plan.aggregated, plan.sharding, plan.servers,
                      plan.bucket_bytes, plan.overlap, run.workers);
  };
  std::map<decltype(key_of(runs.front())), std::vector<double>> rates;
  std::vector<MeasuredRun> medians;
  for (const MeasuredRun& run : runs) {
    std::vector<double>& all = rates[key_of(run)];
    if (all.empty()) medians.push_back(run);
    all.push_back(run.samples_per_second);
  }
  for (MeasuredRun& run : medians) run.samples_per_second = median(rates[key_of(run)]);
  return medians;
}

}  // namespace

Result<MeasuredRuns> read_measured_runs(const std::string& paths, const GivenOptions& given) {
  std::optional<LinkShape> link;
  if (given.contains("shape") || given.contains("cluster")) {
    SYNCOPATE_ASSIGN_OR_RETURN(link, link_in(given));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> parts, parts_in("measured", paths));
  Collected collected;
  for (const std::string& path : parts) {
    std::error_code ignored;
    const Status read = std::filesystem::is_directory(path, ignored) ? add_folder(path, link, collected)
                                                                     : add_table(path, given, collected);
    SYNCOPATE_RETURN_IF_ERROR(read.in("--measured"));
  }
  MeasuredRuns& found = collected.found;
  if (collected.jobs.size() > 1) {
    return Status::invalid_argument(fmt::format("--measured={}: must be of one job; there are {} and {}", paths,
                                                *collected.jobs.begin(), *std::next(collected.jobs.begin())));
  }
  if (collected.workers_a_host.size() > 1) {
    return Status::invalid_argument(
        fmt::format("--measured={}: some runs have {} workers a host and some {}; give "
                    "those alone that are alike",
                    paths, *collected.workers_a_host.begin(), *collected.workers_a_host.rbegin()));
  }
  if (std::ranges::none_of(found.runs, [](const MeasuredRun& run) { return run.workers > 1; })) {
    return Status::invalid_argument(fmt::format("--measured={}: has no run of several workers that a form describes{}",
                                                paths, found.left_out.empty() ? "" : "; " + found.left_out.front()));
  }
  // In a comparison, the one worker of local has the batch of all.
  const auto [begin, end] = collected.alone.equal_range(found.job.batch_size);
  for (auto one = begin; one != end; ++one) {
    if (one->second > 0) found.runs.push_back({.workers = 1, .plan = {}, .samples_per_second = one->second});
  }
  found.runs = medians_of(found.runs);
  if (collected.by_size) {
    found.notes.emplace_back("beware: an allreduce that chooses its schedule by size (auto) is fitted as a ring.");
  }
  const auto alone = std::ranges::find_if(found.runs, &MeasuredRun::is_alone);
  if (alone != found.runs.end()) {
    found.job.samples_per_second_alone = alone->samples_per_second;
  } else if (!collected.computing.empty()) {
    found.job.samples_per_second_alone = found.job.batch_size / median(collected.computing.begin()->second);
  }
  return std::move(found);
}

}  // namespace syncopate::experiments
