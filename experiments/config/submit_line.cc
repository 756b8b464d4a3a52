#include "experiments/config/submit_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text/nearest_name.h"
#include "experiments/config/resolution.h"
#include "experiments/config/submit_options.h"

namespace syncopate::experiments {
namespace {

const char* option_of(SubmitTarget target) { return target == SubmitTarget::kSlurm ? "--slurm" : "--kubernetes"; }

Result<Submission> submission_of(const SubmitWords& words) {
  if (words.contains("kubernetes") == words.contains("slurm")) {
    return Status::invalid_argument(words.contains("slurm")
                                        ? "--slurm: not beside --kubernetes; submit is for one of them"
                                        : "submit: --kubernetes or --slurm is missing, which says what it is for: "
                                          "--kubernetes=job, mpijob or trainer, or --slurm");
  }
  Submission submission;
  const SubmitTarget target = words.contains("slurm") ? SubmitTarget::kSlurm : SubmitTarget::kKubernetes;
  for (const auto& [name, value] : words) {
    const auto option =
        std::ranges::find(all_submit_options(), name, [](const SubmitOption& o) { return o.spec.name; });
    if (option == all_submit_options().end()) {
      return Status::invalid_argument(fmt::format("--{}: is no option of submit", name));
    }
    if (option->only.value_or(target) != target) {
      return Status::invalid_argument(
          fmt::format("--{}={}: has an effect only with {}; leave it out", name, value, option_of(*option->only)));
    }
    SYNCOPATE_RETURN_IF_ERROR(option->set(submission, value));
  }
  if (target == SubmitTarget::kKubernetes && !words.contains("image")) {
    return Status::invalid_argument(
        "submit: --image is missing, the container image of the pods, as in --image=registry.example/syncopate:1.0");
  }
  return submission;
}

// What the scheduler decides cannot be asked for.
Status check_given(const Submission& submission, const GivenOptions& given) {
  const bool by_slurm = submission.target == SubmitTarget::kSlurm;
  const auto is_decided = [&](const OptionSpec& option) {
    return option.names_hosts ||
           (by_slurm ? option.name == "launcher" : option.name == "remote-program" || option.name == "listen-address");
  };
  for (const OptionSpec& option : option_table()) {
    if (!given.contains(option.name) || !is_decided(option)) continue;
    return Status::invalid_argument(
        fmt::format("--{}={}: submit names hosts and how they are reached itself, by --workers and {}; leave it out",
                    option.name, given.at(option.name), by_slurm ? "--nodes" : "--slots"));
  }
  if (given.contains("dry-run")) {
    return Status::invalid_argument("--dry-run: submit starts nothing, it prints what would; leave it out");
  }
  for (const OptionSpec& option : option_table()) {
    // What has no effect on a program at all is said of all programs alike.
    if (!given.contains(option.name) || !option.with_command || passes_on(submission, option)) continue;
    return Status::invalid_argument(
        fmt::format("{}: is for a program that run_experiment starts and measures, and with --kubernetes={} torchrun "
                    "starts it; leave it out",
                    as_typed(option, given.at(option.name)), name_of(submission.form)));
  }
  return {};
}

Status check_pods(const Submission& submission, const RunRequest& run) {
  const bool has_program = !run.command.empty();
  if (submission.form == KubernetesForm::kTrainer && !has_program) {
    return Status::invalid_argument(
        "--kubernetes=trainer: starts a program of your own; name it, as in -- python train.py, or use job or mpijob");
  }
  if (submission.form != KubernetesForm::kTrainer && has_program) {
    return Status::invalid_argument(fmt::format(
        "--kubernetes={}: starts Syncopate's own worker; for the program behind -- use --kubernetes=trainer",
        name_of(submission.form)));
  }
  if (submission.form == KubernetesForm::kTrainer && workers_of(run) % submission.slots != 0) {
    return Status::invalid_argument(
        fmt::format("--workers={}: torchrun starts as many on each host; use a multiple of --slots={}", workers_of(run),
                    submission.slots));
  }
  if (submission.slots > 1 && !is_distributed(run)) {
    return Status::invalid_argument(
        fmt::format("--slots={}: --mode=local trains in one process, in one pod; leave it out", submission.slots));
  }
  if (submission.form == KubernetesForm::kMpiJob && !is_distributed(run)) {
    return Status::invalid_argument("--mode=local: trains in one process, which needs no MPIJob; use --kubernetes=job");
  }
  if (run.launcher == LauncherKind::kMpirun) {
    return Status::invalid_argument(
        "--launcher=mpirun: pods are reached through ssh by Syncopate itself, which needs no Open MPI there; leave it "
        "out, and --collective=mpi");
  }
  return {};
}

Status check_tasks(const Submission& submission, const RunRequest& run) {
  const int tasks = tasks_of(run);
  if (submission.nodes > tasks) {
    return Status::invalid_argument(
        fmt::format("--nodes={}: workers and servers are {} together, and a host has at least one; use at most {}",
                    submission.nodes, tasks, tasks));
  }
  if (submission.thousandths_of_cpus.value_or(0) % 1000 != 0) {
    return Status::invalid_argument(fmt::format("--cpus={:g}: Slurm gives whole processors; use a whole number",
                                                static_cast<double>(*submission.thousandths_of_cpus) / 1000));
  }
  return {};
}

Status check_together(const Submission& submission, const RunRequest& run) {
  if (run.cluster != ClusterKind::kReal) {
    return Status::invalid_argument(
        fmt::format("--cluster={}: needs no machines but this one; run it here", name_of(run.cluster)));
  }
  SYNCOPATE_RETURN_IF_ERROR(submission.target == SubmitTarget::kSlurm ? check_tasks(submission, run)
                                                                      : check_pods(submission, run));
  if (run.device == DeviceKind::kCuda && !submission.gpus) {
    return Status::invalid_argument("--device=cuda: needs GPUs; say how many a host is to have, as in --gpus=1");
  }
  return {};
}

}  // namespace

const char* name_of(KubernetesForm form) {
  switch (form) {
    case KubernetesForm::kJob:
      return "job";
    case KubernetesForm::kMpiJob:
      return "mpijob";
    case KubernetesForm::kTrainer:
      return "trainer";
  }
  return "";
}

bool passes_on(const Submission& submission, const OptionSpec& option) {
  if (submission.target != SubmitTarget::kKubernetes || submission.form != KubernetesForm::kTrainer) return true;
  constexpr std::string_view kInManifest[] = {"command", "workers", "environment"};
  // Whom torchrun starts it ends with the first that is lost; nobody reads what is traced; links of pods are real.
  constexpr std::string_view kOfOurLauncher[] = {"elastic", "trace", "shape"};
  const auto is_among = [&](const auto& names) { return std::ranges::find(names, option.name) != std::end(names); };
  return is_among(kInManifest) || (!option.variable.empty() && !is_among(kOfOurLauncher));
}

int tasks_of(const RunRequest& run) { return workers_of(run) + server_processes_of(run); }

// Slurm chooses hosts only when the job begins. Their names here stand for those.
std::vector<HostSlots> slurm_hosts_of(const Submission& submission, int workers) {
  std::vector<HostSlots> hosts;
  for (int host = 0; host < submission.nodes; ++host) {
    const int slots = std::max(1, workers / submission.nodes + (host < workers % submission.nodes ? 1 : 0));
    hosts.push_back({.name = host == 0 ? "localhost" : fmt::format("node{}", host), .slots = slots});
  }
  return hosts;
}

std::vector<HostSlots> hosts_of(const Submission& submission, int workers) {
  if (submission.target == SubmitTarget::kSlurm) return slurm_hosts_of(submission, workers);
  const int count = (workers + submission.slots - 1) / submission.slots;
  const std::string& name = submission.name;
  const bool by_torchrun = submission.form == KubernetesForm::kTrainer;
  if (by_torchrun && count == 1) return {};
  std::vector<HostSlots> hosts;
  for (int host = 0; host < count; ++host) {
    const int slots = std::min(submission.slots, workers - host * submission.slots);
    const bool is_coordinator = submission.form == KubernetesForm::kJob && host == 0;
    const char* const role = submission.form == KubernetesForm::kJob ? "" : by_torchrun ? "node-0-" : "worker-";
    hosts.push_back(
        {.name = is_coordinator ? "localhost" : fmt::format("{0}-{1}{2}.{0}", name, role, host), .slots = slots});
  }
  return hosts;
}

std::vector<OptionSpec> submit_options() {
  std::vector<OptionSpec> options;
  for (const SubmitOption& option : all_submit_options()) options.push_back(option.spec);
  return options;
}

Result<CommandLine> submit_line(const GivenOptions& given, const SubmitWords& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Submission submission, submission_of(words));
  SYNCOPATE_RETURN_IF_ERROR(check_given(submission, given));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest run, apply_options(given));
  SYNCOPATE_RETURN_IF_ERROR(check_together(submission, run));
  if (submission.target == SubmitTarget::kSlurm && is_distributed(run)) run.launcher = LauncherKind::kSlurm;
  if (is_distributed(run)) run.hosts = hosts_of(submission, workers_of(run));
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {presumed(run)}));
  SYNCOPATE_RETURN_IF_ERROR(check(run));
  CommandLine line;
  line.action = CommandLine::Action::kSubmit;
  line.config = std::move(run);
  line.given = given;
  line.submission = submission;
  return line;
}

}  // namespace syncopate::experiments
