#include "experiments/cluster/plan/job_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "allreduce/nccl/nccl_environment.h"
#include "experiments/cluster/plan/command_environment.h"
#include "experiments/cluster/plan/started_lines.h"

namespace syncopate::experiments {
namespace {

ProcessSpec process(Role role, int rank, const std::string& run_id, const PlanHost& host) {
  ProcessSpec spec;
  spec.role = role;
  spec.rank = rank;
  spec.host = host.name;
  spec.remote = host.remote;
  spec.task = host.task;
  spec.arguments = {fmt::format("--role={}", name_of(role)), fmt::format("--rank={}", rank), "--run=" + run_id};
  // One thread per process: libraries that start a pool of their own would make replicas compete for the cores.
  spec.environment = {{"OMP_NUM_THREADS", "1"}};
  return spec;
}

// Returns NCCL's name of the algorithm that is asked for; empty where NCCL chooses.
std::string nccl_algorithm_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kNcclRing:
      return "Ring";
    case CollectiveKind::kNcclTree:
      return "Tree";
    default:
      return "";
  }
}

void put_on_gpu(ProcessSpec& spec, const ResolvedRun& config, const PlanHost& host, int gpu) {
  spec.gpu = gpu;
  spec.arguments.push_back(fmt::format("--gpu={}", gpu));
  if (!sums_among_workers(config) || !is_nccl(config.collective)) return;
  // The folder of results is on the coordinator's host.
  const std::string log = spec.remote ? "" : fmt::format("{}/logs/nccl-{}.log", config.output, spec.rank);
  const std::string algorithm = nccl_algorithm_of(config.collective);
  const auto variables = allreduce::nccl_environment({.rank = spec.rank,
                                                      .shares_gpu = config.share_gpu,
                                                      .algorithm = algorithm,
                                                      .log_file = log,
                                                      // The log of rank 0 says what NCCL has chosen.
                                                      .log_operations = spec.rank == 0 && algorithm.empty(),
                                                      .interface = spans_hosts(config) ? host.interface : ""});
  set_variables(spec.environment, variables);
  set_variables(spec.environment, config.nccl_options);
}

ProcessSpec own_program(const ResolvedRun& config, int rank, const std::string& run_id, const PlanHost& host) {
  ProcessSpec spec{.role = Role::kWorker,
                   .rank = rank,
                   .host = host.name,
                   .environment = command_environment(config, rank),
                   .remote = host.remote,
                   .command = config.command};
  if (spans_hosts(config)) spec.arguments = relay_arguments(config.listen_address, run_id);
  return spec;
}

// Returns the hosts that servers with processes of their own are on in turn: spare ones where no worker is, if they
// can.
std::vector<PlanHost> hosts_of_servers(const ResolvedRun& config, const Cluster& cluster) {
  std::vector<PlanHost> hosts = cluster.server_hosts.empty() ? cluster.hosts : cluster.server_hosts;
  const auto has_slots = [](const PlanHost& host) { return host.slots > 0; };
  if (is_colocated(config) && !std::ranges::all_of(hosts, has_slots)) std::erase_if(hosts, has_slots);
  return hosts;
}

const PlanHost& host_of_standby(const Cluster& cluster, int servers, int rank) {
  if (!cluster.server_hosts.empty()) return cluster.server_hosts[static_cast<std::size_t>(servers + rank)];
  return cluster.hosts[static_cast<std::size_t>(rank + 1) % cluster.hosts.size()];
}

// Returns text for a person, who could paste it into a shell.
std::string command_text(const JobPlan& plan, const ProcessSpec& spec, const std::string& program) {
  std::string text;
  if (!spec.remote && spec.task.empty()) {
    for (const auto& [name, value] : spec.environment) text += name + "=" + value + " ";
  }
  const bool is_started_as_it_is = !spec.command.empty() && !spec.remote;
  const std::vector<std::string> words = is_started_as_it_is ? spec.command : command_line_of(plan, spec, program);
  for (const std::string& word : words) {
    text += (text.empty() || text.ends_with(' ') ? "" : " ") + quoted(word);
  }
  return text;
}

}  // namespace

