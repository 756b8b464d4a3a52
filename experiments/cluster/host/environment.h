// What a run ran on: the machine, the build, the libraries. For environment.json.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace syncopate::experiments {

// One of several hosts of a run.
struct HostEnvironment {
  std::string name;  // as --hosts has it; this host's own for localhost
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
  std::string kernel;     // "Linux 6.1.0-18-amd64 x86_64"
  std::string cpu_model;  // empty where the kernel does not tell
  int cores = 0;          // that this process may run on
  double memory_gib = 0;
  std::string version;  // of this program
  std::string sources;  // their fingerprint
  std::string compiler;
  std::string build;       // "optimised, assertions off"
  std::string vector_set;  // the widest that the compiler was allowed: "AVX-512", "AVX2", "baseline"
  std::string sanitizers;  // as in -fsanitize=; empty for none
  std::string commit;      // of the source tree that the program lies in; empty where there is none
  std::map<std::string, std::string> libraries;
  std::vector<std::string> gpus;       // that the run computes on
  std::vector<HostEnvironment> hosts;  // that workers and servers are on; empty where that is this one alone
};

// Reads all of it from this process and its host; leaves empty what cannot be found out.
Environment this_environment();

// What --version shows: the program's version, what it was built of and how, and its libraries. Several lines.
std::string version_text(const Environment& environment);

}  // namespace syncopate::experiments
