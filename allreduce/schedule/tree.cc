#include "allreduce/schedule/tree.h"

#include <algorithm>
#include <bit>

#include "allreduce/schedule/algorithms.h"

namespace syncopate::allreduce {
namespace {

using Then = ReceivePart::Then;

// parent_of and round_of are asked for the places behind the root.
Tree make_tree(int size, const std::function<int(int place)>& parent_of,
               const std::function<int(int place)>& round_of) {
  Tree tree{.parent = {-1}, .round = {-1}};
  for (int place = 1; place < size; ++place) {
    tree.parent.push_back(parent_of(place));
    tree.round.push_back(round_of(place));
    tree.rounds = std::max(tree.rounds, tree.round.back() + 1);
  }
  return tree;
}

int highest_bit(int place) { return static_cast<int>(std::bit_width(static_cast<unsigned>(place))) - 1; }

// Above place p whose lowest bit is b stands the one that has the bit 2b in its stead; where there is none so high, the
// next one below.
int binary_parent(int place, int size) {
  const int lowest = place & -place;
  const int above = (place ^ lowest) | (lowest << 1);
  return above < size ? above : place ^ lowest;
}

// Where the first tree, mirrored, would leave odd places odd, the second one is the first one shifted.
bool mirrors_second_tree(int size) { return size % 2 == 0; }

}  // namespace

int rank_in_second_tree(int place, int size) {
  return mirrors_second_tree(size) ? size - 1 - place : (place + 1) % size;
}

Tree binomial_tree(int size) {
  return make_tree(
      size, [](int place) { return place - (1 << highest_bit(place)); }, highest_bit);
}

Tree chain(int size) {
  return make_tree(
      size, [](int place) { return place - 1; }, [](int place) { return place - 1; });
}

Tree binary_tree(int size) {
  const auto parent = [size](int place) { return binary_parent(place, size); };
  return make_tree(size, parent, [&](int place) {
    int above = 0;
    for (int next = parent(place); next != 0; next = parent(next)) ++above;
    return above;
  });
}

TreeTraffic::TreeTraffic(const Tree& tree, int place, const std::function<int(int)>& rank_at,
                         const std::vector<Range>& segments)
    : tree_(tree), place_(place), rank_at_(rank_at), segments_(segments) {
  for (int other = 1; other < static_cast<int>(tree.parent.size()); ++other) {
    if (tree.parent[static_cast<std::size_t>(other)] == place) children_.push_back(other);
  }
}

void TreeTraffic::up(Timetable& parts) const {
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    for (const int child : children_) {
      parts.receive(slot(tree_.rounds - 1 - round(child), j), {rank_at_(child), segments_[j], Then::kReduce});
    }
    if (parent() >= 0) {
      parts.send(slot(tree_.rounds - 1 - round(place_), j), {rank_at_(parent()), segments_[j]});
    }
  }
}

void TreeTraffic::down(Timetable& parts, int rounds_before) const {
  for (std::size_t j = 0; j < segments_.size(); ++j) {
    if (parent() >= 0) {
      parts.receive(slot(rounds_before + round(place_), j), {rank_at_(parent()), segments_[j], Then::kCopy});
    }
    for (const int child : children_) {
      parts.send(slot(rounds_before + round(child), j), {rank_at_(child), segments_[j]});
    }
  }
}

Schedule binomial_tree_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  const Tree tree = binomial_tree(size);
  const std::vector<Range> segments = cut({0, length}, segments_in(length, segment));
  const std::function<int(int)> itself = [](int place) { return place; };
  const TreeTraffic traffic(tree, rank, itself, segments);
  Timetable parts(TreeTraffic::lag(segments));
  traffic.up(parts);
  traffic.down(parts, tree.rounds);
  Schedule schedule;
  parts.append_to(schedule);
  return schedule;
}

Schedule tree_all_reduce(int rank, int size, std::size_t length, std::size_t segment) {
  const Tree tree = binary_tree(size);
  const std::vector<Range> halves = cut({0, length}, 2);
  const std::vector<std::vector<Range>> segments = cut_each(halves, segments_in(halves.front().size(), segment));
  const std::function<int(int)> first = [](int place) { return place; };
  const std::function<int(int)> second = [size](int place) { return rank_in_second_tree(place, size); };
  const int place_in_second = mirrors_second_tree(size) ? size - 1 - rank : (rank + size - 1) % size;

  Timetable parts(TreeTraffic::lag(segments.front()));
  for (const TreeTraffic& traffic :
       {TreeTraffic(tree, rank, first, segments[0]), TreeTraffic(tree, place_in_second, second, segments[1])}) {
    traffic.up(parts);
    traffic.down(parts, tree.rounds);
  }
  Schedule schedule;
  parts.append_to(schedule);
  return schedule;
}

}  // namespace syncopate::allreduce