const char* name_of(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "server";
    case Role::kStandby:
      return "standby";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::string ProcessSpec::name() const {
  return role == Role::kEvaluator ? name_of(role) : fmt::format("{} {}", name_of(role), rank);
}

std::string gpu_program_of(const std::string& program) { return program + "_gpu"; }

std::string program_of(const ProcessSpec& process, const std::string& program) {
  return process.gpu ? gpu_program_of(program) : program;
}

namespace {

JobPlan plan_of_processes(const ResolvedRun& config, const std::string& run_id, const Cluster& cluster) {
  JobPlan plan{.run_id = run_id, .processes = {}, .remote_shell = cluster.remote_shell};
  if (runs_command(config)) {
    int rank = 0;
    for (const PlanHost& host : cluster.hosts) {
      for (int slot = 0; slot < host.slots && rank < config.workers; ++slot, ++rank) {
        plan.processes.push_back(own_program(config, rank, run_id, host));
      }
    }
    return plan;
  }
  const int servers = servers_of(config), within = servers - separate_servers_of(config);
  const std::vector<PlanHost> server_hosts = hosts_of_servers(config, cluster);
  for (int rank = 0; rank < within; ++rank) {
    plan.processes.push_back({.role = Role::kServer, .rank = rank, .within = static_cast<std::size_t>(servers + rank)});
  }
  for (int rank = within; rank < servers; ++rank) {
    const auto turn = static_cast<std::size_t>(rank - within) % server_hosts.size();
    plan.processes.push_back(process(Role::kServer, rank, run_id, server_hosts[turn]));
  }
  for (int rank = 0; rank < servers && config.replicas > 0; ++rank) {
    plan.processes.push_back(process(Role::kStandby, rank, run_id, host_of_standby(cluster, servers, rank)));
  }
  int rank = 0;
  for (const PlanHost& host : cluster.hosts) {
    for (int slot = 0; slot < host.slots && rank < config.workers; ++slot, ++rank) {
      plan.processes.push_back(process(Role::kWorker, rank, run_id, host));
      if (config.collective == CollectiveKind::kMpi && spans_hosts(config) && !host.interface.empty()) {
        // Open MPI would otherwise use every network that it finds.
        plan.processes.back().environment.emplace_back("OMPI_MCA_btl_tcp_if_include", host.interface);
      }
      if (config.device == DeviceKind::kCuda)
        put_on_gpu(plan.processes.back(), config, host, (host.first_gpu + slot) % host.gpus);
    }
  }
  for (ProcessSpec& spec : plan.processes) {
    if (!spec.within) continue;
    const ProcessSpec& whole = plan.processes[*spec.within];
    spec.host = whole.host;
    spec.remote = whole.remote;
    spec.task = whole.task;
  }
  if (!is_profile(config))
    plan.processes.push_back(
        process(Role::kEvaluator, 0, run_id, {.name = cluster.coordinator, .is_task = cluster.hosts.front().is_task}));
  return plan;
}

}  // namespace

JobPlan make_plan(const ResolvedRun& config, const std::string& run_id, const Cluster& cluster) {
  JobPlan plan = plan_of_processes(config, run_id, cluster);
  for (ProcessSpec& process : plan.processes) set_variables(process.environment, config.environment);
  if (config.mpi_options) plan.mpi_options = *split_words(*config.mpi_options);
  return plan;
}

JobPlan make_plan(const ResolvedRun& config, const std::string& run_id, const std::string& host, int gpus) {
  return make_plan(config, run_id,
                   {.coordinator = host, .hosts = {{.name = host, .slots = config.workers, .gpus = gpus}}});
}

std::vector<std::string> command_line_of(const JobPlan& plan, const ProcessSpec& process, const std::string& program,
                                         const std::vector<std::string>& more) {
  if (!process.task.empty()) {
    std::vector<std::string> arguments = process.arguments;
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<std::string> words =
        task_shell_arguments(process.task, process.environment, process.gpu.has_value(), arguments);
    words.insert(words.begin(), program);
    return words;
  }
  std::vector<std::string> command{program_of(process, process.remote ? plan.remote_shell.program : program)};
  command.insert(command.end(), process.arguments.begin(), process.arguments.end());
  command.insert(command.end(), process.command.begin(), process.command.end());
  command.insert(command.end(), more.begin(), more.end());
  if (!process.remote) return command;
  command.insert(command.begin(), {plan.remote_shell.program, "--guard"});
  return through_remote_shell(plan.remote_shell, process.host,
                              remote_command(plan.remote_shell, process.environment, command));
}

bool has_remote_processes(const JobPlan& plan) { return std::ranges::any_of(plan.processes, &ProcessSpec::remote); }

std::vector<std::size_t> members_within(const JobPlan& plan, std::size_t process) {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < plan.processes.size(); ++i) {
    if (plan.processes[i].within == process) members.push_back(i);
  }
  return members;
}

int count_of(const JobPlan& plan, Role role) {
  return static_cast<int>(std::ranges::count(plan.processes, role, &ProcessSpec::role));
}

std::string to_text(const JobPlan& plan, const std::string& program) {
  std::size_t host_width = 4;
  for (const ProcessSpec& spec : plan.processes) host_width = std::max(host_width, spec.host.size());
  std::string text = fmt::format("{:<9}  {:>4}  {:<{}}  {}\n", "role", "rank", "host", host_width, "command");
  const auto doing = [&](const ProcessSpec& spec) {
    if (spec.within) return "in the process of " + plan.processes[*spec.within].name();
    if (!program.empty()) return command_text(plan, spec, program);
    const std::string script = fmt::format("{}", fmt::join(spec.command, " "));
    return fmt::format("an actor of the simulated cluster{}", script.empty() ? "" : " with a rank of " + script);
  };
  for (const ProcessSpec& spec : plan.processes) {
    text +=
        fmt::format("{:<9}  {:>4}  {:<{}}  {}\n", name_of(spec.role), spec.rank, spec.host, host_width, doing(spec));
  }
  return text;
}

}  // namespace syncopate::experiments
