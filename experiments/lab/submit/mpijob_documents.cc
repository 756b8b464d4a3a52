// A run as an MPIJob of the MPI operator, which makes the keys, the host file and the names of the pods.
//
// The launcher is the coordinator, and starts workers and servers itself, through ssh, as on other hosts. mpirun would
// start equal ranks alone, which servers are not, and Open MPI's own connections are neither encrypted nor
// authenticated. With --launcher=mpirun --collective=mpi the coordinator starts mpirun over the same host file.
#include <fmt/format.h>

#include <utility>

#include "experiments/lab/submit/kubernetes_manifests.h"
#include "experiments/lab/submit/pod.h"
#include "experiments/lab/submit/run_words.h"

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;

constexpr const char* kHostFile = "/etc/mpi/hostfile";  // where the operator mounts it

ordered_json replicas(std::size_t count, ordered_json pod) {
  return {{"replicas", count}, {"restartPolicy", "Never"}, {"template", {{"spec", std::move(pod)}}}};
}

ordered_json launcher(const CommandLine& line) {
  GivenOptions options = line.given;
  options["workers"] = fmt::to_string(workers_of(line.config));
  options["hostfile"] = kHostFile;
  options["remote-shell"] = remote_shell_to_pods();
  options.try_emplace("wait-for-hosts", kWaitForPods);
  std::vector<std::string> command = {"syncopate"};
  for (std::string& word : run_words(options)) command.push_back(std::move(word));
  // It has the coordinator and the evaluator, one thread each that computes now and then, and needs no GPU.
  Submission submission = *line.submission;
  constexpr std::int64_t kOneProcessor = 1000;
  if (submission.thousandths_of_cpus) submission.thousandths_of_cpus = kOneProcessor;
  submission.gpus.reset();
  return replicas(1, pod_spec(submission, container(submission, "launcher", command)));
}

// The operator makes the launcher once all workers are ready, which is when they take connections.
ordered_json workers(const CommandLine& line) {
  ordered_json worker = container(*line.submission, "worker", ssh_server());
  worker["readinessProbe"] = {{"tcpSocket", {{"port", kSshPort}}}, {"periodSeconds", 2}};
  return replicas(line.config.hosts.size(), pod_spec(*line.submission, std::move(worker)));
}

}  // namespace

std::vector<ordered_json> mpijob_documents(const CommandLine& line) {
  const Submission& submission = *line.submission;
  ordered_json policy = {{"cleanPodPolicy", "Running"}, {"backoffLimit", 0}};
  if (submission.time_limit_seconds) policy["activeDeadlineSeconds"] = *submission.time_limit_seconds;
  ordered_json job = object(submission, "kubeflow.org/v2beta1", "MPIJob");
  job["spec"] = {{"slotsPerWorker", submission.slots},
                 {"mpiImplementation", "OpenMPI"},
                 {"sshAuthMountPath", kSshKeys},
                 {"launcherCreationPolicy", "WaitForWorkersReady"},
                 {"runPolicy", std::move(policy)},
                 {"mpiReplicaSpecs", {{"Launcher", launcher(line)}, {"Worker", workers(line)}}}};
  return {std::move(job)};
}

}  // namespace syncopate::experiments
