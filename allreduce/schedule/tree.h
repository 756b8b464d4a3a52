// Trees over the places 0 .. n-1, whose root is place 0, and what goes up and down them segment by segment.
#pragma once

#include <functional>
#include <vector>

#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {

// By place: where it hangs, and the round of a broadcast in which it is reached, from 0 on. The root's are -1.
struct Tree {
  std::vector<int> parent;
  std::vector<int> round;
  int rounds = 0;
};

// A place hangs below the one without its highest bit. ceil(log2(n)) rounds, in each of which all that have been
// reached reach another.
Tree binomial_tree(int size);
// Each hangs below the one before: n-1 rounds, but nobody sends to more than one.
Tree chain(int size);
// The place 0 has one child; below it, the places are a binary search tree whose leaves are the odd places. At most
// ceil(log2(n)) + 1 rounds, and at most two children each.
Tree binary_tree(int size);

// What the rank at `place` of a tree does; rank_at tells the rank at a place. A segment is handed on one slot after the
// next one has been sent on its way, so that one is reduced while the next one moves.
class TreeTraffic {
 public:
  // All outlive this.
  TreeTraffic(const Tree& tree, int place, const std::function<int(int)>& rank_at, const std::vector<Range>& segments);

  // What the parts' Timetable needs.
  static std::size_t lag(const std::vector<Range>& segments) { return segments.size() > 1 ? 1 : 0; }

  // Sums to the root, the farthest first, then in `down` back to all.
  void up(Timetable& parts) const;
  // `rounds_before` have passed: those of up(), or none.
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
