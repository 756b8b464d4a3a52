#include "ps/server/missing_workers.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {
namespace {

// Sets `awaited`, by worker, where a push to `part`, a chunk or a table, is what somebody waits for.
template <typename Part>
void mark_awaited(const Part& part, const Membership& members, std::vector<bool>& awaited) {
  for (int waiting = 0; waiting < members.workers(); ++waiting) {
    if (!part.has_pending_request(waiting)) continue;
    for (int other = 0; other < members.workers(); ++other) {
      if (!members.is_live(other) || part.has_pending_gradient(other)) continue;
      if (part.has_pending_gradient(waiting) || part.waits_for(waiting, other)) {
        awaited[static_cast<std::size_t>(other)] = true;
      }
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
    mark_awaited(part, members, awaited);
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
