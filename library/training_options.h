// TrainingOptions: what all members of a job do alike where Syncopate makes the update, ranks and servers, and the
// texts by which bindings and a server's standard input give it.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "common/codec/codec_config.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "ps/policy/consistency.h"

namespace syncopate::library {

using OptionTexts = std::map<std::string, std::string>;

struct TrainingOptions {
  int servers = 0;  // 0: allreduce
  ps::Consistency consistency;
  CodecConfig codec;
  OptimizerConfig optimizer;
  bool python = false;                 // servers make updates by a function of Python's, and not by the rule
  bool elastic = false;                // the others go on without a lost rank
  bool sharded = false;                // each rank updates a part of the weights, and remembers what belongs to that
  std::size_t bucket_bytes = 1 << 20;  // under parameter servers, the most that a chunk holds

  // Reads "elastic" ("1"), "sharded" ("1"), "servers", "consistency" ("bounded:4"), "compress" ("topk:0.01"),
  // "bucket_bytes", "python" ("1"), "optimizer" and its numbers (common/optimizer/update_rules.h), and "groups"
  // ("0:640:1:0.01,640:650:0.5:0:plain": begin, end, factor of the rate and decay of ranges of the arena, ascending and
  // disjoint, and whether they are without trust ratios); what is not given has its
  // default. Fails with invalid argument for any other text, for an option that means nothing beside the others, and
  // for what `workers` cannot do.
  static Result<TrainingOptions> parse(const OptionTexts& texts, int workers);

  // Whether updates are of whole tensors.
  bool needs_whole_tensors() const { return python || is_layerwise(optimizer.kind); }

  // All that they come to, each option that means something with its value, for ranks to compare.
  OptionTexts texts() const;
};

// Fails with invalid argument unless a step can be made at this learning rate: a number that is finite and not
// negative.
Status check_learning_rate(double rate);

}  // namespace syncopate::library
