// Environment: what a run ran on: the machine, the build, the libraries. For environment.json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace syncopate::experiments {

// One of several hosts of a run.
struct HostEnvironment {
  std::string name;  // as in --hosts; this host's own name for localhost
  int workers = 0;
  int servers = 0;
  std::string own_name;
  std::string kernel;
  std::string cpu_model;
  int cores = 0;
  double memory_gib = 0;
  std::string vector_set;
  std::vector<std::string> gpus;
};

struct Environment {
  std::string host;
  std::string kernel;                // "Linux 6.1.0-18-amd64 x86_64"
  std::string cpu_model;             // empty if the kernel does not report it
  int cores = 0;                     // cores that this process may run on
  std::optional<double> core_quota;  // how many cores' time its control group has; none: all
  double memory_gib = 0;
  std::string version;  // version of this program
  std::string sources;  // fingerprint of the sources
  std::string compiler;
  std::string build;       // "optimised, assertions off"
  std::string vector_set;  // the widest that the compiler was allowed to use: "AVX-512", "AVX2", "baseline"
  std::string sanitizers;  // as in -fsanitize=; empty for none
  std::string commit;      // of the source tree that contains the program; empty if there is none
  std::map<std::string, std::string> libraries;
  std::vector<std::string> gpus;       // GPUs that the run computes on
  std::vector<HostEnvironment> hosts;  // hosts of the workers and servers; empty if that is this host alone
};

// Reads everything from this process and its host; leaves empty what cannot be determined.
Environment this_environment();

// Returns the text of --version, several lines: the program's version, its sources and its build, and its libraries.
std::string version_text(const Environment& environment);

}  // namespace syncopate::experiments
