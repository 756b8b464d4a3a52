#include "library/training_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "common/group_limits.h"

namespace syncopate::library {
namespace {

template <typename Number>
Status read(std::string_view name, std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return Status();
  return Status::invalid_argument(fmt::format("{}='{}': must be a number", name, text));
}

Status read_rule(std::string_view text, OptimizerConfig& config) {
  struct Rule {
    std::string_view name;
    OptimizerKind kind;
    bool nesterov = false;
  };
  static constexpr Rule kRules[] = {
      {"sgd", OptimizerKind::kSgd},
      {"momentum", OptimizerKind::kMomentum},
      {"nesterov", OptimizerKind::kMomentum, true},
      {"adam", OptimizerKind::kAdam},
      {"adamw", OptimizerKind::kAdamW},
      {"adagrad", OptimizerKind::kAdagrad},
  };
  for (const Rule& rule : kRules) {
    if (rule.name != text) continue;
    config.kind = rule.kind;
    config.nesterov = rule.nesterov;
    return Status();
  }
  return Status::invalid_argument(
      fmt::format("optimizer='{}': must be sgd, momentum, nesterov, adam, adamw or adagrad", text));
}

// One group, for read_groups: its four numbers.
Result<UpdateGroup> read_group(std::string_view text) {
  UpdateGroup group;
  std::array<std::string_view, 4> fields;
  for (std::string_view& field : fields) {
    const std::size_t end = std::min(text.find(':'), text.size());
    field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[0], group.range.begin));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[1], group.range.end));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[2], group.rate_factor));
  SYNCOPATE_RETURN_IF_ERROR(read("groups", fields[3], group.weight_decay));
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
  if (name == "servers") return read(name, text, options.servers);
  if (name == "bucket_bytes") return read(name, text, options.bucket_bytes);
  if (name == "momentum") return read(name, text, optimizer.momentum);
  if (name == "beta1") return read(name, text, optimizer.beta1);
  if (name == "beta2") return read(name, text, optimizer.beta2);
  if (name == "epsilon") return read(name, text, optimizer.epsilon);
  if (name == "weight_decay") return read(name, text, optimizer.weight_decay);
  if (name == "initial_accumulator") return read(name, text, optimizer.initial_accumulator);
  if (name == "groups") return read_groups(text, optimizer);
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
  options.optimizer.decay_all = true;  // as torch.optim's do
  for (const auto& [name, text] : texts) SYNCOPATE_RETURN_IF_ERROR(read_option(name, text, options));
  if (options.servers < 0 || options.servers > kMostServers) {
    return Status::invalid_argument(
        fmt::format("servers={}: parameter servers must be 1 to {}", options.servers, kMostServers));
  }
  if (options.servers == 0) return options;
  if (options.codec.kind == CodecKind::kPowerSgd) {
    return Status::invalid_argument(
        "compress='powersgd' needs rounds between workers, which parameter servers do not have: use mode='allreduce', "
        "or int8 or topk:0.01");
  }
  SYNCOPATE_RETURN_IF_ERROR(options.consistency.check_workers(workers));
  return options;
}

}  // namespace syncopate::library
