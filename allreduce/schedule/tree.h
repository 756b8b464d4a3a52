// Trees over the places 0 .. n-1 with the root at place 0, and the traffic up and down them, segment by segment.
#pragma once

#include <functional>
#include <vector>

#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

// By place: its parent, and the round of a broadcast in which it is reached, from 0 on. Both are -1 for the root.
struct Tree {
  std::vector<int> parent;
  std::vector<int> round;
  int rounds = 0;
};

// The parent of a place is the place without its highest bit. There are ceil(log2(n)) rounds; in each, every place that
// has been reached reaches another.
Tree binomial_tree(int size);
// The parent of each place is the one before: n-1 rounds, but each place sends to at most one other.
Tree chain(int size);
// Place 0 has one child; below it, the places are a binary search tree whose leaves are the odd places. There are at
// most ceil(log2(n)) + 1 rounds, and at most two children per place.
Tree binary_tree(int size);
// Returns the rank at a place of the second of two binary trees, in the first of which each rank is at the place of its
// number. Who is a leaf in one tree is none in the other.
int rank_in_second_tree(int place, int size);

// What the rank at `place` of a tree sends and receives; rank_at returns the rank at a place. A segment is forwarded
// one slot after the next one has been sent to this rank, so that one is reduced while the next one moves.
class TreeTraffic {
 public:
  // All arguments must outlive this object.
  TreeTraffic(const Tree& tree, int place, const std::function<int(int)>& rank_at, const std::vector<Range>& segments);

  // The lag of the parts' Timetable.
  static std::size_t lag(const std::vector<Range>& segments) { return segments.size() > 1 ? 1 : 0; }

  // up() sums to the root, starting at the farthest places. down() then sends the result back to all.
  void up(Timetable& parts) const;
  // `rounds_before` have passed before: those of up(), or none.
  void down(Timetable& parts, int rounds_before) const;

 private:
  std::size_t slot(int round, std::size_t segment) const {
    return static_cast<std::size_t>(round) * (lag(segments_) + 1) + segment;
  }
  int round(int place) const { return tree_.round[static_cast<std::size_t>(place)]; }
  int parent() const { return tree_.parent[static_cast<std::size_t>(place_)]; }

  const Tree& tree_;
  const int place_;
  const std::function<int(int)>& rank_at_;
  const std::vector<Range>& segments_;
  std::vector<int> children_;  // places
};

}  // namespace syncopate::allreduce
