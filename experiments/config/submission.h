// Submission: what is asked of the scheduler of somebody's machines, beside the run that it is to start. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace syncopate::experiments {

enum class SubmitTarget { kKubernetes, kSlurm };

// The kinds of Kubernetes objects that a job can be made of.
enum class KubernetesForm {
  kJob,     // a Job of Kubernetes' own, an ssh server in each pod
  kMpiJob,  // an MPIJob of the MPI operator
  kTrainer  // a TrainJob of Kubeflow Trainer, whose torchrun starts a program of the person's own
};

// "job", "mpijob", "trainer"
const char* name_of(KubernetesForm form);

struct Submission {
  SubmitTarget target = SubmitTarget::kKubernetes;

  std::string name = "syncopate";  // the job's: a label of DNS that begins with a letter, of at most 40 characters
  // What a host of the job is to have; none: not asked for.
  std::optional<std::int64_t> thousandths_of_cpus;
  std::optional<std::int64_t> memory_bytes;
  std::optional<int> gpus;
  std::optional<std::int64_t> time_limit_seconds;  // after which the job is ended; none: never

  // Slurm
  int nodes = 1;                         // hosts over which workers and servers are spread
  std::optional<std::string> partition;  // none: Slurm's own choice
  std::optional<std::string> account;    // whom it charges; none: the person's own

  // Kubernetes
  int slots = 1;  // workers on a host
  KubernetesForm form = KubernetesForm::kJob;
  std::string image;
  std::optional<std::string> kube_namespace;  // none: the one that kubectl is set to
  std::optional<std::string> volume_claim;  // a PersistentVolumeClaim for data and results; none: they go with the pods
};

}  // namespace syncopate::experiments
