#include "experiments/plan/job_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/nccl_environment.h"

namespace syncopate::experiments {
namespace {

ProcessSpec process(Role role, int rank, const std::string& run_id, const std::string& host) {
  ProcessSpec spec;
  spec.role = role;
  spec.rank = rank;
  spec.host = host;
  spec.arguments = {fmt::format("--role={}", name_of(role)), fmt::format("--rank={}", rank), "--run=" + run_id};
  // One thread a process: libraries that start a pool of their own would make replicas fight for the cores.
  spec.environment = {{"OMP_NUM_THREADS", "1"}};
  return spec;
}

void put_on_gpu(ProcessSpec& spec, const RunConfig& config, int gpu) {
  spec.gpu = gpu;
  spec.arguments.push_back(fmt::format("--gpu={}", gpu));
  if (config.mode != Mode::kAllreduce || config.collective != CollectiveKind::kNccl) return;
  const auto variables =
      allreduce::nccl_environment({.rank = spec.rank,
                                   .shares_gpu = config.share_gpu,
                                   .log_file = fmt::format("{}/logs/nccl-{}.log", config.output, spec.rank)});
  spec.environment.insert(spec.environment.end(), variables.begin(), variables.end());
}

std::string command_of(const ProcessSpec& spec, const std::string& program) {
  std::string command;
  for (const auto& [name, value] : spec.environment) command += name + "=" + value + " ";
  command += program_of(spec, program);
  for (const std::string& argument : spec.arguments) command += " " + argument;
  return command;
}

}  // namespace

const char* name_of(Role role) {
  switch (role) {
    case Role::kWorker:
      return "worker";
    case Role::kServer:
      return "server";
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

JobPlan make_plan(const RunConfig& config, const std::string& run_id, const std::string& host, int gpus) {
  JobPlan plan{run_id, {}};
  const int servers = config.mode == Mode::kPs ? config.servers : 0;
  for (int rank = 0; rank < servers; ++rank) plan.processes.push_back(process(Role::kServer, rank, run_id, host));
  for (int rank = 0; rank < config.workers; ++rank) {
    plan.processes.push_back(process(Role::kWorker, rank, run_id, host));
    if (config.device == DeviceKind::kCuda) put_on_gpu(plan.processes.back(), config, rank % gpus);
  }
  plan.processes.push_back(process(Role::kEvaluator, 0, run_id, host));
  return plan;
}

int count_of(const JobPlan& plan, Role role) {
  return static_cast<int>(std::ranges::count(plan.processes, role, &ProcessSpec::role));
}

std::string to_text(const JobPlan& plan, const std::string& program) {
  std::size_t host_width = 4;
  for (const ProcessSpec& spec : plan.processes) host_width = std::max(host_width, spec.host.size());
  std::string text = fmt::format("{:<9}  {:>4}  {:<{}}  {}\n", "role", "rank", "host", host_width, "command");
  for (const ProcessSpec& spec : plan.processes) {
    text += fmt::format("{:<9}  {:>4}  {:<{}}  {}\n", name_of(spec.role), spec.rank, spec.host, host_width,
                        command_of(spec, program));
  }
  return text;
}

}  // namespace syncopate::experiments
