// ShardingReport: what each shard of a ps run holds, and how even that is. It is known before anything is launched.
// Pure.
#pragma once

#include <cstddef>
#include <string>

#include "common/param_layout.h"
#include "experiments/config/resolved_run.h"
#include "ps/policy/sharding.h"

namespace syncopate::experiments {

struct ShardingReport {
  ps::Sharding sharding;
  ps::PsGroup group = {};
  ps::ShardLoads loads;
};

// `config` must be that of a ps run.
// Whether servers keep the model's tensors as its layout has them, all in one: not where workers have stages of it.
bool reports_sharding(const ResolvedRun& config);
ShardingReport report_sharding(const ResolvedRun& config, const ParamLayout& layout);

// Returns text for people, before the run: a line for each shard, or, if there are many, for the smallest and the
// largest.
std::string to_text(const ShardingReport& report);

// Returns, for example, "tensor: server 0 holds 2.31 x the mean".
std::string hottest(const ShardingReport& report);
// Returns whether the summary should mention it: another policy was asked for, or shards are uneven.
bool matters(const ShardingReport& report);

}  // namespace syncopate::experiments
