#include "experiments/lab/calibrate/calibrate.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <utility>
#include <vector>

#include "common/codec/codec_config.h"
#include "common/os/whole_file.h"
#include "common/text/format.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/measurement/solo_measurement.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/wire_measurement.h"
#include "experiments/config/cluster_description.h"
#include "experiments/config/optimizer_choice.h"
#include "experiments/lab/calibrate/profile_model.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

// A codec of each kind whose time does not depend on a tensor's shape.
constexpr const char* kMeasuredCodecs[] = {"fp16", "bf16", "int8", "topk:0.01", "randomk:0.01", "sign"};

using Note = std::function<void(const std::string&)>;
using Wires = std::vector<std::pair<std::string, LinkShape>>;  // by name, as between hosts

struct Measured {
  prediction::ModelProfile profile;
  ClusterDescription cluster;
  Wires wires;
  std::string beware;  // what disturbed it
};

double rate_of(double seconds_per_byte) { return 1 / seconds_per_byte; }

Status measure_rates(const ResolvedRun& config, ClusterDescription& cluster, const Note& note) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  const std::size_t elements = elements_to_measure(layout);
  note(fmt::format("sums, updates and codecs, of {} at once",
                   format_bytes(static_cast<double>(elements * sizeof(float)))));
  cluster.sum = rate_of(measure_sum(elements));
  for (const OptimizerTraits& traits : kOptimizers) {
    const OptimizerConfig optimizer{.kind = traits.kind, .nesterov = traits.nesterov};
    cluster.update[traits.name] = rate_of(measure_update(optimizer, elements));
  }
  for (const std::string spelling : kMeasuredCodecs) {
    SYNCOPATE_ASSIGN_OR_RETURN(const CodecConfig codec, parse_codec(spelling));
    const CodecTimes times = measure_codec(codec, elements);
    const std::string name = spelling.substr(0, spelling.find(':'));
    cluster.encode[name] = rate_of(times.encode);
    cluster.decode[name] = rate_of(times.decode);
  }
  return {};
}

// Between processes of this machine: the one in shared memory is that inside a host, and the last one stands for that
// between hosts.
Status measure_wires_here(const RunRequest& request, Measured& measured, const Note& note) {
  for (const TransportKind kind :
       {TransportKind::kShm, TransportKind::kIpc, TransportKind::kTcp, TransportKind::kSockets}) {
    if (request.transport && kind != *request.transport && kind != TransportKind::kShm) continue;
    note(fmt::format("the wire {}", name_of(kind)));
    const Result<allreduce::LinkModel> link =
        measure_wire(kind, request.connections, from_seconds(request.timeout_seconds));
    if (!link.ok()) return link.status().in(fmt::format("measuring the wire {}", name_of(kind)));
    if (kind == TransportKind::kShm) measured.cluster.inside = link_inside_a_host(*link);
    measured.cluster.link = link_between_hosts(*link);
    measured.wires.emplace_back(name_of(kind), *measured.cluster.link);
  }
  return {};
}

// Between two hosts, as two workers see it that agree on a schedule.
Result<LinkShape> measure_link_between(RunRequest request, const Resolver& resolve, const JobRunner& run,
                                       const Note& note) {
  note("the link between the hosts, by a run of a few steps");
  request.measure_wire = true;
  request.steps = 2;
  request.warmup_steps = 0;
  request.output = *request.output + ".run";
  SYNCOPATE_ASSIGN_OR_RETURN(const ResolvedRun config, resolve(request));
  const JobResult result = run(config);
  if (result.exit != ExitCode::kSuccess) {
    return Status::peer_lost(
        fmt::format("the run that measures the link failed: {}; its logs are in {}", result.verdict, config.output));
  }
  const auto wire = result.facts.of_workers.find("wire");
  if (wire == result.facts.of_workers.end()) {
    return Status::internal("the run that measures the link has not said what it measured");
  }
  std::error_code error;
  std::filesystem::remove_all(config.output, error);
  return LinkShape::parse(wire->second);
}

std::string wires_text(const Wires& wires) {
  std::vector<std::vector<std::string>> rows = {{"wire", "a message", "long messages, each way"}};
  for (const auto& [name, link] : wires) {
    rows.push_back({name, fmt::format("{} us", format_ms(seconds(link.delay) * 1e6)),
                    fmt::format("{:.3g} GB/s", link.payload_bytes_per_second() / 1e9)});
  }
  return text_table(rows);
}

