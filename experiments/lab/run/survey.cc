#include "experiments/lab/run/survey.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "common/os/local_address.h"
#include "common/os/socket_address.h"
#include "common/text/printable_text.h"
#include "experiments/cluster/launcher/host_probe.h"
#include "experiments/cluster/launcher/host_wait.h"
#include "experiments/cluster/namespaces/namespace_plan.h"
#include "experiments/cluster/plan/task_roles.h"
#include "experiments/config/resolution.h"
#include "experiments/config/started_by/slurm_allocation.h"

namespace syncopate::experiments {

RemoteShell remote_shell_of(const RunSettings& config) {
  if (config.cluster == ClusterKind::kNamespaces) {
    return {.words = namespace_shell(own_program()),
            .program = own_program(),
            .directory = std::filesystem::current_path().string()};
  }
  const bool by_srun = config.launcher == LauncherKind::kSlurm;
  return {.words = *split_words(by_srun ? slurm_shell() : config.remote_shell),
          .program = config.remote_program ? *config.remote_program : own_program(),
          .directory = std::filesystem::current_path().string(),
          .behind_host = by_srun ? std::vector<std::string>{"sh", "-c"} : std::vector<std::string>()};
}

namespace {

bool is_loopback(const std::string& address) {
  const Result<SocketAddress> parsed = SocketAddress::of_host(address);
  return parsed.ok() && parsed->is_loopback();
}

// Names that all lead back to this host, as a host's own name does where it is an address of the loopback interface,
// are of no use to a host that the remote shell finds elsewhere.
Status check_names(const RunRequest& config, const std::vector<std::string>& others,
                   const std::vector<HostReport>& reports, const std::string& listen_address) {
  if (config.listen_address || !is_loopback(listen_address)) return {};
  for (std::size_t i = 0; i < others.size(); ++i) {
    const std::string& there = reports[i].environment.host;
    if (there == own_host()) continue;
    return Status::invalid_argument(
        fmt::format("--hosts: the name {} leads back to this host ({}), and the remote shell to {}; say with "
                    "--listen-address where the hosts reach this one",
                    others[i], listen_address, printable(there)));
  }
  return {};
}

}  // namespace

// Returns the first address that leads out of this host; the host's own name does not.
Result<std::string> listen_address_of(const RunRequest& config) {
  if (config.cluster == ClusterKind::kNamespaces) return std::string(kSwitchAddress);
  if (config.listen_address) {
    const Status own = check_own_address(*config.listen_address);
    if (!own.ok()) return own.in("--listen-address");
    return *config.listen_address;
  }
  std::string address;
  for (const HostSlots& host : config.hosts) {
    if (!host.remote()) continue;
    const Result<std::string> towards = local_address_towards(host.name.substr(host.name.find('@') + 1));
    if (!towards.ok()) {
      return Status::invalid_argument(
          fmt::format("--hosts: {}; if only the remote shell knows the name, say with --listen-address where "
                      "the hosts reach this one",
                      towards.status().message()));
    }
    address = *towards;
    if (!is_loopback(address)) break;
  }
  return address;
}

Result<Survey> survey(const RunRequest& config) {
  const bool with_gpus = config.device != DeviceKind::kCpu && !runs_command(config);
  Survey survey;
  if (with_gpus) survey.here = this_machine();
  if (!spans_hosts(config)) return survey;
  const std::vector<HostSlots> hosts = hosts_of(presumed(config));
  if (config.cluster == ClusterKind::kNamespaces) {
    SYNCOPATE_ASSIGN_OR_RETURN(survey.namespaces, NamespaceHosts::make(hosts.size()));
  }
  const RemoteShell shell = remote_shell_of(config);
  std::vector<std::string> others;
  for (const HostSlots& host : hosts) {
    if (host.remote()) others.push_back(host.name);
  }
  if (config.wait_for_hosts_seconds > 0) {
    const Status reached = wait_for_hosts(shell, others, from_seconds(config.wait_for_hosts_seconds));
    if (!reached.ok()) return reached.in(fmt::format("--wait-for-hosts={}", config.wait_for_hosts_seconds));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(survey.listen_address, listen_address_of(config));
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<HostReport> reports,
                             probe_hosts({.shell = shell,
                                          .hosts = others,
                                          .with_gpus = with_gpus,
                                          .towards = survey.listen_address,
                                          .timeout = from_seconds(config.timeout_seconds)}));
  SYNCOPATE_RETURN_IF_ERROR(check_names(config, others, reports, survey.listen_address));
  auto next = reports.begin();
  for (const HostSlots& host : hosts) {
    if (host.remote()) {
      survey.hosts.push_back(std::move(*next++));
    } else {
      survey.hosts.push_back(this_host(false, survey.listen_address));
      survey.hosts.back().machine = survey.here;
    }
  }
  return survey;
}

namespace {

// Tasks as hosts with one slot each.
Cluster cluster_of_tasks_in(const Survey& survey, const ResolvedRun& config) {
  std::map<std::string, int> on_host;  // tasks so far
  std::vector<PlanHost> tasks;
  for (const Task& task : survey.tasks) {
    const std::string& host = task.report.environment.host;
    tasks.push_back({.name = host,
                     .remote = host != own_host(),
                     .gpus = static_cast<int>(task.report.machine.gpus.size()),
                     .interface = task.report.interface,
                     .is_task = true,
                     .task = task.address,
                     .first_gpu = on_host[host]++});
  }
  return cluster_of_tasks(config, own_host(), tasks, survey.place->roles);
}

}  // namespace

Survey survey_of_tasks(const RunRequest& config, const TaskPlace& place, const TaskGroup& group) {
  Survey survey;
  if (config.device != DeviceKind::kCpu) survey.here = this_machine();
  survey.place = place;
  survey.tasks = group.tasks();
  survey.listen_address = group.address();
  for (auto rank = static_cast<int>(survey.tasks.size()); rank < place.size; ++rank) {
    survey.tasks.push_back({.address = rank == 0 ? "" : fmt::format("rank-{}", rank), .report = {}});
    survey.tasks.back().report.environment.host = own_host();
    survey.tasks.back().report.machine = survey.here;
  }
  const std::vector<HostSlots> hosts = hosts_of(cluster_of_tasks_in(survey, presumed(config)));
  if (hosts.size() < 2) return survey;
  survey.task_hosts = hosts;
  for (const HostSlots& host : hosts) {
    const auto is_there = [&](const Task& task) {
      return task.report.environment.host == (host.remote() ? host.name : own_host());
    };
    survey.hosts.push_back(std::ranges::find_if(survey.tasks, is_there)->report);
  }
  return survey;
}

Machines machines_of(const Survey& survey) {
  Machines machines(survey.here);
  for (const HostReport& host : survey.hosts) machines.of_hosts.push_back(host.machine);
  machines.listen_address = survey.listen_address;
  return machines;
}

Cluster cluster_of(const ResolvedRun& config, const Survey& survey) {
  const auto gpus_of = [](const Machine& machine) { return static_cast<int>(machine.gpus.size()); };
  Cluster cluster{.coordinator = own_host(), .hosts = {}};
  if (config.cluster == ClusterKind::kSimulated) {
    for (const HostSlots& host : hosts_of(config)) cluster.hosts.push_back({.name = host.name, .slots = host.slots});
    return cluster;
  }
  if (survey.place) return cluster_of_tasks_in(survey, config);
  if (!spans_hosts(config)) {
    cluster.hosts = {{.name = own_host(), .slots = config.workers, .gpus = gpus_of(survey.here)}};
    return cluster;
  }
  cluster.remote_shell = remote_shell_of(config);
  const std::vector<HostSlots> hosts = hosts_of(config);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const HostSlots& host = hosts[i];
    // For a dry run, hosts may not have been asked.
    const HostReport report = i < survey.hosts.size() ? survey.hosts[i] : HostReport();
    cluster.hosts.push_back({.name = host.remote() ? host.name : own_host(),
                             .slots = host.slots,
                             .remote = host.remote(),
                             .gpus = gpus_of(report.machine),
                             .interface = report.interface});
  }
  // A host for each process: workers, then servers, then standbys.
  if (config.cluster == ClusterKind::kNamespaces && config.hosts.empty()) {
    cluster.server_hosts.assign(cluster.hosts.begin() + config.workers, cluster.hosts.end());
  }
  return cluster;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string own_host() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace syncopate::experiments
