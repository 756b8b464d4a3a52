#include "experiments/lab/report/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "common/text/format.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/cluster/namespaces/namespace_plan.h"
#include "experiments/lab/report/statistics.h"

namespace syncopate::experiments {
namespace {

std::string line(const std::string& name, const std::string& value) { return fmt::format("  {:<18}{}\n", name, value); }

std::string throughput_line(std::span<const RunReport> reports) {
  const std::vector<double> values = throughputs(reports);
  if (values.empty()) return line("throughput", "not measured: no worker has finished a step");
  const Spread spread = spread_of(values);
  std::string text = format_count(spread.median) + " samples/s, mean over the whole job";
  if (values.size() > 1) {
    text += fmt::format("  (median of {} runs; {} .. {}, {:.1f} %)", values.size(), format_count(spread.least),
                        format_count(spread.most), 100 * (spread.most - spread.least) / spread.median);
  }
  return line("throughput", text);
}

std::string goodput_line(double goodput) {
  return line("goodput",
              fmt::format("{:.1f} % of the workers' time: computing for updates that the weights have", 100 * goodput));
}

// Gives short times enough digits to distinguish them.
std::string precise_time(double seconds) {
  return seconds < 9.95 ? fmt::format("{:.3g} s", seconds) : format_duration(seconds);
}

// Shows the throughput after the warm-up and until the first worker is done, beside that of the whole job.
std::string window_line(const ResolvedRun& config, const RunReport& report) {
  if (!report.window) {
    return line("steady window",
                "none: the workers have no steps beyond the warm-up at the same time; what follows "
                "is of all steps");
  }
  return line(
      "steady window",
      fmt::format(
          "{} samples/s over {}, once all are past their warm-up of {} step{} and until the first is done; what "
          "follows is of it",
          format_count(report.window->samples_per_second), precise_time(report.window->seconds), config.warmup_steps,
          config.warmup_steps == 1 ? "" : "s"));
}

constexpr const char* kStraggle = "straggle";

std::string split_lines(const RunReport& report) {
  const StepSplit& split = report.split_ms;
  std::string text = line("step", fmt::format("{} ms median, {} ms p95, {} ms mean:", format_ms(report.step_ms_median),
                                              format_ms(report.step_ms_p95), format_ms(split.step)));
  const std::vector<std::pair<std::string, double>> parts = {
      {"data", split.data},        {"forward", split.forward},   {"backward", split.backward},
      {kStraggle, split.straggle}, {"wait", split.exposed_wait}, {"optimizer", split.optimizer},
      {"other", split.other}};
  for (const auto& [name, value] : parts) {
    if (name == kStraggle && value == 0) continue;
    text += line("  " + name,
                 fmt::format("{:>6} ms {:>5.1f} %", format_ms(value), split.step > 0 ? 100 * value / split.step : 0.0));
  }
  return text;
}

std::string communication_lines(const RunReport& report) {
  return line("communication",
              fmt::format("{} ms a step, {} ms of it hidden under compute ({:.1f} %)",
                          format_ms(report.communication_ms), format_ms(report.hidden_communication_ms),
                          100 * hidden_part(report).value_or(0))) +
         line("bytes", fmt::format("{} out, {} in, a step and worker", format_bytes(report.bytes_out_per_step),
                                   format_bytes(report.bytes_in_per_step)));
}

std::string codec_line(const RunReport& report) {
  if (report.codec_ms == 0) return {};
  return line("codec", fmt::format("{} ms a step to compress and decompress", format_ms(report.codec_ms)));
}

std::string device_line(const RunReport& report) {
  return line("device", fmt::format("{} ms a step to give it its work, {} ms of copies", format_ms(report.launch_ms),
                                    format_ms(report.copy_ms)));
}

std::string memory_line(const RunReport& report) {
  std::string text = format_bytes(static_cast<double>(report.memory.worker)) + " a worker";
  if (report.memory.server > 0) text += ", " + format_bytes(static_cast<double>(report.memory.server)) + " a server";
  return line("memory", text + " at most");
}

std::string simulation_lines(const SimulationFacts& facts) {
  std::string text = line("simulated", fmt::format("all times below are virtual; simulating took {}",
                                                   format_duration(facts.wall_seconds))) +
                     line("  compute", facts.compute);
  if (!facts.processing.empty()) text += line("  processing", facts.processing);
  if (!facts.network.empty()) text += line("  network", facts.network);
  if (!facts.profile.empty()) text += line("  profile", facts.profile);
  if (!facts.cluster.empty()) text += line("  cluster", "as described by " + facts.cluster);
  if (facts.timeout > 0) {
    text += line("  timeout",
                 fmt::format("{}, since all workers' weights pass few links: a real run needs --timeout={:.0f}",
                             format_duration(facts.timeout), facts.timeout));
  }
  return text + line("  without time", facts.without_time);
}

// Shows the repeat in which it was worst.
std::string machine_lines(std::span<const RunReport> reports) {
  const MachineLoad* worst = nullptr;
  for (const RunReport& report : reports) {
    if (!report.machine) continue;
    const auto taken = [](const MachineLoad& load) {
      return load.others.value_or(0) + load.steal.value_or(0) + load.throttled.value_or(0);
    };
    if (worst == nullptr || taken(*report.machine) > taken(*worst)) worst = &*report.machine;
  }
  if (worst == nullptr) return {};
  std::string text = line("machine", to_text(*worst));
  for (const MachineTrouble& trouble : troubles_of(*worst)) text += line("  beware", trouble.text);
  return text;
}

std::string rejected_text(const std::map<std::string, std::int64_t>& counts) {
  std::string where;
  for (const auto& [process, count] : counts) {
    where += fmt::format("{}{} at {}", where.empty() ? "" : ", ", format_count(static_cast<double>(count)), process);
  }
  return "messages or connections that were not of this run, or came twice, were dropped: " + where;
}

std::string checkpoint_lines(const RunFacts& facts, double training_seconds) {
  std::string text;
  if (!facts.resumed_from.empty()) {
    const std::string time = facts.resumed_seconds ? fmt::format(" and {}", format_duration(*facts.resumed_seconds))
                                                   : "; the checkpoint does not tell after how long, so that no time "
                                                     "to a target is known";
    text += line("resumed", fmt::format("from {}, at step {}, after {} samples{}", facts.resumed_from, facts.resumed_at,
                                        format_count(static_cast<double>(facts.resumed_samples)), time));
  }
  if (!facts.checkpoints) return text;
  const CheckpointFigures& figures = *facts.checkpoints;
  std::string written = fmt::format("{}", figures.completed);
  if (figures.left_out > 0) written += fmt::format(" of {} written", figures.asked);
  if (figures.last_step) written += fmt::format(", last at step {}", *figures.last_step);
  if (training_seconds > 0) {
    written += fmt::format(", stall {:.2f} % of training", 100 * seconds(figures.stall) / training_seconds);
  }
  if (figures.left_out > 0) written += fmt::format("; {} left out: {}", figures.left_out, figures.why_left_out);
  return text + line("checkpoints", written);
}

std::string straggler_lines(const RunReport& report) {
  std::string text;
  for (const StragglerFigures& straggler : report.stragglers) {
    text += line("straggler", fmt::format("worker {}, by {} ms a step ({} at most): {:.2f} x its compute",
                                          straggler.worker, format_ms(straggler.delay_ms_mean),
                                          format_ms(straggler.delay_ms_max), straggler.slowdown));
  }
  return text;
}

std::string loss_scale_line(const RunReport& report) {
  const std::int64_t skipped = report.skipped_steps.value_or(0);
  const std::string of_steps = skipped == 0 ? "no step of this run was skipped"
                                            : fmt::format("{} step{} skipped, whose gradients were not finite", skipped,
                                                          skipped == 1 ? "" : "s");
  return line("loss scale", fmt::format("{} in the last step; {}", *report.loss_scale, of_steps));
}

std::string staleness_lines(const ResolvedRun& config, const RunReport& report) {
  const char* of = gossips_asynchronously(config) ? "averages" : "updates";
  std::string text = line("staleness", fmt::format("{:.2f} mean, {:.1f} p95, {} max {}", report.staleness_mean,
                                                   report.staleness_p95, report.staleness_max, of));
  if (const std::string bins = staleness_text(report.staleness_bins); !bins.empty()) text += line("  steps", bins);
  if (consistency_of(config).backup_workers() > 0) {
    text += line("dropped", fmt::format("{:.1f} % of the gradients, which came too late", 100 * report.dropped));
  }
  return text;
}

// Returns a loss in nats per label, for text models also in bits.
std::string loss_text(const ResolvedRun& config, double loss) {
  if (!learns_text(config)) return figure_text(loss);
  return fmt::format("{}, {} bits a character", figure_text(loss), figure_text(loss / std::numbers::ln2));
}

// Includes the number of samples that were learnt from, without dropped gradients.
std::string training_text(const RunReport& report) {
  const auto count = [](std::int64_t samples) { return format_count(static_cast<double>(samples)); };
  std::string text = precise_time(report.training_seconds);
  if (report.total_samples > 0) text += fmt::format(", {} samples", count(report.used_samples));
  if (report.used_samples < report.total_samples) {
    text += fmt::format(" used of {} computed", count(report.total_samples));
  }
  return text;
}

std::string target_text(const RunReport& report) {
  if (!report.seconds_to_target) return "not reached";
  std::string text = fmt::format("{}, {} samples", precise_time(*report.seconds_to_target),
                                 format_count(static_cast<double>(report.samples_to_target.value_or(0))));
  if (const std::optional<double> resolution = report.seconds_to_target_resolution) {
    text += ", known within " + precise_time(*resolution);
  }
  return text;
}

std::string learning_lines(const ResolvedRun& config, const RunReport& report, std::optional<double> best_loss) {
  std::string text;
  if (report.final_train_loss) text += line("training loss", figure_text(*report.final_train_loss));
  if (report.final_validation) {
    text += line("validation loss", loss_text(config, report.final_validation->loss));
    const ValidationFigures& held_out = *report.final_validation;
    text +=
        line(fmt::format("  {}", held_out.quality_name()),
             fmt::format("{}, of the training set's last samples, which are held out",
                         held_out.r2 ? figure_text(*held_out.r2) : fmt::format("{:.2f} %", 100 * held_out.accuracy)));
  }
  if (report.final_test_loss) {
    text += line("test loss",
                 loss_text(config, *report.final_test_loss) + (report.final_figures.r2 ? ", mean squared error" : ""));
  }
  if (best_loss) text += fmt::format("  best reachable loss {:.4f}\n", *best_loss);
  if (report.final_test_accuracy) {
    text += line("test accuracy", fmt::format("{:.2f} %", 100 * *report.final_test_accuracy));
  }
  if (report.final_figures != TestFigures()) {
    text += line("test", to_text(report.final_test_accuracy.value_or(0), report.final_figures));
  }
  text += line("training time", training_text(report));
  if (config.target_accuracy > 0) {
    text += line(report.final_figures.r2 ? fmt::format("time to R2 {:.4g}", config.target_accuracy)
                                         : fmt::format("time to {:.4g} %", 100 * config.target_accuracy),
                 target_text(report) + (report.final_validation ? ", by what is held out" : ""));
  }
  return text;
}

std::string trace_text(const ResolvedRun& config, const TraceFacts& trace) {
  std::string text = fmt::format("{}/{}: steps {} to {}, {} events", config.output, trace.file, trace.steps.first,
                                 trace.steps.last, trace.events);
  if (trace.dropped > 0) text += fmt::format("; {} more did not fit", trace.dropped);
  return text + "; ui.perfetto.dev opens it";
}

// A run that is read from its record does not know which GPU it had.
std::string describe_gpus(const ResolvedRun& config) {
  std::string text = fmt::format("cuda {}{}", name_of(config.precision), config.share_gpu ? ", shared" : "");
  if (config.gpu.empty()) return text;
  text += " on " + config.gpu;
  if (const int more = config.workers - 1; more > 0 && !config.share_gpu) text += fmt::format(" and {} more", more);
  return text;
}

}  // namespace

std::string describe(const ResolvedRun& config) {
  const std::string device = config.device != DeviceKind::kCuda ? "" : ", " + describe_gpus(config);
  std::string slowed = config.stragglers.empty() ? "" : ", straggler " + config.stragglers.to_string();
  if (!config.sample_costs.are_equal()) slowed += ", sample costs " + config.sample_costs.to_string();
  if (!is_distributed(config)) return "local, 1 worker" + device + slowed;
  const bool ps = has_servers(config);
  std::string text =
      fmt::format("{} {}", name_of(config.mode),
                  has_servers_alone(config) ? config.consistency.to_string() : std::string(name_of(config.collective)));
  if (averages_weights(config)) text += " " + averaging_of(config);
  const allreduce::OuterOptions outer = outer_options_of(config);
  if (outer.fragments > 1) text += fmt::format(" in {} fragments", outer.fragments);
  if (outer.overlap > 0) text += fmt::format(" beside {} step{}", outer.overlap, outer.overlap == 1 ? "" : "s");
  if (shards_state(config)) text += fmt::format(" stage {}", config.stage);
  if (gathers_on_demand(config)) text += " on demand";
  if (shards_weights(config) && microbatches_of(config) > 1) {
    text += fmt::format(" in {} microbatches", microbatches_of(config));
  }
  if (is_pipelined(config)) {
    text += fmt::format(" pipeline {} x {} {}", config.pipeline, microbatches_of(config),
                        name_of(config.pipeline_schedule));
    if (interleaves_stages(config)) text += fmt::format(" in {} chunks", config.pipeline_chunks);
  }
  if (splits_layers(config)) text += fmt::format(" tensor {}", config.tensor);
  if (may_compress(config) && compresses(config)) {
    const CodecConfig codec = codec_of(config);
    text += " " + to_string(codec) + (ps && !config.compress_answers ? " (answers in full)" : "");
    if (codec.rounding == Int8Rounding::kStochastic) text += " stochastic";
    if (codec.warmup_epochs > 0) text += fmt::format(" warm-up {}", codec.warmup_epochs);
    if (codec.whole_updates > 0) text += fmt::format(" after {} whole updates", codec.whole_updates);
    if (codec.momentum.enabled()) text += fmt::format(" momentum {}", name_of(codec.momentum.how));
  }
  text += fmt::format(", {} worker{}", config.workers, config.workers == 1 ? "" : "s");
  if (const int backups = consistency_of(config).backup_workers(); ps && backups > 0) {
    text += fmt::format(", {} of them backup", backups);
  }
  if (shards_by_label(config)) {
    text += ", each with its own labels";
  } else if (has_samples_of_its_own(config)) {
    const bool is_shard = shuffle_of(config) == worker::Shuffle::kShard;
    text += is_shard ? ", each with its own shard" : ", each with its own order";
  } else if (may_share_work(config) && !shares_work(config)) {
    text += ", each with a quota";
  }
  if (is_colocated(config)) {
    text += ", a server in each";
    if (has_spare_servers(config)) text += fmt::format(" and {} besides", config.spare_servers);
  } else if (ps) {
    text += fmt::format(", {} server{}", config.servers, config.servers == 1 ? "" : "s");
  }
  if (spans_hosts(config)) {
    const bool are_namespaces = config.cluster == ClusterKind::kNamespaces;
    const std::size_t hosts = own_hosts_of(config);
    text += fmt::format(" on {} {}{}", hosts, are_namespaces ? "namespace" : "host", hosts == 1 ? "" : "s");
  }
  return text + device + (is_staged(config) ? ", staged over " : ", ") + transport_that_runs(config) + slowed;
}

namespace {

std::string describe_namespaces(const ResolvedRun& config) {
  const std::string each = runs_command(config) ? "a host for each worker" : "a host for each process";
  const std::string hosts = config.hosts.empty() ? each : "hosts " + to_text(config.hosts);
  std::string text = hosts + ", network namespaces of this machine, which share its cores";
  if (config.shape) {
    LinkShape link = *config.shape;
    link.delay = {};
    text += fmt::format(", {}, by the kernel, TCP {}", link.describe("a host"), kTcpControl);
    if (config.shape->delay > Duration::zero()) {
      const std::string shape = config.shape->to_string();
      text +=
          fmt::format("; {} one way for each message, emulated in the transport", shape.substr(shape.find('+') + 1));
    }
  }
  if (config.fabric != FabricChoice()) text += ", " + config.fabric.to_string();
  return text;
}

}  // namespace

std::string describe_link(const ResolvedRun& config) {
  if (!is_distributed(config)) return {};
  if (config.cluster == ClusterKind::kNamespaces) return describe_namespaces(config);
  if (config.cluster == ClusterKind::kReal) return config.shape ? "emulated, " + config.shape->describe() : "";
  const LinkShape link = config.shape.value_or(usual_simulated_link());
  std::string text = "simulated, " + link.describe(config.hosts.empty() ? "a process" : "a host");
  if (!config.hosts.empty())
    text += fmt::format(", hosts {}, inside {}", to_text(config.hosts), config.inside.to_string());
  if (config.fabric != FabricChoice()) text += ", " + config.fabric.to_string();
  return text;
}

std::string link_caution(const ResolvedRun& config) {
  const bool is_fifo = config.cluster == ClusterKind::kSimulated && config.network == simulation::NetworkModel::kFifo;
  const bool is_emulated = config.cluster == ClusterKind::kReal && config.shape && config.shape->bits_per_second > 0;
  if (!has_servers(config) || config.workers < 2) return {};
  // results/reference/namespaces: the extremes of 2 to 8 workers.
  if (is_emulated && goes_at_own_pace(config)) {
    return "--shape gives connections equal shares at every moment, and TCP only in the long run: steps of workers "
           "that do not wait for each other took 10 % less to 51 % more than over real packets, which "
           "--cluster=namespaces has (docs/namespaces.md)";
  }
  if (!is_fifo) return {};
  return "--network=fifo passes whole messages one after the other, and real links mix them: steps with servers were "
         "8 to 44 % shorter than over real packets, which --cluster=namespaces has (docs/namespaces.md)";
}

std::string summary_text(const ResolvedRun& config, std::span<const RunReport> reports, const RunFacts& facts) {
  const std::string batch = runs_command(config)
                                ? ""
                                : fmt::format(", batch {} a worker ({} held fixed)", config.batch_size,
                                              config.global_batch_size ? "the global batch" : "the worker's batch");
  std::string text = fmt::format("{}: {}{}\n", describe(config), model_on_data(config), batch);
  if (!facts.data.empty()) text += line("data", facts.data);
  if (!facts.link.empty()) text += line("link", facts.link);
  if (const std::string caution = link_caution(config); !caution.empty()) text += line("  beware", caution);
  if (facts.simulation) text += simulation_lines(*facts.simulation);
  if (!reports.empty()) {
    const RunReport& report = middle_report(reports);
    text += throughput_line(reports);
    if (report.samples_per_second) {
      if (report.goodput) text += goodput_line(*report.goodput);
      text += window_line(config, report) + split_lines(report);
      if (is_distributed(config)) text += communication_lines(report);
      text += codec_line(report);
      if (report.launch_ms > 0) text += device_line(report);
      if (report.loss_scale) text += loss_scale_line(report);
      const bool may_be_stale = has_servers(config) || gossips_asynchronously(config) || stashes_weights(config);
      if (may_be_stale) text += staleness_lines(config, report);
    }
    if (report.memory.worker > 0) text += memory_line(report);
    text += machine_lines(reports);
    text += straggler_lines(report);
    text += learning_lines(config, report, facts.best_loss);
  }
  for (const char* searched : {"bucket size", "exchange", "sparse exchange", "gloo", "nccl", "host memory",
                               "taken over", "figures", "batches"}) {
    const auto found = facts.of_workers.find(searched);
    if (found != facts.of_workers.end()) text += line(searched, found->second);
  }
  if (const auto found = facts.of_workers.find("rows kept"); found != facts.of_workers.end()) {
    text += line("rows kept", found->second);
  }
  if (facts.sharding && matters(*facts.sharding)) text += line("sharding", hottest(*facts.sharding));
  if (!facts.clock_uncertainty.empty()) {
    const auto by_time = [](const auto& one, const auto& other) { return one.second < other.second; };
    const Duration most = std::ranges::max_element(facts.clock_uncertainty, by_time)->second;
    text += line("clocks", fmt::format("of other hosts known within {} ms", format_ms(seconds(most) * 1000)));
  }
  if (facts.evaluations) {
    text += line("evaluated", to_text(*facts.evaluations));
    const std::string missing = not_evaluated_text(*facts.evaluations);
    if (!missing.empty()) text += line("not evaluated", missing);
  }
  text += checkpoint_lines(facts, reports.empty() ? 0 : middle_report(reports).training_seconds);
  if (facts.health && facts.health->left_out > 0) {
    text += line("left out", fmt::format("{} step{}, whose gradients were not finite", facts.health->left_out,
                                         facts.health->left_out == 1 ? "" : "s"));
  }
  for (const FaultRecord& fault : facts.faults) text += line("fault", to_text(fault));
  if (!facts.rejected_connections.empty()) text += line("rejected", rejected_text(facts.rejected_connections));
  for (const std::string& event : facts.events) text += line("event", event);
  if (facts.outcome != "completed") text += line("outcome", facts.outcome);
  if (facts.trace) text += line("trace", trace_text(config, *facts.trace));
  if (config.tensorboard) {
    text += line("tensorboard",
                 fmt::format("{0}/tensorboard; tensorboard --logdir={0}/tensorboard shows it", config.output));
  }
  return text + line("results", config.output);
}

}  // namespace syncopate::experiments
