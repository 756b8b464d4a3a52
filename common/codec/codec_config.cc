#include "common/codec/codec_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "common/hash.h"

namespace syncopate {
namespace {

constexpr int kMostRank = 64;

constexpr std::array<std::pair<CodecKind, std::string_view>, 9> kNames{{{CodecKind::kNone, "none"},
                                                                        {CodecKind::kFp16, "fp16"},
                                                                        {CodecKind::kBf16, "bf16"},
                                                                        {CodecKind::kInt8, "int8"},
                                                                        {CodecKind::kTopK, "topk"},
                                                                        {CodecKind::kTopK2Bit, "topk2bit"},
                                                                        {CodecKind::kRandomK, "randomk"},
                                                                        {CodecKind::kSign, "sign"},
                                                                        {CodecKind::kPowerSgd, "powersgd"}}};

bool has_ratio(CodecKind kind) {
  return kind == CodecKind::kTopK || kind == CodecKind::kTopK2Bit || kind == CodecKind::kRandomK;
}

template <typename T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<CodecConfig> parsed(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool has_argument = colon != text.npos;
  const std::string_view argument = has_argument ? text.substr(colon + 1) : std::string_view();
  for (const auto& [kind, name] : kNames) {
    if (text.substr(0, colon) != name) continue;
    CodecConfig config{.kind = kind};
    if (has_ratio(kind)) {
      // Written so that NaN fails too.
      if (!read(argument, config.ratio) || !(config.ratio > 0 && config.ratio <= 1)) return std::nullopt;
    } else if (kind == CodecKind::kPowerSgd) {
      if (!read(argument, config.rank) || config.rank < 1 || config.rank > kMostRank) return std::nullopt;
    } else if (has_argument) {
      return std::nullopt;
    }
    return config;
  }
  return std::nullopt;
}

}  // namespace

Result<CodecConfig> parse_codec(std::string_view text) {
  const std::optional<CodecConfig> config = parsed(text);
  if (config) return *config;
  return Status::invalid_argument(fmt::format("{}: codec must be {}", text, kCodecSpellings));
}

std::string to_string(const CodecConfig& config) {
  for (const auto& [kind, name] : kNames) {
    if (kind != config.kind) continue;
    if (has_ratio(kind)) return fmt::format("{}:{}", name, config.ratio);
    if (kind == CodecKind::kPowerSgd) return fmt::format("{}:{}", name, config.rank);
    return std::string(name);
  }
  return "unknown";
}

const char* name_of(Int8Rounding value) { return value == Int8Rounding::kNearest ? "nearest" : "stochastic"; }

const char* name_of(CompressMomentum value) {
  switch (value) {
    case CompressMomentum::kOff:
      return "off";
    case CompressMomentum::kCorrection:
      return "correction";
    case CompressMomentum::kMasking:
      return "masking";
  }
  return "";
}

std::uint64_t hash_of(const CodecConfig& config) {
  Fnv hash;
  hash.add(to_string(config));
  hash.add(name_of(config.rounding));
  hash.add(static_cast<std::uint64_t>(config.warmup_epochs));
  hash.add(name_of(config.momentum.how));
  hash.add(std::bit_cast<std::uint32_t>(config.momentum.momentum));
  hash.add(std::uint64_t{config.momentum.nesterov});
  hash.add(static_cast<std::uint64_t>(config.whole_updates));
  hash.add(std::bit_cast<std::uint32_t>(config.decay));
  return hash.value();
}

double ratio_in_epoch(const CodecConfig& config, std::int64_t epoch) {
  if (epoch >= config.warmup_epochs) return config.ratio;
  const double passed = static_cast<double>(std::max<std::int64_t>(epoch, 0) + 1);
  const double ratio = std::pow(config.ratio, passed / static_cast<double>(config.warmup_epochs + 1));
  return static_cast<double>(static_cast<float>(ratio));  // the same where libraries differ in the last place
}

bool needs_error_feedback(CodecKind kind) {
  return has_ratio(kind) || kind == CodecKind::kSign || kind == CodecKind::kPowerSgd;
}

bool needs_error_feedback(const CodecConfig& config) {
  return config.whole_updates > 0 || needs_error_feedback(config.kind);
}

std::size_t kept_elements(double ratio, std::size_t elements) {
  return static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(elements)));
}

}  // namespace syncopate
