#include "experiments/lab/predict/predict_request.h"

#include <fmt/format.h>

#include "experiments/config/commands.h"
#include "experiments/config/given_values.h"
#include "experiments/config/run_settings.h"

namespace syncopate::experiments {
namespace {

Result<std::optional<simulation::NetworkModel>> network_in(const std::string& text) {
  using simulation::NetworkModel;
  if (text == "off") return std::optional<NetworkModel>();
  for (const NetworkModel model : {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}) {
    if (text == name_of(model)) return std::optional(model);
  }
  return Status::invalid_argument(
      fmt::format("--simulate={}: must be off, or the network's model: fifo, frames or fluid", text));
}

}  // namespace

Result<PredictRequest> parse_predict_request(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(GivenOptions given, job_words("predict", words));
  if (given.contains("measured") && given.contains("simulate")) {
    return Status::invalid_argument(
        "--simulate and --measured: the one goes by nominal figures, the other by what was measured; give one of them");
  }
  for (const char* const name : kOfDeviceSteps) {
    if (!given.contains(name)) continue;
    return Status::invalid_argument(fmt::format(
        "--{}: has no effect on the forms of an exchange; it is of predict --device, as in --device=a100", name));
  }
  given.insert({{"servers", "1"}, {"sharding", "even"}, {"bucket-bytes", "25000000"}, {"simulate", "off"}});
  PredictRequest request;
  if (given.contains("measured")) {
    SYNCOPATE_ASSIGN_OR_RETURN(request.measured, read_measured_runs(given["measured"], given));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(request.job,
                             read_scaled_job(given, request.measured ? request.measured->job : JobDefaults()));
  if (given.contains("output")) request.output = given["output"];
  SYNCOPATE_ASSIGN_OR_RETURN(request.servers,
                             number_in<int>("servers", given["servers"], 1, kMostPredictedWorkers, ""));
  SYNCOPATE_ASSIGN_OR_RETURN(request.sharding, read_sharding(given["sharding"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.bucket_bytes,
                             bytes_in("bucket-bytes", given["bucket-bytes"], 0, kMostBucketBytes, kBucketRange));
  SYNCOPATE_ASSIGN_OR_RETURN(request.simulate, network_in(given["simulate"]));
  if (given.contains("inside") && !request.simulate) {
    return Status::invalid_argument(fmt::format(
        "--inside={}: the forms take what stays on a host to cost nothing; add --simulate=frames, or leave it out",
        given["inside"]));
  }
  return request;
}

}  // namespace syncopate::experiments
