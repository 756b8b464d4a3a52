#include "experiments/cluster/simulated/solo_times.h"

#include <fmt/format.h>

#include <utility>

#include "experiments/cluster/measurement/solo_measurement.h"
#include "experiments/cluster/process/data_of.h"

namespace syncopate::experiments {

Result<ComputeTimes> SoloTimes::computing(const ResolvedRun& config) {
  const std::string key = fmt::format("{} {} {} {} {}", model_spec(config), dataset_spec(config), config.data_dir,
                                      config.batch_size, name_of(config.backend));
  if (const auto known = computing_.find(key); known != computing_.end()) return known->second;
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, measure_computing(config));
  return computing_.emplace(key, std::move(times)).first->second;
}

ProcessingTimes SoloTimes::processing(const ResolvedRun& config, const ParamLayout& layout) {
  const std::size_t elements = elements_to_measure(layout);
  const bool encodes = compresses(config) && may_compress(config) && codec_of(config).kind != CodecKind::kPowerSgd;
  const std::string key = fmt::format("{} {} {}", elements, static_cast<int>(optimizer_of(config).kind),
                                      encodes ? to_string(config.compress) : "");
  if (const auto known = processing_.find(key); known != processing_.end()) return known->second;
  ProcessingTimes times{.sum = measure_sum(elements), .update = measure_update(optimizer_of(config), elements)};
  if (encodes) {
    const CodecTimes codec = measure_codec(codec_of(config), elements);
    times.encode = codec.encode;
    times.decode = codec.decode;
  }
  return processing_.emplace(key, times).first->second;
}

}  // namespace syncopate::experiments
