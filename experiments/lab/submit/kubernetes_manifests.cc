#include "experiments/lab/submit/kubernetes_manifests.h"

#include <fmt/format.h>

#include "experiments/lab/submit/pod.h"

namespace syncopate::experiments {
namespace {

// Returns the command that shows what the coordinator prints, or the first process of a program.
std::string watch_command(const CommandLine& line, const std::string& in_namespace) {
  const Submission& submission = *line.submission;
  constexpr const char* kFirstPod = "batch.kubernetes.io/job-completion-index=0";
  switch (submission.form) {
    case KubernetesForm::kJob:
      if (line.config.hosts.size() < 2) break;
      return fmt::format("kubectl logs{} -f -l batch.kubernetes.io/job-name={},{}", in_namespace, submission.name,
                         kFirstPod);
    case KubernetesForm::kMpiJob:
      return fmt::format("kubectl logs{} -f job/{}-launcher", in_namespace, submission.name);
    case KubernetesForm::kTrainer:
      return fmt::format("kubectl logs{} -f -l jobset.sigs.k8s.io/jobset-name={},{}", in_namespace, submission.name,
                         kFirstPod);
  }
  return fmt::format("kubectl logs{} -f job/{}", in_namespace, submission.name);
}

}  // namespace

KubernetesManifests kubernetes_manifests(const CommandLine& line) {
  const Submission& submission = *line.submission;
  const std::string in_namespace = submission.kube_namespace ? " -n " + *submission.kube_namespace : "";
  const std::string& name = submission.name;
  KubernetesManifests manifests;
  switch (submission.form) {
    case KubernetesForm::kJob:
      manifests.documents = job_documents(line);
      break;
    case KubernetesForm::kMpiJob:
      manifests.documents = mpijob_documents(line);
      break;
    case KubernetesForm::kTrainer:
      manifests.documents = trainer_documents(line);
      break;
  }
  const std::string file = name + ".yaml";
  const bool has_several_pods = line.config.hosts.size() > 1;
  const bool needs_keys = submission.form == KubernetesForm::kJob && has_several_pods;
  const bool needs_secret = submission.form == KubernetesForm::kTrainer && has_several_pods;
  std::vector<std::string> deletion = {fmt::format("kubectl delete -f {}", file)};
  if (needs_keys) {
    manifests.steps.push_back({"Before the first time, make the keys by which the pods know each other",
                               {fmt::format("ssh-keygen -q -t ed25519 -N '' -C {0} -f {0}-key", name),
                                fmt::format("kubectl create secret generic{1} {0}-ssh --type=kubernetes.io/ssh-auth "
                                            "--from-file=ssh-privatekey={0}-key --from-file=ssh-publickey={0}-key.pub",
                                            name, in_namespace)}});
    deletion.push_back(fmt::format("kubectl delete secret{} {}-ssh", in_namespace, name));
  }
  if (needs_secret) {
    const std::string secret = secret_of(submission);
    manifests.steps.push_back(
        {"Before the first time, make the secret by which the pods know each other",
         {fmt::format("(umask 077; head -c 32 /dev/urandom >{})", secret),
          fmt::format("kubectl create secret generic{0} {1} --from-file={2}={1}", in_namespace, secret, kSecretKey)}});
    deletion.push_back(fmt::format("kubectl delete secret{} {}", in_namespace, secret));
  }
  manifests.steps.push_back({"Start", {fmt::format("kubectl apply -f {}", file)}});
  manifests.steps.push_back({"Watch", {watch_command(line, in_namespace)}});
  manifests.steps.push_back({"Stop, and remove what is left", deletion});
  return manifests;
}

}  // namespace syncopate::experiments
