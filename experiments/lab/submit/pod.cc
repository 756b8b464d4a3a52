#include "experiments/lab/submit/pod.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

constexpr int kUser = 10001;  // of the image
constexpr const char* kWorkVolume = "work";

ordered_json work_volume(const Submission& submission) {
  ordered_json volume = {{"name", kWorkVolume}};
  if (submission.volume_claim) {
    volume["persistentVolumeClaim"] = {{"claimName", *submission.volume_claim}};
  } else {
    volume["emptyDir"] = ordered_json::object();
  }
  return volume;
}

}  // namespace

ordered_json labels(const Submission& submission) {
  return {{"app.kubernetes.io/name", "syncopate"}, {"app.kubernetes.io/instance", submission.name}};
}

ordered_json object(const Submission& submission, const char* api_version, const char* kind) {
  ordered_json metadata = {{"name", submission.name}};
  if (submission.kube_namespace) metadata["namespace"] = *submission.kube_namespace;
  metadata["labels"] = labels(submission);
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

std::string secret_of(const Submission& submission) { return submission.name + "-secret"; }

ordered_json resources(const Submission& submission) {
  ordered_json amounts;
  if (submission.thousandths_of_cpus) amounts["cpu"] = cpus_quantity(*submission.thousandths_of_cpus);
  if (submission.memory_bytes) amounts["memory"] = bytes_quantity(*submission.memory_bytes);
  if (submission.gpus) amounts["nvidia.com/gpu"] = fmt::to_string(*submission.gpus);
  if (amounts.is_null()) return amounts;
  return {{"requests", amounts}, {"limits", amounts}};
}

ordered_json container(const Submission& submission, const char* name, const std::vector<std::string>& command) {
  ordered_json container = {
      {"name", name}, {"image", submission.image}, {"command", command}, {"workingDir", kWorkFolder}};
  ordered_json amounts = resources(submission);
  if (!amounts.is_null()) container["resources"] = std::move(amounts);
  container["securityContext"] = {{"allowPrivilegeEscalation", false},
                                  {"capabilities", {{"drop", ordered_json::array({"ALL"})}}}};
  container["volumeMounts"] = ordered_json::array({{{"name", kWorkVolume}, {"mountPath", kWorkFolder}}});
  return container;
}

ordered_json pod_spec(const Submission& submission, ordered_json container) {
  return {{"automountServiceAccountToken", false},
          {"enableServiceLinks", false},
          {"securityContext",
           {{"runAsNonRoot", true},
            {"runAsUser", kUser},
            {"runAsGroup", kUser},
            {"fsGroup", kUser},
            {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
          {"containers", ordered_json::array({std::move(container)})},
          {"volumes", ordered_json::array({work_volume(submission)})}};
}

std::vector<std::string> ssh_server() { return {"/usr/sbin/sshd", "-D", "-e", "-f", "/etc/syncopate/sshd_config"}; }

std::string remote_shell_to_pods() { return "ssh -F /etc/syncopate/ssh_config"; }

std::string bytes_quantity(std::int64_t bytes) {
  constexpr std::pair<const char*, std::int64_t> kUnits[] = {{"Gi", 1ll << 30}, {"G", 1000'000'000}, {"Mi", 1ll << 20},
                                                             {"M", 1000'000},   {"Ki", 1ll << 10},   {"k", 1000}};
  for (const auto& [unit, size] : kUnits) {
    if (bytes % size == 0) return fmt::format("{}{}", bytes / size, unit);
  }
  return fmt::to_string(bytes);
}

std::string cpus_quantity(std::int64_t thousandths) {
  return thousandths % 1000 == 0 ? fmt::to_string(thousandths / 1000) : fmt::format("{}m", thousandths);
}

}  // namespace syncopate::experiments
