#include "ps/membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "ps/group.h"

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kLargestArena = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 20;

std::string text_of(const ArenaClaim& claim) {
  const std::string tables = claim.tables > 0 ? fmt::format(" and {} tables", claim.tables) : "";
  return fmt::format("layout {:016x} of {} floats in {} chunks{}", claim.layout_hash, claim.arena_size, claim.chunks,
                     tables);
}

}  // namespace

Status Membership::join(int worker, const ArenaClaim& claim) {
  if (of(worker).state != State::kExpected) {
    return Status(Code::kInvalidArgument, fmt::format("worker {} has joined before or is lost", worker));
  }
  if (claim.arena_size > kLargestArena || claim.shard_size > claim.arena_size ||
      claim.chunks > std::min(claim.shard_size, kMostChunks)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("an arena of {} floats (at most {}), {} of them here in {} chunks", claim.arena_size,
                              kLargestArena, claim.shard_size, claim.chunks));
  }
  if (claim.tables > kMostTables) {
    return Status(Code::kInvalidArgument, fmt::format("{} tables: at most {}", claim.tables, kMostTables));
  }
  of(worker) = {State::kJoined, claim};
  return Status();
}

Status Membership::leave(int worker) {
  if (!started_ || !is_joined(worker)) {
    return Status(Code::kInvalidArgument, fmt::format("worker {} is not in the job", worker));
  }
  of(worker).state = State::kLeaving;
  return Status();
}

bool Membership::lose(int worker) {
  State& state = of(worker).state;
  if (state == State::kLost || state == State::kFinished) return false;
  state = State::kLost;
  return true;
}

bool Membership::start_if_all_joined(bool weights_complete) {
  if (started_ || !refusal_.empty()) return false;
  const auto is_expected = [](const Member& member) { return member.state == State::kExpected; };
  if (std::any_of(members_.begin(), members_.end(), is_expected)) return false;
  // The weights of a chief that has joined may still be on their way.
  if (!weights_complete && is_joined(kChief)) return false;
  refusal_ = find_refusal(weights_complete);
  started_ = refusal_.empty();
  return true;
}

bool Membership::any_live() const {
  for (int worker = 0; worker < workers(); ++worker) {
    if (is_live(worker)) return true;
  }
  return false;
}

bool Membership::done() const {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return member.state == State::kFinished || member.state == State::kLost;
  });
}

std::string Membership::find_refusal(bool weights_complete) const {
  if (!objection_.empty()) return objection_;
  if (!weights_complete) return "the chief was lost before it had sent the initial weights";
  const ArenaClaim& chief = of(kChief).claim;
  for (int worker = 0; worker < workers(); ++worker) {
    if (is_joined(worker) && of(worker).claim != chief) {
      return fmt::format("worker {} has {}, the chief {}", worker, text_of(of(worker).claim), text_of(chief));
    }
  }
  return {};
}

}  // namespace syncopate::ps
