#include "experiments/config/submit_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "common/text/quantity.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kGroup = "submit";
constexpr std::size_t kLongestName = 40;  // schedulers put up to 23 letters behind it to name a host or a process

Status wrong(std::string_view name, std::string_view value, std::string_view must) {
  return Status::invalid_argument(fmt::format("--{}={}: must be {}", name, printable(value), must));
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
  constexpr double kLeast = 1 << 20, kMost = 0x1p50;
  const std::optional<double> bytes = parse_bytes(text);
  if (bytes && *bytes >= kLeast && *bytes <= kMost && std::floor(*bytes) == *bytes) {
    submission.memory_bytes = static_cast<std::int64_t>(*bytes);
    return {};
  }
  return wrong("memory", text, fmt::format("1MiB to 1048576GiB, {}, as in 4GiB", kByteForms));
}

Status set_gpus(Submission& submission, const std::string& text) {
  constexpr int kMost = 64;
  const std::optional<int> gpus = parse_number<int>(text);
  if (!gpus || *gpus < 1 || *gpus > kMost) return wrong("gpus", text, fmt::format("1 to {} on a host", kMost));
  submission.gpus = *gpus;
  return {};
}

Status set_time_limit(Submission& submission, const std::string& text) {
  constexpr double kMost = 366 * 86400;
  // Schedulers' own letter for minutes, too.
  const std::optional<double> seconds = parse_time(text.ends_with('m') ? text + "in" : text);
  if (seconds && *seconds >= 1 && *seconds <= kMost && std::floor(*seconds) == *seconds) {
    submission.time_limit_seconds = static_cast<std::int64_t>(*seconds);
    return {};
  }
  return wrong("time-limit", text, "1s to 366d, whole seconds with s, min (or m), h or d, as in 2h");
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

Status set_slurm(Submission& submission, const std::string& text) {
  if (text != "true") return Status::invalid_argument(fmt::format("--slurm={}: takes no value; give --slurm", text));
  submission.target = SubmitTarget::kSlurm;
  return {};
}

Status set_nodes(Submission& submission, const std::string& text) {
  constexpr int kMost = 1000;
  const std::optional<int> nodes = parse_number<int>(text);
  if (!nodes || *nodes < 1 || *nodes > kMost) return wrong("nodes", text, fmt::format("1 to {} hosts", kMost));
  submission.nodes = *nodes;
  return {};
}

// What Slurm's names are made of; a list of partitions has commas.
bool is_slurm_name(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  return !text.empty() && text.size() <= kLongest && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return is_digit(c) || is_letter(static_cast<char>(c | 0x20)) ||
           std::string_view("_-.,").find(c) != std::string::npos;
  });
}

Status set_partition(Submission& submission, const std::string& text) {
  if (!is_slurm_name(text))
    return wrong("partition", text, "the name of a partition of Slurm's, as in gpu or long,gpu");
  submission.partition = text;
  return {};
}

Status set_account(Submission& submission, const std::string& text) {
  if (!is_slurm_name(text)) return wrong("account", text, "the name of an account of Slurm's");
  submission.account = text;
  return {};
}

}  // namespace

// The order is that of --help.
const std::vector<SubmitOption>& all_submit_options() {
  using enum SubmitTarget;
  static const std::vector<SubmitOption> all = {
      {{.group = kGroup,
        .name = "kubernetes",
        .placeholder = "FORM",
        .sentence = "Prints manifests for kubectl. job: a Job of Kubernetes' own, with an ssh server in each pod. "
                    "mpijob: an MPIJob of the MPI operator. trainer: a TrainJob of Kubeflow Trainer, whose torchrun "
                    "starts the program behind --.",
        .range = "job, mpijob or trainer",
        .usual = "none: this or --slurm must be given"},
       set_form,
       kKubernetes},
      {{.group = kGroup,
        .name = "slurm",
        .sentence = "Prints a script for sbatch, whose tasks are the run's workers and servers."},
       set_slurm,
       kSlurm},
      {{.group = kGroup,
        .name = "name",
        .placeholder = "NAME",
        .sentence = "The job's name.",
        .range = "up to 40 lower-case letters, digits and dashes",
        .usual = Submission().name},
       set_name,
       std::nullopt},
      {{.group = kGroup,
        .name = "slots",
        .placeholder = "N",
        .sentence = "How many workers share a host, which is a pod; there are as many hosts as --workers need.",
        .unit = "workers",
        .range = "1 to 1024",
        .usual = "1"},
       set_slots,
       kKubernetes},
      {{.group = kGroup,
        .name = "nodes",
        .placeholder = "N",
        .sentence = "Over how many hosts Slurm spreads the workers and servers.",
        .unit = "hosts",
        .range = "1 to 1000",
        .usual = "1"},
       set_nodes,
       kSlurm},
      {{.group = kGroup,
        .name = "partition",
        .placeholder = "NAME",
        .sentence = "Slurm's partition, or several with commas between them.",
        .range = "as sinfo shows them",
        .usual = "Slurm's own"},
       set_partition,
       kSlurm},
      {{.group = kGroup,
        .name = "account",
        .placeholder = "NAME",
        .sentence = "Whom Slurm charges.",
        .range = "as sacctmgr shows them",
        .usual = "your own"},
       set_account,
       kSlurm},
      {{.group = kGroup,
        .name = "cpus",
        .placeholder = "N",
        .sentence = "Processors of a host: the least, and the most.",
        .unit = "processors",
        .range = "0.001 to 1024, as in 2 or 0.5",
        .usual = "not asked for"},
       set_cpus,
       std::nullopt},
      {{.group = kGroup,
        .name = "memory",
        .placeholder = "SIZE",
        .sentence = "Memory of a host: the least, and the most.",
        .range = "1MiB to 1048576GiB, as in 4GiB",
        .usual = "not asked for"},
       set_memory,
       std::nullopt},
      {{.group = kGroup,
        .name = "gpus",
        .placeholder = "N",
        .sentence = "GPUs of a host.",
        .unit = "GPUs",
        .range = "1 to 64",
        .usual = "none"},
       set_gpus,
       std::nullopt},
      {{.group = kGroup,
        .name = "time-limit",
        .placeholder = "TIME",
        .sentence = "After which the job is ended.",
        .range = "1s to 366d, as in 90s, 30m or 2h",
        .usual = "none"},
       set_time_limit,
       std::nullopt},
      {{.group = kGroup,
        .name = "image",
        .placeholder = "IMAGE",
        .sentence = "The container image of all pods, as Containerfile builds it.",
        .range = "a name with which the cluster finds it",
        .usual = "none: it must be given"},
       set_image,
       kKubernetes},
      {{.group = kGroup,
        .name = "namespace",
        .placeholder = "NAME",
        .sentence = "Kubernetes' namespace.",
        .range = "up to 63 lower-case letters, digits and dashes",
        .usual = "the one that kubectl is set to"},
       set_namespace,
       kKubernetes},
      {{.group = kGroup,
        .name = "volume-claim",
        .placeholder = "NAME",
        .sentence = "A PersistentVolumeClaim, which all pods see as their working directory, /work: for data sets, "
                    "results and checkpoints.",
        .range = "a name of the same namespace",
        .usual = "none: results go with the pods"},
       set_volume_claim,
       kKubernetes},
  };
  return all;
}

}  // namespace syncopate::experiments
