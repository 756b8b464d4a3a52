#include <nlohmann/json.hpp>

#include "experiments/lab/why/device_text.h"
#include "experiments/lab/why/why_text.h"

namespace syncopate::experiments {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson json_of_causes(const std::vector<Cause>& causes) {
  OrderedJson all = OrderedJson::array();
  for (const Cause& cause : causes) {
    all.push_back({{"name", cause.name},
                   {"ms", cause.ms},
                   {"evidence", cause.evidence},
                   {"change", cause.change},
                   {"predicted_samples_per_second",
                    cause.predicted_rate ? OrderedJson(*cause.predicted_rate) : OrderedJson(nullptr)},
                   {"predicted_by", cause.by}});
  }
  return all;
}

OrderedJson json_of_servers(const Waterfall& waterfall) {
  OrderedJson all = OrderedJson::array();
  for (const ServerLoad& load : waterfall.exchange.of_servers) {
    all.push_back({{"server", load.server},
                   {"bytes_in_per_step", load.bytes_in},
                   {"bytes_out_per_step", load.bytes_out},
                   {"link_ms", load.link_ms},
                   {"busy_ms", load.busy_ms},
                   {"alone_ms", load.alone_ms}});
  }
  return all;
}

OrderedJson json_of_phase(double ms, const prediction::LeastTime* least) {
  OrderedJson phase{{"ms", ms}};
  if (least == nullptr) return phase;
  phase["least_ms"] = 1e3 * least->seconds;
  phase["compute_bound_ms"] = 1e3 * least->compute_seconds;
  phase["memory_bound_ms"] = 1e3 * least->memory_seconds;
  return phase;
}

OrderedJson json_of_device(const ExplainedRun& run) {
  const DeviceFigures& device = run.waterfall.device;
  const DeviceLeast* const least = run.least ? &*run.least : nullptr;
  OrderedJson json{{"name", run.device},
                   {"rates_of", least != nullptr ? OrderedJson(least->device.name) : OrderedJson(nullptr)},
                   {"forward", json_of_phase(device.forward_ms, least != nullptr ? &least->forward : nullptr)},
                   {"backward", json_of_phase(device.backward_ms, least != nullptr ? &least->backward : nullptr)}};
  if (run.updates_on_device) {
    json["update"] = json_of_phase(device.optimizer_ms, least != nullptr ? &least->update : nullptr);
  }
  json["launch_ms"] = device.launch_ms;
  json["copy_ms"] = device.copy_ms;
  json["waits_for_launches"] = waits_for_launches(run);
  return json;
}

OrderedJson json_of(const ExplainedRun& run) {
  const Waterfall& waterfall = run.waterfall;
  OrderedJson parts = OrderedJson::array();
  for (const Part& part : waterfall.parts) {
    parts.push_back(
        {{"part", name_of(part.kind)}, {"ms", part.ms}, {"evidence", evidence_of(part.kind, waterfall, run.pace)}});
  }
  OrderedJson workers = OrderedJson::array();
  for (const WorkerPace& worker : waterfall.of_workers) {
    workers.push_back({{"worker", worker.worker},
                       {"steps", worker.steps},
                       {"compute_ms_median", worker.compute_ms},
                       {"optimizer_ms_median", worker.optimizer_ms},
                       {"delay_ms_mean", worker.delay_ms},
                       {"costs_ms", worker.costs_ms},
                       {"part_of_waits_for_workers", worker.last_of_steps}});
  }
  return {{"folder", run.folder},
          {"what", run.pace.what},
          {"outcome", run.outcome},
          {"repeat", run.repeat},
          {"summary", paragraph_of(run)},
          {"workers", run.pace.workers},
          {"batch_size", run.pace.batch_size},
          {"steps", waterfall.steps},
          {"ideal_ms", waterfall.ideal_ms},
          {"fastest_worker", waterfall.fastest},
          {"measured_ms", waterfall.measured_ms},
          {"ideal_samples_per_second", waterfall.ideal_rate()},
          {"measured_samples_per_second", waterfall.measured_rate()},
          {"parts", parts},
          {"causes", json_of_causes(run.causes)},
          {"device", run.pace.on_device ? json_of_device(run) : OrderedJson(nullptr)},
          {"of_workers", workers},
          {"of_servers", json_of_servers(waterfall)}};
}

std::string text_of(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string why_json(const ExplainedRun& run) { return text_of(json_of(run)); }

std::string difference_json(const ExplainedRun& first, const ExplainedRun& second) {
  OrderedJson parts = OrderedJson::array();
  const Waterfall &a = first.waterfall, &b = second.waterfall;
  parts.push_back({{"part", "ideal"}, {"ms", b.ideal_ms - a.ideal_ms}});
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    parts.push_back({{"part", name_of(a.parts[i].kind)}, {"ms", b.parts[i].ms - a.parts[i].ms}});
  }
  return text_of({{"first", json_of(first)},
                  {"second", json_of(second)},
                  {"difference_ms", b.measured_ms - a.measured_ms},
                  {"difference", parts}});
}

}  // namespace syncopate::experiments
