#include "experiments/cluster/host/host_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "common/os/local_address.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

Json json_of(const Gpu& gpu) {
  return {{"name", gpu.name}, {"memory_bytes", gpu.memory_bytes}, {"major", gpu.major}, {"minor", gpu.minor}};
}

Gpu gpu_of(const Json& json) {
  return {.name = json.at("name"),
          .memory_bytes = json.at("memory_bytes"),
          .major = json.at("major"),
          .minor = json.at("minor")};
}

// Throws Json::exception unless it is what this version of the program prints.
HostReport report_of(const Json& json) {
  if (json.at("syncopate_host") != kFormat) return {};
  HostReport report{.fingerprint = json.at("fingerprint"), .interface = json.at("interface")};
  Environment& environment = report.environment;
  environment.host = json.at("host");
  environment.kernel = json.at("kernel");
  environment.cpu_model = json.at("cpu_model");
  environment.cores = json.at("cores");
  environment.memory_gib = json.at("memory_gib");
  environment.compiler = json.at("compiler");
  environment.build = json.at("build");
  environment.vector_set = json.at("vector_set");
  environment.commit = json.at("commit");
  report.machine.gpu_program = json.at("gpu_program");
  for (const Json& gpu : json.at("gpus")) report.machine.gpus.push_back(gpu_of(gpu));
  report.machine.why_no_gpu = json.at("why_no_gpu");
  return report;
}

}  // namespace

HostReport this_host(bool with_gpus, const std::string& towards) {
  HostReport report{.fingerprint = source_fingerprint(), .environment = this_environment()};
  if (with_gpus) report.machine = this_machine();
  if (towards.empty()) return report;
  const Result<std::string> address = local_address_towards(towards);
  if (address.ok()) report.interface = interface_of(*address);
  return report;
}

Machine this_machine() {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  Machine machine{.gpu_program = std::filesystem::exists(gpu_program_of(program)), .gpus = {}};
  Result<std::vector<Gpu>> gpus = find_gpus();
  if (gpus.ok()) {
    machine.gpus = std::move(*gpus);
  } else {
    machine.why_no_gpu = gpus.status().message();
  }
  return machine;
}

std::string to_json_line(const HostReport& report) {
  const Environment& environment = report.environment;
  Json gpus = Json::array();
  for (const Gpu& gpu : report.machine.gpus) gpus.push_back(json_of(gpu));
  const Json json = {{"syncopate_host", kFormat},
                     {"fingerprint", report.fingerprint},
                     {"interface", report.interface},
                     {"host", environment.host},
                     {"kernel", environment.kernel},
                     {"cpu_model", environment.cpu_model},
                     {"cores", environment.cores},
                     {"memory_gib", environment.memory_gib},
                     {"compiler", environment.compiler},
                     {"build", environment.build},
                     {"vector_set", environment.vector_set},
                     {"commit", environment.commit},
                     {"gpu_program", report.machine.gpu_program},
                     {"gpus", gpus},
                     {"why_no_gpu", report.machine.why_no_gpu}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<HostReport> parse_host_report(std::string_view printed) {
  std::optional<HostReport> found;
  std::istringstream lines{std::string(printed)};
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("syncopate_host")) continue;
    try {
      found = report_of(json);
    } catch (const Json::exception&) {  // from a version that reports something else
      found = HostReport();
    }
  }
  if (found) return *found;
  return Status::data_loss("it has not answered as this program does");
}

}  // namespace syncopate::experiments
