#include "experiments/config/submit_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "common/text/number.h"
#include "experiments/config/nearest_name.h"
#include "experiments/config/resolution.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kGroup = "submit";
constexpr std::size_t kLongestName = 40;  // schedulers put up to 23 letters behind it to name a host or a process

// An option of submit alone: what --help shows, and how its value comes into the submission.
struct SubmitOption {
  OptionSpec spec;
  Status (*set)(Submission& submission, const std::string& text);
};

Status wrong(std::string_view name, std::string_view value, std::string_view must) {
  return Status::invalid_argument(fmt::format("--{}={}: must be {}", name, value, must));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

// A label as DNS has it (RFC 1123): lower-case letters, digits and dashes, the last two not at its ends.
bool is_label(std::string_view text, std::size_t longest) {
  const auto is_allowed = [](char c) { return is_letter(c) || is_digit(c) || c == '-'; };
  return !text.empty() && text.size() <= longest && std::ranges::all_of(text, is_allowed) && text.front() != '-' &&
         text.back() != '-';
}

Status set_form(Submission& submission, const std::string& text) {
  for (const KubernetesForm form : {KubernetesForm::kJob, KubernetesForm::kMpiJob, KubernetesForm::kTrainer}) {
    if (text != name_of(form)) continue;
    submission.form = form;
    return {};
  }
  return wrong("kubernetes", text, "job, mpijob or trainer");
}

Status set_name(Submission& submission, const std::string& text) {
  if (!is_label(text, kLongestName) || !is_letter(text.front())) {
    return wrong("name", text,
                 fmt::format("lower-case letters, digits and dashes, a letter first, no dash last, at most {} of them",
                             kLongestName));
  }
  submission.name = text;
  return {};
}

Status set_slots(Submission& submission, const std::string& text) {
  const std::optional<int> slots = parse_number<int>(text);
  if (!slots || *slots < 1 || *slots > kMostSlots) {
    return wrong("slots", text, fmt::format("1 to {} workers on a host", kMostSlots));
  }
  submission.slots = *slots;
  return {};
}

Status set_cpus(Submission& submission, const std::string& text) {
  constexpr double kMost = 1024;
  const std::optional<double> cpus = parse_number<double>(text);
  const double thousandths = cpus.value_or(0) * 1000;
  if (!(thousandths >= 1 && thousandths <= kMost * 1000)) return wrong("cpus", text, "0.001 to 1024, as in 2 or 0.5");
  submission.thousandths_of_cpus = static_cast<std::int64_t>(thousandths + 0.5);
  return {};
}

Status set_memory(Submission& submission, const std::string& text) {
  constexpr std::pair<std::string_view, std::int64_t> kByteUnits[] = {
      {"kB", 1000}, {"MB", 1000'000}, {"GB", 1000'000'000}, {"KiB", 1ll << 10}, {"MiB", 1ll << 20}, {"GiB", 1ll << 30}};
  constexpr std::int64_t kLeast = 1 << 20, kMost = 1ll << 50;
  for (const auto& [unit, bytes] : kByteUnits) {
    if (!text.ends_with(unit)) continue;
    const auto count = parse_number<std::int64_t>(std::string_view(text).substr(0, text.size() - unit.size()));
    if (!count || *count < 1 || *count > kMost / bytes || *count * bytes < kLeast) break;
    submission.memory_bytes = *count * bytes;
    return {};
  }
  return wrong("memory", text, "1MiB to 1048576GiB, a whole number with kB, MB, GB, KiB, MiB or GiB, as in 4GiB");
}

Status set_gpus(Submission& submission, const std::string& text) {
  constexpr int kMost = 64;
  const std::optional<int> gpus = parse_number<int>(text);
  if (!gpus || *gpus < 1 || *gpus > kMost) return wrong("gpus", text, fmt::format("1 to {} on a host", kMost));
  submission.gpus = *gpus;
  return {};
}

Status set_time_limit(Submission& submission, const std::string& text) {
  constexpr std::pair<char, std::int64_t> kTimeUnits[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
  constexpr std::int64_t kMost = 366 * 86400;
  for (const auto& [unit, seconds] : kTimeUnits) {
    if (!text.ends_with(unit)) continue;
    const auto count = parse_number<std::int64_t>(std::string_view(text).substr(0, text.size() - 1));
    if (!count || *count < 1 || *count > kMost / seconds) break;
    submission.time_limit_seconds = *count * seconds;
    return {};
  }
  return wrong("time-limit", text, "1s to 366d, a whole number with s, m, h or d, as in 2h");
}

Status set_image(Submission& submission, const std::string& text) {
  constexpr std::size_t kLongest = 500;  // as long as a TrainJob's may be
  const auto is_allowed = [](char c) {
    constexpr std::string_view kMarks = "._-/:@+";
    return is_digit(c) || is_letter(static_cast<char>(c | 0x20)) || kMarks.find(c) != std::string_view::npos;
  };
  if (text.empty() || text.size() > kLongest || !std::ranges::all_of(text, is_allowed)) {
    return wrong("image", text, "the name of a container image, as in registry.example/syncopate:1.0");
  }
  submission.image = text;
  return {};
}

Status set_namespace(Submission& submission, const std::string& text) {
  constexpr std::size_t kLongest = 63;
  if (!is_label(text, kLongest)) {
    return wrong("namespace", text, "lower-case letters, digits and dashes, no dash at an end, at most 63 of them");
  }
  submission.kube_namespace = text;
  return {};
}

Status set_volume_claim(Submission& submission, const std::string& text) {
  constexpr std::size_t kLongest = 253;
  std::size_t begin = 0;
  bool is_name = text.size() <= kLongest;
  while (is_name && begin != std::string::npos) {
    const std::size_t dot = text.find('.', begin);
    is_name = is_label(std::string_view(text).substr(begin, dot - begin), kLongest);
    begin = dot == std::string::npos ? dot : dot + 1;
  }
  if (!is_name) return wrong("volume-claim", text, "the name of a PersistentVolumeClaim, as in training-data");
  submission.volume_claim = text;
  return {};
}

// The order is that of --help.
const std::vector<SubmitOption>& own_options() {
  static const std::vector<SubmitOption> all = {
      {{.group = kGroup,
        .name = "kubernetes",
        .placeholder = "FORM",
        .sentence = "Prints manifests for kubectl. job: a Job of Kubernetes' own, with an ssh server in each pod. "
                    "mpijob: an MPIJob of the MPI operator. trainer: a TrainJob of Kubeflow Trainer, whose torchrun "
                    "starts the program behind --.",
        .range = "job, mpijob or trainer",
        .usual = "none: it must be given"},
       set_form},
      {{.group = kGroup,
        .name = "name",
        .placeholder = "NAME",
        .sentence = "The job's name.",
        .range = "up to 40 lower-case letters, digits and dashes",
        .usual = Submission().name},
       set_name},
      {{.group = kGroup,
        .name = "slots",
        .placeholder = "N",
        .sentence = "How many workers share a host, which is a pod; there are as many hosts as --workers need.",
        .unit = "workers",
        .range = "1 to 1024",
        .usual = "1"},
       set_slots},
      {{.group = kGroup,
        .name = "cpus",
        .placeholder = "N",
        .sentence = "Processors of a host: the least, and the most.",
        .unit = "processors",
        .range = "0.001 to 1024, as in 2 or 0.5",
        .usual = "not asked for"},
       set_cpus},
      {{.group = kGroup,
        .name = "memory",
        .placeholder = "SIZE",
        .sentence = "Memory of a host: the least, and the most.",
        .range = "1MiB to 1048576GiB, as in 4GiB",
        .usual = "not asked for"},
       set_memory},
      {{.group = kGroup,
        .name = "gpus",
        .placeholder = "N",
        .sentence = "GPUs of a host.",
        .unit = "GPUs",
        .range = "1 to 64",
        .usual = "none"},
       set_gpus},
      {{.group = kGroup,
        .name = "time-limit",
        .placeholder = "TIME",
        .sentence = "After which the job is ended.",
        .range = "1s to 366d, as in 90s, 30m or 2h",
        .usual = "none"},
       set_time_limit},
      {{.group = kGroup,
        .name = "image",
        .placeholder = "IMAGE",
        .sentence = "The container image of all pods, as Containerfile builds it.",
        .range = "a name with which the cluster finds it",
        .usual = "none: it must be given"},
       set_image},
      {{.group = kGroup,
        .name = "namespace",
        .placeholder = "NAME",
        .sentence = "Kubernetes' namespace.",
        .range = "up to 63 lower-case letters, digits and dashes",
        .usual = "the one that kubectl is set to"},
       set_namespace},
      {{.group = kGroup,
        .name = "volume-claim",
        .placeholder = "NAME",
        .sentence = "A PersistentVolumeClaim, which all pods see as their working directory, /work: for data sets, "
                    "results and checkpoints.",
        .range = "a name of the same namespace",
        .usual = "none: results go with the pods"},
       set_volume_claim},
  };
  return all;
}

Result<Submission> submission_of(const SubmitWords& words) {
  Submission submission;
  for (const auto& [name, value] : words) {
    const auto option = std::ranges::find(own_options(), name, [](const SubmitOption& o) { return o.spec.name; });
    if (option == own_options().end()) {
      return Status::invalid_argument(fmt::format("--{}: is no option of submit", name));
    }
    SYNCOPATE_RETURN_IF_ERROR(option->set(submission, value));
  }
  if (!words.contains("kubernetes")) {
    return Status::invalid_argument(
        "submit: --kubernetes is missing, which says what it is for: job, mpijob or trainer");
  }
  if (!words.contains("image")) {
    return Status::invalid_argument(
        "submit: --image is missing, the container image of the pods, as in --image=registry.example/syncopate:1.0");
  }
  return submission;
}

// What the scheduler decides cannot be asked for.
Status check_given(const GivenOptions& given) {
  for (const char* name : {"hosts", "hostfile", "remote-shell", "remote-program", "listen-address"}) {
    const auto option = given.find(name);
    if (option == given.end()) continue;
    return Status::invalid_argument(fmt::format(
        "--{}={}: submit names hosts and how they are reached itself, by --workers and --slots; leave it out", name,
        option->second));
  }
  if (given.contains("dry-run")) {
    return Status::invalid_argument("--dry-run: submit starts nothing, it prints what would; leave it out");
  }
  return {};
}

Status check_together(const Submission& submission, const RunRequest& run) {
  const bool has_program = !run.command.empty();
  if (run.cluster == ClusterKind::kSimulated) {
    return Status::invalid_argument("--cluster=simulated: needs no machines but this one; run it here");
  }
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
  if (submission.form == KubernetesForm::kMpiJob && run.mode == Mode::kLocal) {
    return Status::invalid_argument("--mode=local: trains in one process, which needs no MPIJob; use --kubernetes=job");
  }
  if (run.launcher == LauncherKind::kMpirun) {
    return Status::invalid_argument(
        "--launcher=mpirun: pods are reached through ssh by Syncopate itself, which needs no Open MPI there; leave it "
        "out, and --collective=mpi");
  }
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

std::vector<HostSlots> hosts_of(const Submission& submission, int workers) {
  if (submission.form == KubernetesForm::kTrainer) return {};
  const int count = (workers + submission.slots - 1) / submission.slots;
  const std::string& name = submission.name;
  std::vector<HostSlots> hosts;
  for (int host = 0; host < count; ++host) {
    const int slots = std::min(submission.slots, workers - host * submission.slots);
    const bool is_coordinator = submission.form == KubernetesForm::kJob && host == 0;
    const char* const role = submission.form == KubernetesForm::kJob ? "" : "worker-";
    hosts.push_back(
        {.name = is_coordinator ? "localhost" : fmt::format("{0}-{1}{2}.{0}", name, role, host), .slots = slots});
  }
  return hosts;
}

std::vector<OptionSpec> submit_options() {
  std::vector<OptionSpec> options;
  for (const SubmitOption& option : own_options()) options.push_back(option.spec);
  return options;
}

Result<CommandLine> submit_line(const GivenOptions& given, const SubmitWords& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Submission submission, submission_of(words));
  SYNCOPATE_RETURN_IF_ERROR(check_given(given));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest run, apply_options(given));
  SYNCOPATE_RETURN_IF_ERROR(check_together(submission, run));
  if (run.mode != Mode::kLocal) run.hosts = hosts_of(submission, workers_of(run));
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
