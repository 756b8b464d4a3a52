// A run as one Indexed Job: pod 0 is the coordinator and the first host, the others are hosts that wait for it.
#include <fmt/format.h>

#include <utility>

#include "experiments/config/host_list.h"
#include "experiments/lab/submit/kubernetes_manifests.h"
#include "experiments/lab/submit/pod.h"
#include "experiments/lab/submit/run_words.h"

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

constexpr const char* kContainer = "syncopate";
constexpr const char* kKeysVolume = "keys";

// Pods find each other by name through a Service without an address of its own, also before they are ready.
ordered_json service(const Submission& submission) {
  ordered_json service = object(submission, "v1", "Service");
  service["spec"] = {{"clusterIP", "None"},
                     {"publishNotReadyAddresses", true},
                     {"selector", labels(submission)},
                     {"ports", ordered_json::array({{{"name", "ssh"}, {"port", kSshPort}}})}};
  return service;
}

// The Secret's entries by the names that the MPI operator's have, so that one image serves both.
ordered_json keys_volume(const Submission& submission) {
  constexpr int kForUserAndGroup = 0440;
  const auto item = [](const char* key, const char* path) -> ordered_json { return {{"key", key}, {"path", path}}; };
  return {{"name", kKeysVolume},
          {"secret",
           {{"secretName", submission.name + "-ssh"},
            {"defaultMode", kForUserAndGroup},
            {"items", ordered_json::array({item("ssh-privatekey", "id_rsa"), item("ssh-publickey", "id_rsa.pub"),
                                           item("ssh-publickey", "authorized_keys")})}}}};
}

std::vector<std::string> coordinator_command(const CommandLine& line) {
  GivenOptions options = line.given;
  if (is_distributed(line.config)) options["workers"] = fmt::to_string(workers_of(line.config));
  if (line.config.hosts.size() > 1) {
    options["hosts"] = to_text(line.config.hosts);
    options["remote-shell"] = remote_shell_to_pods();
    options.try_emplace("wait-for-hosts", kWaitForPods);
  }
  std::vector<std::string> command = {"syncopate"};
  for (std::string& word : run_words(options)) command.push_back(std::move(word));
  return command;
}

// All pods of a Job are of one template. The words behind the script are the coordinator's command.
std::vector<std::string> command_by_index(const std::vector<std::string>& coordinator) {
  std::string server;
  for (const std::string& word : ssh_server()) server += " " + word;
  std::vector<std::string> command = {
      "sh", "-c", fmt::format(R"(if [ "$JOB_COMPLETION_INDEX" = 0 ]; then exec "$@"; else exec{}; fi)", server), "sh"};
  command.insert(command.end(), coordinator.begin(), coordinator.end());
  return command;
}

}  // namespace

std::vector<ordered_json> job_documents(const CommandLine& line) {
  const Submission& submission = *line.submission;
  const std::size_t hosts = std::max<std::size_t>(line.config.hosts.size(), 1);
  const std::vector<std::string> coordinator = coordinator_command(line);
  ordered_json pod =
      pod_spec(submission, container(submission, kContainer, hosts == 1 ? coordinator : command_by_index(coordinator)));
  pod["restartPolicy"] = "Never";
  ordered_json job = object(submission, "batch/v1", "Job");
  ordered_json& spec = job["spec"];
  spec = {{"backoffLimit", 0}};
  if (submission.time_limit_seconds) spec["activeDeadlineSeconds"] = *submission.time_limit_seconds;
  std::vector<ordered_json> documents;
  if (hosts > 1) {
    spec["completionMode"] = "Indexed";
    spec["completions"] = hosts;
    spec["parallelism"] = hosts;
    // The coordinator's end is the run's; the other pods are ended then.
    spec["successPolicy"] = {{"rules", ordered_json::array({{{"succeededIndexes", "0"}}})}};
    pod["subdomain"] = submission.name;
    pod["volumes"].push_back(keys_volume(submission));
    pod["containers"][0]["volumeMounts"].push_back(
        {{"name", kKeysVolume}, {"mountPath", kSshKeys}, {"readOnly", true}});
    documents.push_back(service(submission));
  }
  spec["template"] = {{"metadata", {{"labels", labels(submission)}}}, {"spec", std::move(pod)}};
  documents.push_back(std::move(job));
  return documents;
}

}  // namespace syncopate::experiments
