#include "library/training_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "common/group_limits.h"
#include "common/optimizer/update_rules.h"
#include "common/text/list_text.h"

namespace syncopate::library {
namespace {

template <typename Number>
Status read(std::string_view name, std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return Status();
  return Status::invalid_argument(fmt::format("{}='{}': must be a number", name, text));
}

const UpdateRule& rule_of(const OptimizerConfig& config) {
  return *std::ranges::find_if(kUpdateRules, [&](const UpdateRule& rule) {
    return rule.kind == config.kind && rule.nesterov == config.nesterov;
  });
}

Status read_rule(std::string_view text, OptimizerConfig& config) {
  std::vector<std::string> names;
  for (const UpdateRule& rule : kUpdateRules) {
    names.emplace_back(rule.name);
    if (text != rule.name) continue;
    config.kind = rule.kind;
    config.nesterov = rule.nesterov;
    return Status();
  }
  return Status::invalid_argument(fmt::format("optimizer='{}': must be {}", text, list_text(names, "or")));
}

Status read_rule_number(const RuleNumber& number, std::string_view text, OptimizerConfig& config) {
  SYNCOPATE_RETURN_IF_ERROR(read(number.name, text, config.*number.member));
  const float value = config.*number.member;
  if (std::isfinite(value) && value >= 0 && (!number.is_below_one || value < 1)) return Status();
  return Status::invalid_argument(
      fmt::format("{}={}: must be {}", number.name, text,
                  number.is_below_one ? "at least 0 and below 1" : "finite and at least 0"));
}

Status read_rule_flag(const RuleFlag& flag, std::string_view text, OptimizerConfig& config) {
  if (text != "0" && text != "1")
    return Status::invalid_argument(fmt::format("{}={}: must be 0 or 1", flag.name, text));
  config.*flag.member = text == "1";
  return Status();
}

// Fails for numbers and variants that were given and that the rule does not know.
Status check_numbers(const OptionTexts& texts, const UpdateRule& rule) {
  for (const RuleNumber* number : kRuleNumbers) {
    const auto given = texts.find(std::string(number->name));
    if (given == texts.end() || number->is_of(rule.kind)) continue;
    std::vector<std::string_view> known;
    for (const RuleNumber* each : kRuleNumbers) {
      if (each->is_of(rule.kind)) known.push_back(each->name);
    }
    return Status::invalid_argument(fmt::format("{}={} means nothing to {}, which has {}: leave it out", number->name,
                                                given->second, rule.name, fmt::join(known, ", ")));
  }
  for (const RuleFlag& flag : kRuleFlags) {
    if (!texts.contains(std::string(flag.name)) || flag.is_of(rule.kind)) continue;
    return Status::invalid_argument(fmt::format("{} means nothing to {}: leave it out", flag.name, rule.name));
  }
  return Status();
}

// What an update that ranks share cannot be.
Status check_sharded(const TrainingOptions& options) {
  const auto refused = [](const std::string& what) {
    return Status::invalid_argument(fmt::format("update='sharded' {}: use update='own'", what));
  };
  if (options.servers > 0)
    return refused("is for ranks that sum among themselves, and servers keep all that is theirs");
  if (options.codec.kind != CodecKind::kNone) {
    return refused(fmt::format("with compress='{}', which codes sums that every rank gets", to_string(options.codec)));
  }
  if (options.elastic) return refused("in an elastic job, where the part of a lost rank would be lost");
  if (!is_layerwise(options.optimizer.kind)) return Status();
  return refused(fmt::format("with {}, which takes norms of whole tensors", rule_of(options.optimizer).name));
}

// One group, for read_groups: its four numbers, and "plain" if it does not adapt.
Result<UpdateGroup> read_group(std::string_view text) {
  UpdateGroup group;
  std::array<std::string_view, 5> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = std::min(text.find(':'), text.size());
    field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[0], group.range.begin));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[1], group.range.end));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[2], group.rate_factor));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[3], group.weight_decay));
  group.adapt = fields[4] != "plain";
  return group;
}

Status read_groups(std::string_view text, OptimizerConfig& config) {
  auto groups = std::make_shared<std::vector<UpdateGroup>>();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    SYNCOPATE_ASSIGN_OR_RETURN(const UpdateGroup group, read_group(text.substr(0, end)));
    if (group.range.begin >= group.range.end || (!groups->empty() && group.range.begin < groups->back().range.end)) {
      return Status::invalid_argument(fmt::format("groups: a range {} to {} that is empty or not behind the one before",
                                                  group.range.begin, group.range.end));
    }
    groups->push_back(group);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  config.groups = std::move(groups);
  return Status();
}

