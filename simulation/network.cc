#include "simulation/network.h"

#include <algorithm>
#include <cmath>

#include "simulation/fluid_network.h"
#include "simulation/queue_network.h"

namespace syncopate::simulation {

std::uint64_t frame_bytes(const Link& link) {
  return static_cast<std::uint64_t>(std::clamp(link.bytes_per_second / 8000, 4096.0, 65536.0));
}

std::unique_ptr<Network> make_network(const NetworkOptions& options) {
  return options.model == NetworkModel::kFluid ? make_fluid_network(options) : make_queue_network(options);
}

std::optional<Tick> ticks_alone(const NetworkOptions& options, const Link& link, Tick way, std::uint64_t bytes) {
  const auto ticks = [&](std::uint64_t count) -> Tick {
    return std::llround(static_cast<double>(count) * (1e12 / link.bytes_per_second));
  };
  if (options.model != NetworkModel::kFrames) return ticks(bytes);
  const std::uint64_t frame = frame_bytes(link);
  // What is under way when the first acknowledgement comes, with the frame that it lets go.
  const double until_acknowledged = 1e-12 * 2 * static_cast<double>(way) * link.bytes_per_second;
  if (until_acknowledged + 3 * static_cast<double>(frame) > static_cast<double>(options.window_bytes)) return {};
  return static_cast<Tick>(bytes / frame) * ticks(frame) + ticks(bytes % frame);
}

}  // namespace syncopate::simulation
