#include <algorithm>
#include <cassert>

#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {
namespace {

using Then = ReceivePart::Then;

// Members of a group that send to one another directly. The first ones own a chunk each: segments[owner].
struct Group {
  std::span<const int> members;
  int place = 0;  // of this rank among them
  std::vector<std::vector<Range>> segments;

  Group(std::span<const int> group, int own_place, Range range, std::size_t owner_count, std::size_t segment)
      : members(group), place(own_place) {
    const std::vector<Range> chunks = cut(range, owner_count);
    segments = cut_each(chunks, segments_in(chunks.front().size(), segment));
  }

  int size() const { return static_cast<int>(members.size()); }
  int rank_at(int other) const { return members[static_cast<std::size_t>(other)]; }
  bool owns(int other) const { return other < static_cast<int>(segments.size()); }
  const Range& part(int owner, std::size_t j) const { return segments[static_cast<std::size_t>(owner)][j]; }
  std::size_t count() const { return segments.front().size(); }
  // Each member begins with another, so that not all send to the same.
  int other(int k) const { return (place + k) % size(); }

  std::size_t lag() const { return count() > 1 ? 1 : 0; }
};

// Segment j in slot j.
void reduce_scatter(const Group& group, Timetable& parts) {
  for (std::size_t j = 0; j < group.count(); ++j) {
    for (int k = 1; k < group.size(); ++k) {
      if (const int to = group.other(k); group.owns(to)) parts.send(j, {group.rank_at(to), group.part(to, j)});
    }
    if (!group.owns(group.place)) continue;
    const Range own = group.part(group.place, j);
    // A sum begins with the first member's contribution, and not with what this rank's buffer holds: the third member
    // and those behind it keep theirs aside until it is its turn.
    const bool kept_aside = group.place >= 2;
    if (kept_aside) parts.send(j, {group.rank_at(group.place), own, true});
    for (int from = 0; from < group.size(); ++from) {
      if (from == group.place && !kept_aside) continue;
      parts.receive(j, {group.rank_at(from), own, from == 0 && kept_aside ? Then::kCopy : Then::kReduce});
    }
  }
}

// Segment j in slot first + j.
void allgather(const Group& group, std::size_t first, Timetable& parts) {
  for (std::size_t j = 0; j < group.count(); ++j) {
    for (int k = 1; k < group.size(); ++k) {
      const int to = group.other(k), from = group.other(group.size() - k);
      if (group.owns(group.place)) parts.send(first + j, {group.rank_at(to), group.part(group.place, j)});
      if (group.owns(from)) parts.receive(first + j, {group.rank_at(from), group.part(from, j), Then::kCopy});
    }
  }
}

}  // namespace

Schedule direct_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<int> ranks = every_rank(size);
  const Group group(ranks, rank, {0, length}, ranks.size(), segment);
  Timetable parts(group.lag());
  reduce_scatter(group, parts);
  allgather(group, group.lag() + 1, parts);
  return parts.schedule();
}

Schedule direct_reduce_scatter(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<int> ranks = every_rank(size);
  const Group group(ranks, rank, {0, length}, ranks.size(), segment);
  Timetable parts(group.lag());
  reduce_scatter(group, parts);
  return parts.schedule();
}

Schedule direct_all_gather(int rank, int size, std::size_t length, std::size_t segment) {
  const std::vector<int> ranks = every_rank(size);
  const Group group(ranks, rank, {0, length}, ranks.size(), segment);
  Timetable parts(group.lag());
  allgather(group, 0, parts);
  return parts.schedule();
}

std::size_t owners_on_each_host(const RanksByHost& hosts) {
  const auto by_size = [](const auto& one, const auto& other) { return one.size() < other.size(); };
  return std::ranges::min_element(hosts, by_size)->size();
}

std::size_t host_of(int rank, const RanksByHost& hosts) {
  const auto is_here = [&](const std::vector<int>& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); };
  const auto host = std::ranges::find_if(hosts, is_here);
  assert(host != hosts.end());  // every rank is on one
  return static_cast<std::size_t>(host - hosts.begin());
}

OwnedChunk owned_chunk(int rank, std::size_t length, const RanksByHost& hosts) {
  OwnedChunk chunk;
  const std::size_t host = host_of(rank, hosts);
  chunk.host = static_cast<int>(host);
  const auto place = static_cast<std::size_t>(std::ranges::find(hosts[host], rank) - hosts[host].begin());
  chunk.place = static_cast<int>(place);
  const std::size_t count = owners_on_each_host(hosts);
  if (place >= count) return chunk;
  chunk.range = cut({0, length}, count)[place];
  for (const std::vector<int>& ranks : hosts) chunk.owners.push_back(ranks[place]);
  return chunk;
}

Schedule hierarchical_all_reduce(int rank, std::size_t length, std::size_t segment, const RanksByHost& hosts) {
  const OwnedChunk chunk = owned_chunk(rank, length, hosts);
  const Group group(hosts[static_cast<std::size_t>(chunk.host)], chunk.place, {0, length}, owners_on_each_host(hosts),
                    segment);
  Schedule schedule;
  Timetable inward(group.lag());
  reduce_scatter(group, inward);
  inward.append_to(schedule);
  if (!chunk.owners.empty()) append_ring(schedule, chunk.owners, chunk.host, chunk.range, segment);
  Timetable outward(group.lag());
  allgather(group, 0, outward);
  outward.append_to(schedule);
  return schedule;
}

}  // namespace syncopate::allreduce
