#include "ps/policy/membership.h"

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

Membership::Membership(int workers, const std::vector<bool>& there, bool goes_on)
    : members_(static_cast<std::size_t>(workers)), goes_on_(goes_on) {
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (!there[i]) members_[i].state = State::kLost;
  }
  for (int worker = 0; worker < workers; ++worker) live_ += is_live(worker) ? 1 : 0;
  const auto is_there = [](const Member& member) { return member.state == State::kExpected; };
  const auto first = std::ranges::find_if(members_, is_there);
  if (first != members_.end()) chief_ = static_cast<int>(first - members_.begin());
}

Status Membership::join(int worker, const ArenaClaim& claim) {
  if (of(worker).state != State::kExpected) {
    return Status::invalid_argument(fmt::format("worker {} has joined before or is lost", worker));
  }
  if (claim.arena_size > kLargestArena || claim.shard_size > claim.arena_size ||
      claim.chunks > std::min(claim.shard_size, kMostChunks)) {
    return Status::invalid_argument(fmt::format("an arena of {} floats (at most {}), {} of them here in {} chunks",
                                                claim.arena_size, kLargestArena, claim.shard_size, claim.chunks));
  }
  if (claim.tables > kMostTables) {
    return Status::invalid_argument(fmt::format("{} tables: at most {}", claim.tables, kMostTables));
  }
  set(worker, State::kJoined);
  of(worker).claim = claim;
  return Status();
}

Status Membership::leave(int worker) {
  if (!started_ || !is_joined(worker)) {
    return Status::invalid_argument(fmt::format("worker {} is not in the job", worker));
  }
  set(worker, State::kLeaving);
  return Status();
}

bool Membership::lose(int worker) {
  const State state = of(worker).state;
  if (state == State::kLost || state == State::kFinished) return false;
  set(worker, State::kLost);
  return true;
}

void Membership::set(int worker, State state) {
  const bool was_live = is_live(worker);
  of(worker).state = state;
  if (was_live == is_live(worker)) return;
  live_ += was_live ? -1 : 1;
  ++changes_;
}

bool Membership::start_if_all_joined(bool weights_complete) {
  if (started_ || !refusal_.empty()) return false;
  const auto is_expected = [](const Member& member) { return member.state == State::kExpected; };
  if (std::any_of(members_.begin(), members_.end(), is_expected)) return false;
  // What a worker that has joined sends behind that may still be on its way.
  if (!weights_complete && any_describes()) return false;
  refusal_ = find_refusal(weights_complete);
  started_ = refusal_.empty();
  return true;
}

bool Membership::any_describes() const {
  for (int worker = 0; worker < workers(); ++worker) {
    if (describes(worker)) return true;
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
  int first = chief_;
  // One of those that are there has described what there is.
  while (goes_on_ && !is_joined(first) && first + 1 < workers()) ++first;
  const ArenaClaim& claim = of(first).claim;
  for (int worker = 0; worker < workers(); ++worker) {
    if (is_joined(worker) && of(worker).claim != claim) {
      return fmt::format("worker {} has {}, {} {}", worker, text_of(of(worker).claim),
                         first == chief_ ? "the chief" : fmt::format("worker {}", first), text_of(claim));
    }
  }
  return {};
}

}  // namespace syncopate::ps
