#include "experiments/cluster/host/host_report.h"

#include <filesystem>

#include "common/os/local_address.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

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

}  // namespace syncopate::experiments
