// A program of a person's own under Kubeflow Trainer: a TrainingRuntime, and a TrainJob that has torchrun start the
// program as often as there are workers.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "experiments/cluster/plan/command_environment.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/submit/kubernetes_manifests.h"
#include "experiments/lab/submit/pod.h"

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

constexpr const char* kApiVersion = "trainer.kubeflow.org/v1alpha1";
constexpr const char* kNode = "node";  // the name that the trainer looks for, of the job and its container

// A container of the pods, and in it a file in memory that its user alone can read, as the program demands.
constexpr const char* kSecretFolder = "/etc/syncopate/secret";
constexpr const char* kOwnSecret = "/dev/shm/syncopate-secret";

int nodes_of(const CommandLine& line) { return workers_of(line.config) / line.submission->slots; }

// What was not asked for, the program decides. Without a mode it would read none of the others.
ordered_json environment(const CommandLine& line) {
  std::set<std::string> wanted;
  for (const OptionSpec& option : option_table()) {
    if (line.given.contains(option.name) && !option.variable.empty())
      wanted.insert({option.variable, "SYNCOPATE_MODE"});
  }
  VariableList variables;
  for (const auto& [name, value] : command_environment(presumed(line.config), 0)) {
    if (wanted.contains(name)) variables.emplace_back(name, value);
  }
  variables.emplace_back("PYTHONUNBUFFERED", "1");
  if (nodes_of(line) > 1) variables.emplace_back(kSecretFile, kOwnSecret);
  set_variables(variables, line.config.environment);
  ordered_json documents = ordered_json::array();
  for (const auto& [name, value] : variables) documents.push_back({{"name", name}, {"value", value}});
  return documents;
}

// The kubelet's files are root's, whoever the image's user is, and in this pod nobody else can read them.
void mount_secret(const Submission& submission, ordered_json& pod) {
  constexpr const char* kVolume = "secret";
  constexpr int kForAllInPod = 0444;
  pod["volumes"].push_back(
      {{"name", kVolume}, {"secret", {{"secretName", secret_of(submission)}, {"defaultMode", kForAllInPod}}}});
  pod["containers"][0]["volumeMounts"].push_back({{"name", kVolume}, {"mountPath", kSecretFolder}, {"readOnly", true}});
}

std::vector<std::string> start_command(const CommandLine& line) {
  std::vector<std::string> command = {"torchrun", "--no-python"};
  command.insert(command.end(), line.config.command.begin(), line.config.command.end());
  if (nodes_of(line) == 1) return command;
  const std::string script =
      fmt::format("umask 077 && cat {}/{} >{} && exec \"$@\"", kSecretFolder, kSecretKey, kOwnSecret);
  command.insert(command.begin(), {"sh", "-c", script, "sh"});
  return command;
}

ordered_json runtime(const Submission& submission, int nodes) {
  ordered_json pod = pod_spec(submission, container(submission, kNode, {}));
  // The image is a person's own, and so are its user and, unless there is a claim, its working directory, which an
  // empty volume would hide.
  pod.erase("securityContext");
  ordered_json& node = pod["containers"][0];
  for (const char* of_job : {"command", "resources"}) node.erase(of_job);
  if (!submission.volume_claim) {
    node.erase("workingDir");
    node.erase("volumeMounts");
    pod.erase("volumes");
  }
  if (nodes > 1) mount_secret(submission, pod);
  ordered_json runtime = object(submission, kApiVersion, "TrainingRuntime");
  runtime["metadata"]["labels"]["trainer.kubeflow.org/framework"] = "torch";
  ordered_json job = {{"metadata", {{"labels", {{"trainer.kubeflow.org/trainjob-ancestor-step", "trainer"}}}}},
                      {"spec", {{"backoffLimit", 0}, {"template", {{"spec", std::move(pod)}}}}}};
  ordered_json jobs = ordered_json::array();
  jobs.push_back({{"name", kNode}, {"template", std::move(job)}});
  runtime["spec"] = {{"mlPolicy", {{"numNodes", nodes}, {"torch", ordered_json::object()}}},
                     {"template", {{"spec", {{"replicatedJobs", std::move(jobs)}}}}}};
  return runtime;
}

}  // namespace

std::vector<ordered_json> trainer_documents(const CommandLine& line) {
  const Submission& submission = *line.submission;
  const int nodes = nodes_of(line);
  ordered_json trainer = {{"image", submission.image},
                          {"command", start_command(line)},
                          {"env", environment(line)},
                          {"numNodes", nodes},
                          {"numProcPerNode", submission.slots}};
  ordered_json amounts = resources(submission);
  if (!amounts.is_null()) trainer["resourcesPerNode"] = std::move(amounts);
  ordered_json job = object(submission, kApiVersion, "TrainJob");
  ordered_json& spec = job["spec"];
  spec["runtimeRef"] = {{"apiGroup", "trainer.kubeflow.org"}, {"kind", "TrainingRuntime"}, {"name", submission.name}};
  if (submission.time_limit_seconds) spec["activeDeadlineSeconds"] = *submission.time_limit_seconds;
  spec["trainer"] = std::move(trainer);
  return {runtime(submission, nodes), std::move(job)};
}

}  // namespace syncopate::experiments
