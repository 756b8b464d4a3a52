#include "experiments/lab/run/parts_prediction.h"

#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/part_of.h"

namespace syncopate::experiments {

std::optional<PartsPrediction> predict_parts(const ResolvedRun& config, const prediction::ModelProfile& profile,
                                             double compute, const prediction::Network& network,
                                             const prediction::ExchangePlan& plan) {
  const Result<worker::SampleForm> form = form_of_data(config);
  if (!form.ok() || network.workers_per_host > 1) return std::nullopt;
  const Result<worker::ChainFacts> facts = facts_of_part(config, 0, *form);
  if (!facts.ok() || facts->split.own().tensors().size() != profile.tensors.size()) return std::nullopt;
  prediction::ModelProfile own{.model = profile.model};
  for (std::size_t i = 0; i < profile.tensors.size(); ++i) {
    prediction::TensorProfile tensor = profile.tensors[i];
    const auto parameters = static_cast<std::int64_t>(facts->split.own().tensors()[i].range.size());
    tensor.forward_flops *= static_cast<double>(parameters) / static_cast<double>(tensor.parameters);
    tensor.parameters = parameters;
    own.tensors.push_back(std::move(tensor));
  }
  const double share = own.forward_flops() / profile.forward_flops();
  const double computing = share * compute * config.tensor;
  const Result<prediction::StepPrediction> exchanged = prediction::predict_step(own, computing, network, plan);
  if (!exchanged.ok()) return std::nullopt;
  prediction::Network of_parts = network;
  of_parts.workers = config.tensor;
  double sums = 0, bytes = 0;
  for (const std::size_t values : facts->sums) {
    const double of_sum = sizeof(float) * static_cast<double>(values) * replica_batch(config);
    sums += prediction::exchange_seconds(of_sum, of_parts, plan);
    bytes += of_sum;
  }
  const double parts = config.tensor;
  return PartsPrediction{.step = exchanged->step + sums,
                         .least = computing + 2 * (parts - 1) / parts * bytes / network.bytes_per_second,
                         .own_bytes = own.bytes()};
}

}  // namespace syncopate::experiments
