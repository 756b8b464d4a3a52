// The parts that the pods of all forms have. Pure. Paths and names are those of the image that Containerfile builds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/config/submission.h"

namespace syncopate::experiments {

inline constexpr int kSshPort = 2222;  // an ssh server that is not root's can have no port below 1024
inline constexpr const char* kSshKeys = "/etc/syncopate/keys";
inline constexpr const char* kWorkFolder = "/work";
inline constexpr const char* kWaitForPods = "600";  // seconds; nodes may have to load the image first

// Returns apiVersion, kind and metadata of an object that bears the job's name.
nlohmann::ordered_json object(const Submission& submission, const char* api_version, const char* kind);

// The label by which a Service and people find the pods.
nlohmann::ordered_json labels(const Submission& submission);

// The Secret by which programs in several pods know each other, and its one entry.
inline constexpr const char* kSecretKey = "secret";
std::string secret_of(const Submission& submission);

// Returns what a host of the job is to have, as requests and as limits; null if nothing is asked for.
nlohmann::ordered_json resources(const Submission& submission);

// Returns a container of the image with `command`, in the work folder.
nlohmann::ordered_json container(const Submission& submission, const char* name,
                                 const std::vector<std::string>& command);

// Returns a pod with this container, the work folder, and no right that it does not need.
nlohmann::ordered_json pod_spec(const Submission& submission, nlohmann::ordered_json container);

// Return the command of a pod that only waits for ssh connections, and how the coordinator reaches it.
std::vector<std::string> ssh_server();
std::string remote_shell_to_pods();

// Returns 16Gi for 16 GiB and 16G for 16 GB; 2 for two processors and 500m for half of one.
std::string bytes_quantity(std::int64_t bytes);
std::string cpus_quantity(std::int64_t thousandths);

}  // namespace syncopate::experiments
