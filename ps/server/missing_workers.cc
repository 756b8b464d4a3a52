#include "ps/server/missing_workers.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {
namespace {

// Sets `awaited`, by worker, where a push to `part`, a chunk or a table, is what somebody waits for.
template <typename Part, typename Waits>
void mark_awaited(const Part& part, const Membership& members, const Consistency& consistency, Waits&& waits,
                  std::vector<bool>& awaited) {
  bool any_held = false;
  std::int64_t furthest = 0;  // of those who wait
  for (int worker = 0; worker < members.workers(); ++worker) {
    if (!waits(worker)) continue;
    any_held |= part.holds_gradient(worker);
    furthest = std::max(furthest, part.clock(worker));
  }
  for (int worker = 0; worker < members.workers(); ++worker) {
    if (!members.is_live(worker) || part.holds_gradient(worker)) continue;
    if (any_held || !consistency.may_answer(furthest, part.clock(worker))) {
      awaited[static_cast<std::size_t>(worker)] = true;
    }
  }
}

}  // namespace

std::vector<AwaitedWorker> awaited_at(const Shard& shard) {
  const Membership& members = shard.members();
  std::vector<AwaitedWorker> found;
  if (!members.started()) return found;
  std::vector<bool> awaited(static_cast<std::size_t>(members.workers()));
  std::vector<std::int64_t> pushes(awaited.size());
  const auto look_at = [&](const auto& part) {
    mark_awaited(
        part, members, shard.consistency(), [&](int worker) { return part.waits(worker); }, awaited);
    for (std::size_t i = 0; i < pushes.size(); ++i) pushes[i] += part.clock(static_cast<int>(i));
  };
  for (std::size_t chunk = 0; chunk < shard.chunks(); ++chunk) look_at(shard.chunk(chunk));
  for (std::size_t table = 0; table < shard.tables(); ++table) look_at(shard.table(table));
  for (std::size_t i = 0; i < awaited.size(); ++i) {
    if (awaited[i]) found.push_back({static_cast<int>(i), pushes[i]});
  }
  return found;
}

std::vector<int> MissingWorkers::look(const std::vector<AwaitedWorker>& awaited, TimePoint now) {
  const bool is_late = now >= next_ + interval_;
  next_ = (is_late ? now : next_) + interval_;
  std::vector<int> missing;
  std::vector<Watched> watched;
  for (const AwaitedWorker& who : awaited) {
    const auto before = std::ranges::find(watched_, who, &Watched::who);
    watched.push_back({who, before == watched_.end() ? 0 : before->looks + 1});
    if (watched.back().looks == kLooks) missing.push_back(who.worker);
  }
  watched_ = std::move(watched);
  return missing;
}

}  // namespace syncopate::ps
