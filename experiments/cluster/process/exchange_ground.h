// What a run's exchanges are chosen by, from its configuration: which of its processes share a link, and how fast that
// is.
#pragma once

#include <optional>

#include "allreduce/schedule/cost_model.h"
#include "common/tables/exchange_choice.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// In shared memory, where no link is given: what a message between two processes takes. Nothing is measured there.
inline constexpr allreduce::LinkModel kMemoryLink{.latency = 10e-6, .seconds_per_byte = 1 / 5e9};

// Returns the ground of a run that has workers and servers. The link is that of --shape, else what was `measured`
// between hosts, else kMemoryLink. Every process has a link of its own, except where processes share hosts that have
// one each, and where a worker's process has a server.
ExchangeGround exchange_ground(const ResolvedRun& config, const std::optional<allreduce::LinkModel>& measured);

}  // namespace syncopate::experiments
