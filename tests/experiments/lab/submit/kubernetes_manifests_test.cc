#include "experiments/lab/submit/kubernetes_manifests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "experiments/config/remote_shell.h"
#include "experiments/lab/submit/pod.h"
#include "experiments/lab/submit/submission_text.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kImage = "--image=registry.example/syncopate:1.0";

CommandLine line_of(std::vector<const char*> flags) {
  flags.insert(flags.begin(), {"submit", kImage});
  Result<CommandLine> line = parse(flags);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return *line;
}

std::vector<ordered_json> documents_of(const std::vector<const char*>& flags) {
  return kubernetes_manifests(line_of(flags)).documents;
}

std::vector<std::string> command_of(const ordered_json& pod) { return pod["containers"][0]["command"]; }

// Every flag that has a place in all forms.
std::vector<const char*> all_flags(const char* form) {
  std::vector<const char*> flags = {form,        "--name=train",    "--namespace=ml",      "--workers=4",
                                    "--slots=2", "--cpus=0.5",      "--memory=4GiB",       "--gpus=2",
                                    "--mode=ps", "--time-limit=2h", "--volume-claim=data", "--servers=2"};
  if (std::string_view(form) == "--kubernetes=trainer")
    flags.insert(flags.end(), {"--", "python", "a.py", "it's: \"#\""});
  return flags;
}

TEST(AKubernetesJob, HasAPodForEachHostWhoseFirstIsTheCoordinator) {
  const std::vector<ordered_json> documents = documents_of(all_flags("--kubernetes=job"));
  ASSERT_EQ(documents.size(), 2u);
  const ordered_json& service = documents[0];
  EXPECT_EQ(service["spec"]["clusterIP"], "None");
  EXPECT_EQ(service["spec"]["publishNotReadyAddresses"], true);
  const ordered_json& spec = documents[1]["spec"];
  EXPECT_EQ(spec["completions"], 2);
  EXPECT_EQ(spec["parallelism"], 2);
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(spec["backoffLimit"], 0);
  EXPECT_EQ(spec["activeDeadlineSeconds"], 7200);
  EXPECT_EQ(spec["successPolicy"]["rules"][0]["succeededIndexes"], "0") << "the run's end is the Job's";
  const ordered_json& pod = spec["template"]["spec"];
  EXPECT_EQ(pod["subdomain"], service["metadata"]["name"]) << "names of pods are the Service's";
  EXPECT_EQ(service["spec"]["selector"], spec["template"]["metadata"]["labels"]);
  EXPECT_THAT(command_of(pod), AllOf(Contains("--hosts=localhost:2,train-1.train:2"), Contains("--workers=4"),
                                     Contains("--servers=2"), Contains("--wait-for-hosts=600")));
}

TEST(AKubernetesJob, NeedsNeitherServiceNorKeysForOnePod) {
  for (const std::vector<const char*>& flags :
       {std::vector<const char*>{"--kubernetes=job", "--mode=local"},
        std::vector<const char*>{"--kubernetes=job", "--mode=allreduce", "--workers=2", "--slots=2"}}) {
    const std::vector<ordered_json> documents = documents_of(flags);
    ASSERT_EQ(documents.size(), 1u);
    const ordered_json& pod = documents[0]["spec"]["template"]["spec"];
    EXPECT_EQ(pod["volumes"].size(), 1u);
    EXPECT_EQ(command_of(pod).front(), "syncopate");
    EXPECT_THAT(command_of(pod), Not(Contains(StartsWith("--hosts"))));
  }
}

TEST(AKubernetesJob, RunsWhatThisProgramTakes) {
  const ordered_json job =
      documents_of({"--kubernetes=job", "--mode=allreduce", "--workers=3", "--elastic", "--seed=7"})[1];
  const std::vector<std::string> command = command_of(job["spec"]["template"]["spec"]);
  const auto program = std::ranges::find(command, "syncopate");
  ASSERT_NE(program, command.end());
  std::vector<const char*> words;
  for (auto word = program + 1; word != command.end(); ++word) words.push_back(word->c_str());
  const Result<CommandLine> run = parse(words);
  ASSERT_TRUE(run.ok()) << run.status().message();
  EXPECT_EQ(run->config.hosts.size(), 3u);
  EXPECT_EQ(run->config.workers, 3);
  EXPECT_EQ(run->config.seed, 7u);
  EXPECT_TRUE(run->config.elastic);
}

