// The Kubernetes objects that start a run. Pure: values in, documents out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/command_line.h"

namespace syncopate::experiments {

// The objects, and the commands that a person gives around them.
struct KubernetesManifests {
  struct Step {
    std::string what;                   // "Once, the keys by which the pods trust each other"
    std::vector<std::string> commands;  // for a shell; FILE.yaml is where the manifests are kept
  };
  std::vector<nlohmann::ordered_json> documents;
  std::vector<Step> steps;
};

// Returns what the line of a submission asks for. Requires submission->target to be Kubernetes.
KubernetesManifests kubernetes_manifests(const CommandLine& line);

// The forms, each in a file of its own: a Job and its Service, an MPIJob, a TrainingRuntime and its TrainJob.
std::vector<nlohmann::ordered_json> job_documents(const CommandLine& line);
std::vector<nlohmann::ordered_json> mpijob_documents(const CommandLine& line);
std::vector<nlohmann::ordered_json> trainer_documents(const CommandLine& line);

}  // namespace syncopate::experiments
