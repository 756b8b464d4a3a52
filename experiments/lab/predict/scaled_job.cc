#include "experiments/lab/predict/scaled_job.h"

#include <fmt/ranges.h>

#include "common/text/format.h"
#include "experiments/config/cluster_description.h"
#include "experiments/config/commands.h"
#include "experiments/config/given_values.h"
#include "experiments/config/profile_choice.h"
#include "experiments/config/resolved_run.h"
#include "prediction/device_steps.h"

namespace syncopate::experiments {
namespace {

Result<std::optional<prediction::HostPrices>> prices_in(const GivenOptions& given) {
  if (!given.contains("price-worker") && !given.contains("price-server")) {
    return std::optional<prediction::HostPrices>();
  }
  std::optional<prediction::HostPrices> prices(std::in_place);
  for (const auto& [name, other, price] : {std::tuple("price-worker", "price-server", &prices->worker),
                                           std::tuple("price-server", "price-worker", &prices->server)}) {
    if (!given.contains(name)) {
      return Status::invalid_argument(
          fmt::format("--{} is missing beside --{}: give both, 0 for hosts that cost nothing", name, other));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(*price, number_in<double>(name, given.at(name), 0, 1e9, ", for a host and hour"));
  }
  return prices;
}

// The model is --profile here and, by the same names, --model as in every other command.
Status read_model(const GivenOptions& given, const JobDefaults& defaults, ScaledJob& job) {
  const auto model = given.find("model"), profile = given.find("profile");
  if (model == given.end() && profile == given.end() && defaults.profile) {
    job.profile_name = defaults.profile_name;
    job.profile = *defaults.profile;
    return {};
  }
  if ((model == given.end()) == (profile == given.end())) {
    return Status::invalid_argument(
        model == given.end() ? "--profile is missing: the model, as in --profile=resnet50; --model=resnet50 is the same"
                             : "--model and --profile say the same: one of them is enough");
  }
  const auto& [option, name] = model != given.end() ? *model : *profile;
  job.profile_name = name.starts_with(kProfilePrefix) ? name.substr(kProfilePrefix.size()) : name;
  SYNCOPATE_ASSIGN_OR_RETURN(job.profile, open_profile("--" + option + "=", job.profile_name));
  return {};
}

// A step by --compute, as a run has it: a time, a device's rate or a known device, which knows batches of its own.
Status read_compute(const GivenOptions& given, const ComputeModel& compute, ScaledJob& job) {
  if (!compute.device.empty()) {
    const auto step = prediction::typical_step(compute.device, job.profile.model, job.batch_size);
    if (!step.ok()) return step.status().in("--compute=" + compute.device);
    const bool is_given = job.batch_size > 0;
    job.batch_size = step->batch_size;
    job.step_seconds = step->seconds;
    job.device = compute.device;
    job.basis = step->basis;
    if (!is_given) {
      job.basis +=
          "; it is the largest batch that is known, and --batch-size takes yours: the fewer samples, the more "
          "an exchange counts";
    }
    return {};
  }
  if (job.batch_size == 0) {
    return Status::invalid_argument(
        fmt::format("--batch-size is missing: --compute={} needs the samples of a step", given.at("compute")));
  }
  constexpr double kPasses = 3;  // backward does each product of the forward pass twice
  job.step_seconds = compute.step ? seconds(*compute.step)
                                  : kPasses * job.profile.forward_flops() * job.batch_size / *compute.flops_per_second;
  return {};
}

// A profile with times says how long a step takes, and of how many samples, unless both are given, as of another
// device; others must be told.
Status read_step(const GivenOptions& given, const JobDefaults& defaults, ScaledJob& job) {
  job.batch_size = defaults.batch_size;
  if (given.contains("batch-size")) {
    SYNCOPATE_ASSIGN_OR_RETURN(job.batch_size, number_in<int>("batch-size", given.at("batch-size"), 1, 1 << 20, ""));
    if (defaults.batch_size > 0 && job.batch_size != defaults.batch_size) {
      return Status::invalid_argument(
          fmt::format("--batch-size={}: what was measured has {} samples a step; leave --batch-size out",
                      job.batch_size, defaults.batch_size));
    }
  }
  if (!given.contains("compute") && !given.contains("step-time") && defaults.samples_per_second_alone > 0) {
    if (job.batch_size == 0) {
      return Status::invalid_argument(
          "--batch-size is missing: the samples of a worker's step, of which what was measured does not tell");
    }
    job.step_seconds = job.batch_size / defaults.samples_per_second_alone;
    return {};
  }
  if (const auto text = given.find("compute"); text != given.end()) {
    if (given.contains("step-time")) {
      return Status::invalid_argument("--compute and --step-time say the same: one of them is enough");
    }
    const Result<ComputeModel> compute = ComputeModel::parse(text->second);
    if (compute.ok() && !compute->is_solo() && compute->profile.empty()) return read_compute(given, *compute, job);
    return Status::invalid_argument(
        fmt::format("--compute={}: must be the time of a step, as in 150ms, a device's rate, as in 15TFLOPS, or a "
                    "known device: {}",
                    text->second, fmt::join(prediction::device_names(), ", ")));
  }
  const bool is_given = given.contains("batch-size") || given.contains("step-time");
  if (job.profile.has_times() && !is_given) {
    job.batch_size = job.profile.batch_size;
    job.step_seconds = job.profile.step_seconds();
    return {};
  }
  for (const char* name : {"batch-size", "step-time"}) {
    if (given.contains(name)) continue;
    return Status::invalid_argument(
        job.profile.has_times()
            ? fmt::format("--{} is missing: {} has times of its own; leave both --batch-size and --step-time out, or "
                          "give both, as of another device",
                          name, job.profile_name)
            : fmt::format("--{} is missing: {} has no times; give both --batch-size and --step-time, or a known "
                          "device, as in --compute=v100",
                          name, job.profile_name));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(job.step_seconds, time_in("step-time", given.at("step-time"), 1e-6, 1e6));
  return {};
}

Result<LinkShape> link_of(const char* name, const std::string& text) {
  const Result<LinkShape> link = LinkShape::parse(text);
  if (link.ok()) return *link;
  return Status::invalid_argument(fmt::format("--{}={}: must be {}", name, text, LinkShape::forms()));
}

}  // namespace

Result<LinkShape> link_in(const GivenOptions& given) {
  if (const auto shape = given.find("shape"); shape != given.end()) {
    return link_of("shape", shape->second);
  }
  const auto cluster = given.find("cluster");
  if (cluster == given.end()) {
    return Status::invalid_argument(
        "--shape is missing: the link of a host, as in --shape=25gbit+50us; or give --cluster=FILE, as calibrate "
        "writes it");
  }
  Result<ClusterDescription> described = open_cluster(cluster->second);
  if (!described.ok()) return described.status().in("--cluster=" + cluster->second);
  if (described->link) return *described->link;
  return Status::invalid_argument(fmt::format("--cluster={}: says nothing of its link; add --shape", cluster->second));
}

prediction::Network ScaledJob::network(int count) const {
  return {.alpha = std::chrono::duration<double>(link.delay).count(),
          .bytes_per_second = link.payload_bytes_per_second(),
          .workers = count,
          .workers_per_host = workers_per_host};
}

double ScaledJob::samples_per_second(int count, double step) const {
  return static_cast<double>(count) * batch_size / step;
}

Result<GivenOptions> job_words(const std::string& command, const std::vector<std::string>& words) {
  std::vector<std::string> line = {command};
  line.insert(line.end(), words.begin(), words.end());
  SYNCOPATE_ASSIGN_OR_RETURN(CommandWords read, command_words(line));
  if (const auto servers = read.given.find("servers"); servers != read.given.end() && servers->second == "colocated") {
    return Status::invalid_argument(fmt::format(
        "--servers=colocated: {} has servers on the workers' hosts beside others; give how many have hosts of their "
        "own, or leave it out",
        command));
  }
  if (read.given.contains("workers")) return std::move(read.given);
  return Status::invalid_argument(command + ": --workers is missing");
}

Result<ScaledJob> read_scaled_job(const GivenOptions& given, const JobDefaults& defaults) {
  ScaledJob job;
  SYNCOPATE_RETURN_IF_ERROR(read_model(given, defaults, job));
  SYNCOPATE_ASSIGN_OR_RETURN(job.workers, counts_in("workers", given.at("workers"), 1, kMostPredictedWorkers));
  job.workers_per_host = defaults.workers_per_host.value_or(1);
  if (const auto found = given.find("workers-per-host"); found != given.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(job.workers_per_host, number_in<int>("workers-per-host", found->second, 1, 1024, ""));
  }
  SYNCOPATE_RETURN_IF_ERROR(read_step(given, defaults, job));
  if (defaults.link && !given.contains("shape") && !given.contains("cluster")) {
    job.link = *defaults.link;
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(job.link, link_in(given));
  }
  if (const auto inside = given.find("inside"); inside != given.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(job.inside, link_of("inside", inside->second));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(job.prices, prices_in(given));
  return job;
}

Result<prediction::Sharding> read_sharding(const std::string& text) {
  if (text == "even") return prediction::Sharding::kEven;
  if (text == "whole") return prediction::Sharding::kWhole;
  return Status::invalid_argument(fmt::format("--sharding={}: must be even or whole", text));
}

std::string title_of(const ScaledJob& job, const char* kind) {
  return fmt::format("{}: {} parameters in {} tensors, {}. {}: {:.4g} s a step of {} samples alone; {}; {} a host.\n",
                     job.profile.model, format_count(static_cast<double>(job.profile.parameters())),
                     job.profile.tensors.size(), format_bytes(job.profile.bytes()), kind, job.step_seconds,
                     job.batch_size, job.link.describe("a host"),
                     job.workers_per_host == 1 ? "1 worker" : fmt::format("{} workers", job.workers_per_host)) +
         (job.device.empty()
              ? ""
              : fmt::format("The step is typical of {}, not measured on yours: {}.\n", job.device, job.basis));
}

}  // namespace syncopate::experiments
