// A program of a person's own under Kubeflow Trainer: a TrainingRuntime, and a TrainJob that has torchrun start the
// program as often as there are workers.
#include <algorithm>
#include <set>
#include <utility>

#include "experiments/cluster/command/command_environment.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/submit/kubernetes_manifests.h"
#include "experiments/lab/submit/pod.h"

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

constexpr const char* kApiVersion = "trainer.kubeflow.org/v1alpha1";
constexpr const char* kNode = "node";  // the name that the trainer looks for, of the job and its container

// Which of the program's variables follow from which option. What was not asked for, the program decides.
constexpr std::pair<const char*, const char*> kVariables[] = {{"mode", "SYNCOPATE_MODE"},
                                                              {"consistency", "SYNCOPATE_CONSISTENCY"},
                                                              {"servers", "SYNCOPATE_SERVERS"},
                                                              {"transport", "SYNCOPATE_WIRE"},
                                                              {"timeout", "SYNCOPATE_TIMEOUT"},
                                                              {"compress", "SYNCOPATE_COMPRESS"},
                                                              {"seed", "SYNCOPATE_SEED"},
                                                              {"bucket-bytes", "SYNCOPATE_BUCKET_BYTES"},
                                                              {"chunk-bytes", "SYNCOPATE_BUCKET_BYTES"}};

ordered_json environment(const CommandLine& line) {
  std::set<std::string> wanted;
  for (const auto& [option, variable] : kVariables) {
    if (line.given.contains(option)) wanted.insert(variable);
  }
  VariableList variables;
  for (const auto& [name, value] : command_environment(presumed(line.config), 0)) {
    if (wanted.contains(name)) variables.emplace_back(name, value);
  }
  variables.emplace_back("PYTHONUNBUFFERED", "1");
  set_variables(variables, line.config.environment);
  ordered_json documents = ordered_json::array();
  for (const auto& [name, value] : variables) documents.push_back({{"name", name}, {"value", value}});
  return documents;
}

ordered_json runtime(const Submission& submission, int nodes) {
  ordered_json pod = pod_spec(submission, container(submission, kNode, {}));
  // The image is a person's own, and so is its user.
  pod.erase("securityContext");
  ordered_json& node = pod["containers"][0];
  for (const char* of_job : {"command", "resources"}) node.erase(of_job);
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
  const int nodes = workers_of(line.config) / submission.slots;
  std::vector<std::string> command = {"torchrun", "--no-python"};
  command.insert(command.end(), line.config.command.begin(), line.config.command.end());
  ordered_json trainer = {{"image", submission.image},
                          {"command", std::move(command)},
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
