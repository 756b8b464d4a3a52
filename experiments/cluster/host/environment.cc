#include "experiments/cluster/host/environment.h"

#include <dnnl.h>
#include <fmt/format.h>
#include <google/protobuf/stubs/common.h>
#include <mpi.h>
#include <spdlog/version.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zmq.h>

#include <filesystem>
#include <fstream>

#include "common/os/usable_cores.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/host/control_group.h"
#include "experiments/cluster/host/git_commit.h"

namespace syncopate::experiments {
namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return {};
}

std::map<std::string, std::string> libraries() {
  int major = 0, minor = 0, patch = 0;
  ::zmq_version(&major, &minor, &patch);
  const dnnl_version_t* dnnl = ::dnnl_version();
  return {{"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"onednn", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
          {"openmpi", fmt::format("{}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION)},
          {"protobuf", google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION)},
          {"spdlog", fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
          {"zeromq", fmt::format("{}.{}.{}", major, minor, patch)}};
}

}  // namespace

Environment this_environment() {
  Environment environment;
  utsname system{};
  if (::uname(&system) == 0) {
    environment.host = system.nodename;
    environment.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  environment.cpu_model = cpu_model();
  environment.cores = static_cast<int>(usable_cores().size());
  environment.core_quota = core_quota();
  environment.memory_gib =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 30);
  environment.version = program_version();
  environment.sources = source_fingerprint();
  environment.compiler = compiler_name();
  environment.build = build_kind();
  environment.vector_set = compiled_vector_set();
  environment.sanitizers = compiled_sanitizers();
  std::error_code ignored;
  environment.commit = git_commit_of(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path());
  environment.libraries = libraries();
  return environment;
}

std::string version_text(const Environment& environment) {
  std::string text = fmt::format("syncopate {}\n  sources    {}", environment.version, environment.sources);
  if (!environment.commit.empty())
    text += fmt::format(", in a checkout of commit {}", environment.commit.substr(0, 12));
  text += fmt::format("\n  built      by {}, {}, {}", environment.compiler, environment.build, environment.vector_set);
  if (!environment.sanitizers.empty()) text += ", sanitizers " + environment.sanitizers;
  text += "\n  libraries ";
  for (const auto& [name, version] : environment.libraries) text += fmt::format(" {} {}", name, version);
  return text + "\n";
}

}  // namespace syncopate::experiments
