#include "experiments/lab/doctor/doctor_line.h"

#include <fmt/format.h>

#include "common/os/whole_file.h"
#include "experiments/cluster/host/build_facts.h"
#include "experiments/config/commands.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/doctor/doctor_text.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {
namespace {

// A doctor waits for a host no longer than a person does.
constexpr double kUsualPatience = 5;

Result<RunRequest> request_of(const GivenOptions& given) {
  GivenOptions options = given;
  options.erase("output");
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest request, apply_options(options));
  request.mode = Mode::kAllreduce;
  if (!given.contains("timeout")) request.timeout_seconds = kUsualPatience;
  if (request.cluster == ClusterKind::kSimulated) {
    return Status::invalid_argument("--cluster=simulated: there is nothing to examine; use real or namespaces:HOSTS");
  }
  if (request.cluster == ClusterKind::kNamespaces && request.hosts.empty()) {
    return Status::invalid_argument("--cluster=namespaces: of how many hosts? Say it as in --cluster=namespaces:4");
  }
  if (!request.device) request.device = DeviceKind::kCpu;  // for the rules; GPUs are looked for all the same
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  return request;
}

Result<Examination> examine_hosts(const RunRequest& request, const std::function<void(const std::string&)>& shows) {
  ExaminationOptions options{.shell = remote_shell_of(request),
                             .hosts = {},
                             .towards = "127.0.0.1",
                             .with_gpus = request.cluster == ClusterKind::kReal,
                             .patience = from_seconds(request.timeout_seconds)};
  for (const HostSlots& host : request.hosts) options.hosts.push_back(host.name);
  if (options.hosts.empty()) options.hosts.emplace_back("localhost");
  std::unique_ptr<NamespaceHosts> namespaces;
  if (request.cluster == ClusterKind::kNamespaces) {
    SYNCOPATE_ASSIGN_OR_RETURN(namespaces, NamespaceHosts::make(request.hosts.size()));
    SYNCOPATE_RETURN_IF_ERROR(namespaces->join(request.hosts.size(), request.shape, request.fabric));
  }
  if (spans_hosts(request)) {
    SYNCOPATE_ASSIGN_OR_RETURN(options.towards, listen_address_of(request));
  }
  return examine(options, shows);
}

}  // namespace

Result<DoctorAnswer> doctor_answer(const std::vector<std::string>& words,
                                   const std::function<void(const std::string&)>& shows) {
  SYNCOPATE_ASSIGN_OR_RETURN(const CommandWords read, command_words(words));
  const GivenOptions& given = read.given;
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest request, request_of(given));
  SYNCOPATE_ASSIGN_OR_RETURN(const Examination examination, examine_hosts(request, shows));
  const std::vector<Finding> findings = findings_of(examination, source_fingerprint());
  DoctorAnswer answer{.text = doctor_text(examination, findings), .is_well = findings.empty()};
  const auto output = given.find("output");
  if (output == given.end()) return answer;
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(output->second, doctor_json(examination, findings)));
  answer.text += fmt::format("JSON in {}\n", output->second);
  return answer;
}

}  // namespace syncopate::experiments
