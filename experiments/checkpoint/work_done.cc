#include "experiments/checkpoint/work_done.h"

#include <algorithm>
#include <optional>

#include "ps/server/shard_state.h"

namespace syncopate::experiments {

std::int64_t batches_done(const Manifest& manifest, const ResolvedRun& config) {
  const int pushes_an_update = config.consistency.pushes_an_update(config.workers, config.workers);
  std::optional<std::int64_t> least;
  for (const StoredPart& part : manifest.parts) {
    const std::optional<std::int64_t> pushes = ps::pushes_applied(part.counts, pushes_an_update);
    if (pushes) least = std::min(least.value_or(*pushes), *pushes);
  }
  return least ? *least * config.consistency.period() : manifest.step * config.workers;
}

}  // namespace syncopate::experiments
