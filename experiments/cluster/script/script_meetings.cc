#include "experiments/cluster/script/script_meetings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace syncopate::experiments {
namespace {

using Part = ScriptMeetings::Part;
using Outcome = ScriptMeetings::Outcome;

// By the order of ranks, so that all have the same bits however they came.
std::vector<std::byte> sum_of(const std::vector<std::optional<Part>>& parts) {
  std::vector<float> sum(parts.front()->bytes.size() / sizeof(float));
  std::vector<float> values(sum.size());
  for (const std::optional<Part>& part : parts) {
    std::memcpy(values.data(), part->bytes.data(), values.size() * sizeof(float));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  const auto scale = static_cast<float>(parts.front()->scale);
  for (float& value : sum) value *= scale;
  std::vector<std::byte> bytes(sum.size() * sizeof(float));
  std::memcpy(bytes.data(), sum.data(), bytes.size());
  return bytes;
}

Outcome outcome_of(const std::vector<std::optional<Part>>& parts) {
  Outcome outcome;
  switch (parts.front()->kind) {
    case ScriptMeetings::Kind::kSum:
      outcome.bytes = sum_of(parts);
      break;
    case ScriptMeetings::Kind::kBroadcast:
      outcome.bytes = parts[static_cast<std::size_t>(parts.front()->root)]->bytes;
      break;
    case ScriptMeetings::Kind::kGather:
      for (const std::optional<Part>& part : parts) {
        outcome.texts.emplace_back(reinterpret_cast<const char*>(part->bytes.data()), part->bytes.size());
      }
      break;
    case ScriptMeetings::Kind::kBarrier:
      break;
  }
  return outcome;
}

}  // namespace

Status ScriptMeetings::come(int rank, Part part) {
  const auto own = static_cast<std::size_t>(rank);
  if (taken_[own] - gone_ == meetings_.size()) meetings_.push_back({.parts = decltype(Meeting::parts)(taken_.size())});
  Meeting& meeting = of(rank);
  if (part.root < 0 || part.root >= ranks_) {
    return Status::invalid_argument(fmt::format("root {}: must be a rank, 0 to {}", part.root, ranks_ - 1));
  }
  for (int other = 0; other < ranks_; ++other) {
    const std::optional<Part>& its = meeting.parts[static_cast<std::size_t>(other)];
    if (!its) continue;
    const bool has_size = part.kind != Kind::kGather;
    if (its->kind != part.kind || its->root != part.root || its->scale != part.scale ||
        (has_size && its->bytes.size() != part.bytes.size())) {
      return Status::invalid_argument(
          fmt::format("ranks do not do the same: rank {} is in another operation, or has tensors of another size, than "
                      "rank {}",
                      rank, other));
    }
  }
  meeting.parts[own] = std::move(part);
  if (++meeting.come == taken_.size()) meeting.outcome = outcome_of(meeting.parts);
  return {};
}

std::optional<Outcome> ScriptMeetings::take(int rank) {
  Meeting& meeting = of(rank);
  if (!meeting.outcome) return std::nullopt;
  ++taken_[static_cast<std::size_t>(rank)];
  if (++meeting.left < taken_.size()) return meeting.outcome;
  Outcome outcome = std::move(*meeting.outcome);
  meetings_.pop_front();  // ranks leave in order, so it is the first
  ++gone_;
  return outcome;
}

std::vector<int> ScriptMeetings::absent(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < ranks_; ++other) {
    if (!of(rank).parts[static_cast<std::size_t>(other)]) ranks.push_back(other);
  }
  return ranks;
}

}  // namespace syncopate::experiments
