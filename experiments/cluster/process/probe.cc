#include "experiments/cluster/process/probe.h"

#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "experiments/cluster/host/host_report.h"

namespace syncopate::experiments {
namespace {

constexpr unsigned kPatienceSeconds = 30;
constexpr std::string_view kProbe = "--probe", kTowards = "--towards=", kGpus = "--gpus";

}  // namespace

std::vector<std::string> probe_arguments(bool with_gpus, const std::string& towards) {
  std::vector<std::string> arguments{std::string(kProbe), std::string(kTowards) + towards};
  if (with_gpus) arguments.emplace_back(kGpus);
  return arguments;
}

bool is_probe_command_line(int argc, const char* const* argv) { return argc > 1 && argv[1] == kProbe; }

int probe_main(int argc, const char* const* argv) {
  alarm(kPatienceSeconds);
  bool with_gpus = false;
  std::string towards;
  for (const std::string_view argument : std::vector<std::string_view>(argv + 2, argv + argc)) {
    with_gpus |= argument == kGpus;
    if (argument.starts_with(kTowards)) towards = argument.substr(kTowards.size());
  }
  const std::string line = to_json_line(this_host(with_gpus, towards));
  return std::fputs(line.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? 1 : 0;
}

}  // namespace syncopate::experiments
