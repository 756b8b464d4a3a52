#include "experiments/lab/predict/way_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>

#include "experiments/config/command_line.h"
#include "experiments/config/host_list.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;
using prediction::Family;
using prediction::Network;
using prediction::Way;

// With steps of equal length two are like each other, but asynchronous workers get out of step first.
constexpr int kFirstSteps = 1, kSteps = 3, kAsynchronousSteps = 5;

// What no figure of a way depends on costs as little as it can: generated samples are those of a way's first steps, and
// few are evaluated.
std::vector<std::string> model_words(const ScaledJob& job, int workers) {
  if (!job.own_model) return {fmt::format("--model={}{}", kProfilePrefix, job.profile_name)};
  std::vector<std::string> words = job.own_model->words;
  if (job.own_model->has_generated_data) {
    constexpr int kTestSamples = 10;
    const std::int64_t batches = kFirstSteps + kSteps;
    words.push_back(fmt::format("--train-samples={}", batches * workers * job.batch_size));
    words.push_back(fmt::format("--test-samples={}", kTestSamples));
  }
  return words;
}

std::string_view collective_of(Exchange exchange) {
  if (exchange == Exchange::kTree) return "tree";
  if (exchange == Exchange::kHalvingDoubling) return "halving-doubling";
  return exchange == Exchange::kHierarchical ? "hierarchical" : "ring";
}

// Servers go to hosts in turn: those without slots come first, so that each server has one of its own.
std::string hosts_of(const Network& network, const Way& way) {
  if (way.family() != Family::kServers || way.plan.colocated) {
    return fmt::format("{}x{}", network.hosts(), network.workers_per_host);
  }
  std::vector<std::string> hosts;
  for (int host = 0; host < way.plan.servers; ++host) hosts.push_back(fmt::format("server{}:0", host));
  for (int host = 0; host < network.hosts(); ++host) {
    hosts.push_back(fmt::format("host{}:{}", host, network.workers_per_host));
  }
  return fmt::format("{}", fmt::join(hosts, ","));
}

// Weights that are averaged go in no buckets.
void add_exchange(const Way& way, int period, std::vector<std::string>& words) {
  if (way.family() != Family::kServers) {
    const auto bucket = std::max<std::int64_t>(1, std::llround(way.plan.bucket_bytes));
    words.emplace_back(way.family() == Family::kSharded ? "--mode=sharded" : "--mode=allreduce");
    if (way.family() == Family::kPipelines) {
      words.insert(words.end(), {fmt::format("--pipeline={}", way.pipeline.stages),
                                 fmt::format("--microbatches={}", way.pipeline.microbatches),
                                 "--pipeline-schedule=" + way.pipeline.schedule});
    }
    if (way.family() == Family::kParts) words.push_back(fmt::format("--tensor={}", way.parts));
    if (way.plan.stage > 0) words.push_back(fmt::format("--stage={}", way.plan.stage));
    words.push_back(fmt::format("--collective={}", collective_of(way.plan.exchange)));
    if (period == 1) words.push_back(fmt::format("--bucket-bytes={}", bucket));
    return;
  }
  words.insert(words.end(), {"--mode=ps", fmt::format("--consistency={}", way.asynchronous ? "async" : "sync"),
                             fmt::format("--servers={}", way.plan.servers)});
  if (way.plan.aggregated) words.emplace_back("--aggregation=host");
  // One server has all either way.
  if (way.plan.sharding == prediction::Sharding::kWhole && way.plan.servers > 1) words.emplace_back("--sharding=whole");
}

}  // namespace

std::vector<std::string> words_of(const ScaledJob& job, int workers, const Way& way, const Addition& addition) {
  const Network network = job.network(workers);
  std::vector<std::string> words = {
      "--cluster=simulated",
      fmt::format("--workers={}", workers),
      fmt::format("--batch-size={}", job.batch_size),
      job.device.empty() ? fmt::format("--compute={:.9g}ms", job.step_seconds * 1e3) : "--compute=" + job.device,
      fmt::format("--shape={}", job.link.to_string()),
  };
  const std::vector<std::string> model = model_words(job, workers);
  words.insert(words.begin() + 1, model.begin(), model.end());
  add_exchange(way, addition.period, words);
  const bool shares_hosts = network.workers_per_host > 1 || way.plan.colocated;
  if (shares_hosts) {
    words.insert(words.end(), {fmt::format("--hosts={}", hosts_of(network, way)),
                               fmt::format("--inside={}", job.inside.to_string())});
  }
  words.insert(words.end(), addition.words.begin(), addition.words.end());
  const int measured = way.asynchronous ? kAsynchronousSteps : kSteps;
  words.push_back(fmt::format("--warmup-steps={}", kFirstSteps * addition.period));
  words.push_back(fmt::format("--steps={}", (kFirstSteps + measured) * addition.period));
  return words;
}

Result<RunRequest> run_of(const std::vector<std::string>& words) {
  std::vector<const char*> line = {"run_experiment"};
  for (const std::string& word : words) line.push_back(word.c_str());
  SYNCOPATE_ASSIGN_OR_RETURN(CommandLine command, parse_command_line(static_cast<int>(line.size()), line.data()));
  return std::move(command.config);
}

std::string command_of(const std::vector<std::string>& words) {
  std::string command = "./run_experiment";
  for (const std::string& word : words) command += " " + quoted(word);
  return command;
}

}  // namespace syncopate::experiments
