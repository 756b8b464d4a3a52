#include "experiments/config/measure_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/config/resolution.h"

namespace syncopate::experiments {
namespace {

const std::vector<std::string> kOfModel = {
    "model",   "dataset", "data-dir",  "train-samples", "test-samples", "context",   "vocabulary", "classes",
    "augment", "backend", "precision", "batch-size",    "data-seed",    "seed",      "output",     "target",
    "ignore",  "task",    "test-data", "test-fraction", "normalise",    "image-size"};
const std::vector<std::string> kOfWires = {"transport",    "connections",    "hosts",
                                           "remote-shell", "remote-program", "timeout"};

Status check_names(const char* command, const GivenOptions& given, const std::vector<std::string>& allowed) {
  for (const auto& [name, value] : given) {
    if (std::ranges::find(allowed, name) != allowed.end()) continue;
    return Status::invalid_argument(fmt::format("--{}={}: has no effect on what {} measures; leave it out. It takes {}",
                                                name, value, command, fmt::join(allowed, ", ")));
  }
  return {};
}

Result<CommandLine> checked_line(CommandLine::Action action, const GivenOptions& given, RunRequest request) {
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {presumed(request)}));
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  CommandLine line;
  line.action = action;
  line.config = std::move(request);
  line.given = given;
  return line;
}

// Returns "mlp-784-10.json" for mlp:784-10.
std::string file_name_of(std::string model) {
  std::ranges::replace_if(
      model, [](char c) { return c == ':' || c == '/'; }, '-');
  return model + ".json";
}

}  // namespace

Result<CommandLine> profile_line(const GivenOptions& given) {
  SYNCOPATE_RETURN_IF_ERROR(check_names("profile", given, kOfModel));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest request, apply_options(given));
  request.mode = Mode::kLocal;
  if (!request.output) request.output = file_name_of(request.model);
  if (!request.output->ends_with(".json")) {
    return Status::invalid_argument(
        fmt::format("--output={}: a profile's file must end in .json, as in --output=mlp.json", *request.output));
  }
  return checked_line(CommandLine::Action::kProfile, given, std::move(request));
}

Result<CommandLine> calibrate_line(const GivenOptions& given) {
  std::vector<std::string> allowed = kOfModel;
  allowed.insert(allowed.end(), kOfWires.begin(), kOfWires.end());
  SYNCOPATE_RETURN_IF_ERROR(check_names("calibrate", given, allowed));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest request, apply_options(given));
  request.mode = Mode::kAllreduce;
  if (!request.hosts.empty() && request.hosts.size() != 2) {
    return Status::invalid_argument(fmt::format(
        "--hosts={}: calibrate measures the link between two hosts; name two that stand for all", given.at("hosts")));
  }
  const bool within_a_host = request.transport == TransportKind::kShm || request.transport == TransportKind::kIpc;
  if (within_a_host) {
    return Status::invalid_argument(
        fmt::format("--transport={}: connects processes of one host, and the link that it names is between hosts; use "
                    "tcp or sockets",
                    given.at("transport")));
  }
  for (HostSlots& host : request.hosts) host.slots = 1;
  request.workers = 2;
  if (!request.output) request.output = "cluster.toml";
  if (!request.output->ends_with(".toml")) {
    return Status::invalid_argument(
        fmt::format("--output={}: a cluster's file must end in .toml, as in --output=cluster.toml", *request.output));
  }
  return checked_line(CommandLine::Action::kCalibrate, given, std::move(request));
}

}  // namespace syncopate::experiments