Status read_option(const std::string& name, const std::string& text, TrainingOptions& options) {
  OptimizerConfig& optimizer = options.optimizer;
  if (name == "optimizer") return read_rule(text, optimizer);
  if (name == "elastic") {
    options.elastic = text == "1";
    return Status();
  }
  if (name == "sharded") {
    options.sharded = text == "1";
    return Status();
  }
  if (name == "servers") return read(name, text, options.servers);
  if (name == "bucket_bytes") return read(name, text, options.bucket_bytes);
  for (const RuleNumber* number : kRuleNumbers) {
    if (name == number->name) return read_rule_number(*number, text, optimizer);
  }
  for (const RuleFlag& flag : kRuleFlags) {
    if (name == flag.name) return read_rule_flag(flag, text, optimizer);
  }
  if (name == "groups") return read_groups(text, optimizer);
  if (name == "python") {
    options.python = text == "1";
    return Status();
  }
  if (name == "consistency") {
    SYNCOPATE_ASSIGN_OR_RETURN(options.consistency, ps::Consistency::parse(text));
    return Status();
  }
  if (name == "compress") {
    SYNCOPATE_ASSIGN_OR_RETURN(options.codec, parse_codec(text));
    return Status();
  }
  return Status::invalid_argument(fmt::format("there is no option '{}'", name));
}

}  // namespace

Result<TrainingOptions> TrainingOptions::parse(const OptionTexts& texts, int workers) {
  TrainingOptions options;
  for (const auto& [name, text] : texts) SYNCOPATE_RETURN_IF_ERROR(read_option(name, text, options));
  if (options.servers < 0 || options.servers > kMostServers) {
    return Status::invalid_argument(
        fmt::format("servers={}: parameter servers must be 1 to {}", options.servers, kMostServers));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_numbers(texts, rule_of(options.optimizer)));
  // As torch.optim's do.
  options.optimizer.decay_all = !is_layerwise(options.optimizer.kind);
  if (options.sharded) SYNCOPATE_RETURN_IF_ERROR(check_sharded(options));
  if (options.servers == 0) {
    const auto given = texts.find("consistency");
    if (given == texts.end() || given->second == "sync") return options;
    return Status::invalid_argument(
        fmt::format("consistency='{}' is for parameter servers: allreduce is always synchronous", given->second));
  }
  if (options.codec.kind == CodecKind::kPowerSgd) {
    return Status::invalid_argument(
        "compress='powersgd' needs rounds between workers, which parameter servers do not have: use mode='allreduce', "
        "or int8 or topk:0.01");
  }
  if (options.python && options.consistency.pushes_weights()) {
    return Status::invalid_argument(fmt::format(
        "consistency='{}' with servers that run an optimizer of Python's: they get weights then, and each rank makes "
        "updates of its own; use sync, async, bounded:4 or softsync:2",
        options.consistency.to_string()));
  }
  SYNCOPATE_RETURN_IF_ERROR(options.consistency.check_workers(workers));
  return options;
}

OptionTexts TrainingOptions::texts() const {
  const UpdateRule& rule = rule_of(optimizer);
  OptionTexts texts{{"optimizer", std::string(rule.name)},
                    {"compress", to_string(codec)},
                    {"bucket_bytes", std::to_string(bucket_bytes)}};
  for (const RuleNumber* number : kRuleNumbers) {
    if (number->is_of(rule.kind)) texts[std::string(number->name)] = fmt::format("{}", optimizer.*number->member);
  }
  for (const RuleFlag& flag : kRuleFlags) {
    if (flag.is_of(rule.kind)) texts[std::string(flag.name)] = optimizer.*flag.member ? "1" : "0";
  }
  if (optimizer.groups != nullptr) {
    std::string& groups = texts["groups"];
    for (const UpdateGroup& group : *optimizer.groups) {
      groups += fmt::format("{}{}:{}:{}:{}{}", groups.empty() ? "" : ",", group.range.begin, group.range.end,
                            group.rate_factor, group.weight_decay, group.adapt ? "" : ":plain");
    }
  }
  if (sharded) texts["sharded"] = "1";
  if (servers == 0) return texts;
  texts["servers"] = std::to_string(servers);
  texts["consistency"] = consistency.to_string();
  if (python) texts["python"] = "1";
  return texts;
}

Status check_learning_rate(double rate) {
  if (std::isfinite(rate) && rate >= 0 && rate <= std::numeric_limits<float>::max()) return Status();
  return Status::invalid_argument(fmt::format("a learning rate of {}: must be finite and at least 0", rate));
}

}  // namespace syncopate::library