TEST(AKubernetesPod, HasNoRightThatItDoesNotNeed) {
  for (const char* form : {"--kubernetes=job", "--kubernetes=mpijob"}) {
    const ordered_json document = documents_of(all_flags(form)).back();
    const ordered_json& pod = document["kind"] == "Job"
                                  ? document["spec"]["template"]["spec"]
                                  : document["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
    EXPECT_EQ(pod["automountServiceAccountToken"], false);
    EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
    const ordered_json& container = pod["containers"][0];
    EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
    EXPECT_EQ(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    const ordered_json amounts = {{"cpu", "500m"}, {"memory", "4Gi"}, {"nvidia.com/gpu", "2"}};
    EXPECT_EQ(container["resources"]["requests"], amounts);
    EXPECT_EQ(container["resources"]["limits"], amounts);
  }
}

// The rules of MPIJobSpec, from the MPI operator's API (kubeflow.org/v2beta1) and its validation.
TEST(AnMpiJob, FollowsTheRulesOfItsApi) {
  const std::vector<ordered_json> documents = documents_of(all_flags("--kubernetes=mpijob"));
  ASSERT_EQ(documents.size(), 1u);
  const ordered_json& job = documents[0];
  EXPECT_EQ(job["apiVersion"], "kubeflow.org/v2beta1");
  EXPECT_EQ(job["kind"], "MPIJob");
  const ordered_json& spec = job["spec"];
  for (const auto& [name, value] : spec.items()) {
    EXPECT_THAT(name, AnyOf("slotsPerWorker", "runLauncherAsWorker", "runPolicy", "mpiReplicaSpecs", "sshAuthMountPath",
                            "launcherCreationPolicy", "mpiImplementation"));
  }
  EXPECT_GE(spec["slotsPerWorker"].get<int>(), 1);
  EXPECT_THAT(spec["mpiImplementation"], AnyOf("OpenMPI", "Intel", "MPICH"));
  EXPECT_THAT(spec["launcherCreationPolicy"], AnyOf("AtStartup", "WaitForWorkersReady"));
  EXPECT_THAT(spec["sshAuthMountPath"].get<std::string>(), StartsWith("/"));
  for (const auto& [name, value] : spec["runPolicy"].items()) {
    EXPECT_THAT(name, AnyOf("cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit",
                            "schedulingPolicy", "suspend", "managedBy"));
  }
  EXPECT_THAT(spec["runPolicy"]["cleanPodPolicy"], AnyOf("None", "Running", "All"));
  EXPECT_GE(spec["runPolicy"]["backoffLimit"].get<int>(), 0);
  EXPECT_GE(spec["runPolicy"]["activeDeadlineSeconds"].get<int>(), 1);
  ASSERT_EQ(spec["mpiReplicaSpecs"].size(), 2u);
  EXPECT_EQ(spec["mpiReplicaSpecs"]["Launcher"]["replicas"], 1);
  for (const char* role : {"Launcher", "Worker"}) {
    const ordered_json& replica = spec["mpiReplicaSpecs"][role];
    EXPECT_THAT(replica["restartPolicy"], AnyOf("Never", "OnFailure")) << "others are refused";
    EXPECT_GE(replica["replicas"].get<int>(), 1);
    EXPECT_FALSE(replica["template"]["spec"]["containers"].empty());
    EXPECT_FALSE(replica["template"]["spec"].contains("restartPolicy")) << "the replica's stands over it";
  }
}

TEST(AnMpiJob, HasTheLauncherStartTheRunOverTheOperatorsHostFile) {
  const ordered_json spec = documents_of(all_flags("--kubernetes=mpijob"))[0]["spec"];
  const ordered_json& launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"];
  EXPECT_THAT(command_of(launcher), AllOf(Contains("--hostfile=/etc/mpi/hostfile"), Contains("--workers=4"),
                                          Contains("--remote-shell=ssh -F /etc/syncopate/ssh_config")));
  EXPECT_FALSE(launcher["containers"][0]["resources"]["limits"].contains("nvidia.com/gpu"));
  EXPECT_EQ(launcher["containers"][0]["resources"]["limits"]["cpu"], "1");
  const ordered_json& worker = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  EXPECT_EQ(command_of(worker), ssh_server());
  EXPECT_EQ(worker["containers"][0]["readinessProbe"]["tcpSocket"]["port"], kSshPort);
}

TEST(ATrainJob, PassesAnEnvironmentOn) {
  const std::vector<ordered_json> documents = documents_of(
      {"--kubernetes=trainer", "--mode=ps", "--environment=A=two words,PYTHONUNBUFFERED=0", "--", "python", "a.py"});
  std::map<std::string, std::string> variables;
  for (const ordered_json& variable : documents.back()["spec"]["trainer"]["env"]) {
    EXPECT_TRUE(variables.emplace(variable["name"], variable["value"]).second) << "once each";
  }
  EXPECT_EQ(variables["A"], "two words");
  EXPECT_EQ(variables["PYTHONUNBUFFERED"], "0");
}

// The rules of TrainJobSpec and TrainingRuntimeSpec, from Kubeflow Trainer's API (trainer.kubeflow.org/v1alpha1).
TEST(ATrainJob, FollowsTheRulesOfItsApi) {
  const std::vector<ordered_json> documents = documents_of(all_flags("--kubernetes=trainer"));
  ASSERT_EQ(documents.size(), 2u);
  const ordered_json& runtime = documents[0];
  const ordered_json& job = documents[1];
  for (const ordered_json& document : documents) {
    EXPECT_EQ(document["apiVersion"], "trainer.kubeflow.org/v1alpha1");
    EXPECT_EQ(document["metadata"]["namespace"], "ml") << "a runtime serves jobs of its own namespace";
  }
  EXPECT_EQ(runtime["kind"], "TrainingRuntime");
  EXPECT_EQ(job["kind"], "TrainJob");
  for (const auto& [name, value] : job["spec"].items()) {
    EXPECT_THAT(name, AnyOf("runtimeRef", "initializer", "trainer", "runtimePatches", "suspend",
                            "activeDeadlineSeconds", "managedBy"));
  }
  EXPECT_EQ(job["spec"]["runtimeRef"]["name"], runtime["metadata"]["name"]);
  EXPECT_EQ(job["spec"]["runtimeRef"]["kind"], "TrainingRuntime") << "it would be a ClusterTrainingRuntime";
  EXPECT_EQ(job["spec"]["runtimeRef"]["apiGroup"], "trainer.kubeflow.org");
  const ordered_json& trainer = job["spec"]["trainer"];
  for (const auto& [name, value] : trainer.items()) {
    EXPECT_THAT(name, AnyOf("image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"));
  }
  EXPECT_EQ(trainer["numNodes"], 2);
  EXPECT_EQ(trainer["numProcPerNode"], 2);
  const std::vector<std::string> command = trainer["command"];
  EXPECT_EQ(std::vector<std::string>(command.end() - 5, command.end()),
            (std::vector<std::string>{"torchrun", "--no-python", "python", "a.py", "it's: \"#\""}));
  std::map<std::string, std::string> variables;
  for (const ordered_json& variable : trainer["env"]) {
    EXPECT_TRUE(variables.emplace(variable["name"], variable["value"]).second) << "once each";
    EXPECT_THAT(variable["name"].get<std::string>(), Not(StartsWith("PET_"))) << "reserved for torchrun";
  }
  EXPECT_EQ(variables["SYNCOPATE_MODE"], "ps");
  EXPECT_EQ(variables["SYNCOPATE_SERVERS"], "2");
  EXPECT_FALSE(variables.contains("RANK")) << "torchrun's to say";
  EXPECT_FALSE(variables.contains("SYNCOPATE_WIRE")) << "not asked for";
  const ordered_json& policy = runtime["spec"]["mlPolicy"];
  EXPECT_TRUE(policy["torch"].is_object());
  EXPECT_EQ(policy.size(), 2u) << "one policy alone";
  const ordered_json& node = runtime["spec"]["template"]["spec"]["replicatedJobs"][0];
  EXPECT_EQ(node["name"], "node");
  EXPECT_EQ(node["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"], "trainer");
  EXPECT_EQ(node["template"]["spec"]["template"]["spec"]["containers"][0]["name"], "node");
}

// A shell of each pod makes the secret's file one of its user's alone, whoever that is.
TEST(ATrainJob, GivesSeveralPodsASecret) {
  const std::vector<const char*> flags = {
      "--kubernetes=trainer", "--name=train", "--mode=allreduce", "--workers=2", "--", "python", "a.py"};
  const std::vector<ordered_json> documents = documents_of(flags);
  const ordered_json& pod =
      documents[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
  ASSERT_EQ(pod["volumes"].size(), 1u) << "none that hides the image's folder";
  EXPECT_EQ(pod["volumes"][0]["secret"]["secretName"], "train-secret");
  const ordered_json& node = pod["containers"][0];
  EXPECT_FALSE(node.contains("workingDir")) << "it is the image's";
  EXPECT_EQ(node["volumeMounts"][0]["name"], pod["volumes"][0]["name"]);
  const std::string folder = node["volumeMounts"][0]["mountPath"];
  const ordered_json& trainer = documents[1]["spec"]["trainer"];
  EXPECT_THAT(trainer["command"], testing::ElementsAre("sh", "-c", HasSubstr("cat " + folder + "/secret >"), "sh",
                                                       "torchrun", "--no-python", "python", "a.py"));
  const ordered_json secret = {{"name", "SYNCOPATE_SECRET_FILE"}, {"value", "/dev/shm/syncopate-secret"}};
  EXPECT_THAT(trainer["env"], Contains(secret));
  EXPECT_THAT(submission_text(line_of(flags), "/opt/syncopate"),
              AllOf(HasSubstr("\n#   (umask 077; head -c 32 /dev/urandom >train-secret)\n"),
                    HasSubstr("\n#   kubectl create secret generic train-secret --from-file=secret=train-secret\n"),
                    HasSubstr("\n#   kubectl delete secret train-secret\n")));
}

TEST(ATrainJob, NeedsNoSecretForOnePod) {
  const std::vector<ordered_json> documents =
      documents_of({"--kubernetes=trainer", "--mode=allreduce", "--workers=2", "--slots=2", "--", "python", "a.py"});
  const ordered_json& pod =
      documents[0]["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"];
  EXPECT_FALSE(pod.contains("volumes"));
  EXPECT_FALSE(pod["containers"][0].contains("volumeMounts"));
  EXPECT_EQ(documents[1]["spec"]["trainer"]["command"][0], "torchrun");
}

TEST(ASubmission, BeginsWithTheCommandsAroundIt) {
  const CommandLine line = line_of(all_flags("--kubernetes=job"));
  const std::string text = submission_text(line, "/opt/syncopate");
  EXPECT_THAT(text, AllOf(StartsWith("# Made by: run_experiment submit --image=registry.example/syncopate:1.0"),
                          HasSubstr("\n#   kubectl create secret generic -n ml train-ssh "),
                          HasSubstr("\n#   kubectl apply -f train.yaml\n"), HasSubstr("\n#   kubectl logs -n ml -f "),
                          HasSubstr("\n#   kubectl delete -f train.yaml\n")));
  for (const std::string& each : testing_support::lines_of(text.substr(0, text.find("---\n")))) {
    EXPECT_THAT(each, StartsWith("# "));
  }
}

// Holds manifests against the schemas of Kubernetes' own kinds, as the PyPI package kubernetes-validate has them. Those
// of the operators' kinds are not there; their pods are checked as pods.
TEST(KubernetesSchemas, AcceptEveryManifest) {
  if (std::system("kubernetes-validate --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "kubernetes-validate is not installed: pip install kubernetes-validate";
  }
  const testing_support::TemporaryFolder folder;
  for (const char* form : {"--kubernetes=job", "--kubernetes=mpijob", "--kubernetes=trainer"}) {
    std::vector<ordered_json> documents = documents_of(all_flags(form));
    std::vector<ordered_json> checked;
    const auto add_pod = [&](const ordered_json& spec) {
      checked.push_back({{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "pod"}}}, {"spec", spec}});
    };
    for (ordered_json& document : documents) {
      if (document["kind"] == "MPIJob") {
        for (const auto& replica : document["spec"]["mpiReplicaSpecs"]) add_pod(replica["template"]["spec"]);
      } else if (document["kind"] == "TrainingRuntime") {
        add_pod(document["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]);
      } else if (document["kind"] != "TrainJob") {
        checked.push_back(std::move(document));
      }
    }
    for (const ordered_json& document : checked) {
      const std::filesystem::path file = folder.path() / "manifest.json";
      std::ofstream(file) << document.dump(2);
      for (const char* version : {"1.31.0", "1.37.0"}) {
        const std::string command =
            "kubernetes-validate --strict -k " + std::string(version) + " '" + file.string() + "'";
        EXPECT_EQ(std::system((command + " >&2").c_str()), 0) << form << "\n" << document.dump(2);
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::experiments