std::string rates_text(const ClusterDescription& cluster) {
  const auto gigabytes = [](double rate) { return fmt::format("{:.3g}", rate / 1e9); };
  std::vector<std::vector<std::string>> rows = {{"one thread", "GB/s"}, {"sum", gigabytes(cluster.sum)}};
  for (const auto& [name, rate] : cluster.update) rows.push_back({"update by " + name, gigabytes(rate)});
  for (const auto& [name, rate] : cluster.encode) {
    rows.push_back({"encode as " + name, gigabytes(rate)});
    rows.push_back({"decode " + name, gigabytes(cluster.decode.at(name))});
  }
  return text_table(rows);
}

// Where the figures come from, for whoever opens the file.
std::string comment_of(const RunRequest& request, const ResolvedRun& config, const std::string& beware) {
  const Environment here = this_environment();
  const std::string link =
      request.hosts.empty()
          ? fmt::format(
                "# The link is this machine's loopback ({}): no network, and shared with the processor.\n"
                "# Put a network's own rate and delay there, or calibrate with --hosts=A,B.\n",
                name_of(request.transport.value_or(TransportKind::kSockets)))
          : fmt::format("# The link is that between {} ({}).\n", to_text(request.hosts), name_of(config.transport));
  std::string comment = fmt::format(
      "# Measured by run_experiment calibrate on {} ({}, {} cores), version {}.\n{}"
      "# Computing is {} with batches of {}.\n",
      here.host, here.cpu_model.empty() ? here.kernel : here.cpu_model, here.cores, here.version, link, config.model,
      config.batch_size);
  std::istringstream lines(beware);
  for (std::string line; std::getline(lines, line);) comment += "# " + line + "\n";
  return comment;
}

std::string shown(const Measured& measured, const ResolvedRun& config) {
  const std::string batch =
      config.batch_size == kUsualBatchSize ? "" : fmt::format(" --batch-size={}", config.batch_size);
  return fmt::format(
      "{}\n{}\n{}\n{}{} and {} describe a cluster of such machines:\n"
      "  run_experiment compare --cluster=simulated:{} --model={}{} --workers=16 --modes=allreduce,ps:sync\n",
      profile_text(measured.profile), wires_text(measured.wires), rates_text(measured.cluster),
      measured.beware.empty() ? "" : measured.beware + "\n", config.output, measured.cluster.compute->profile,
      config.output, config.model, batch);
}

Status measure_all(const RunRequest& request, const ResolvedRun& config, const Resolver& resolve, const JobRunner& run,
                   const Note& note, Measured& measured) {
  const MachineReading before = read_machine();
  note(fmt::format("a step of {} with batches of {}", config.model, config.batch_size));
  SYNCOPATE_ASSIGN_OR_RETURN(measured.profile, measure_profile(config));
  SYNCOPATE_RETURN_IF_ERROR(measure_rates(config, measured.cluster, note));
  SYNCOPATE_RETURN_IF_ERROR(measure_wires_here(request, measured, note));
  measured.beware = beware_lines(load_between(before, read_machine(), 1));
  if (request.hosts.empty()) return {};
  SYNCOPATE_ASSIGN_OR_RETURN(measured.cluster.link, measure_link_between(request, resolve, run, note));
  measured.wires.emplace_back(to_text(request.hosts), *measured.cluster.link);
  return {};
}

}  // namespace

Result<std::string> calibrate(const RunRequest& request, const Resolver& resolve, const JobRunner& run,
                              const Note& note) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ResolvedRun config, resolve(request));
  const std::filesystem::path file(config.output);
  const std::filesystem::path profile_file = std::filesystem::path(file).replace_extension(".json");
  SYNCOPATE_RETURN_IF_ERROR(check_free(file));
  SYNCOPATE_RETURN_IF_ERROR(check_free(profile_file));
  Measured measured;
  SYNCOPATE_RETURN_IF_ERROR(measure_all(request, config, resolve, run, note, measured));
  measured.cluster.compute =
      ComputeModel{.step = {}, .flops_per_second = {}, .profile = profile_file.filename().string()};
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(profile_file, to_json(measured.profile)));
  SYNCOPATE_RETURN_IF_ERROR(
      write_whole_file(file, to_toml(measured.cluster, comment_of(request, config, measured.beware))));
  return shown(measured, config);
}

}  // namespace syncopate::experiments
