#include "common/transport/fair_ingress.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace syncopate {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

// How all that is known goes on from time_.
class FairIngress::Course {
 public:
  struct Run {
    LinkConnection connection;
    const Flow* flow = nullptr;
    std::size_t piece = 0, message = 0;  // the first of the flow's that has not reached the link, or not passed
    double amount = 0;                   // left of that piece
    double waiting = 0, passed = 0;
    double in = 0, out = 0;  // rates

    bool has_piece() const { return piece < flow->pieces.size(); }
    const Piece& next_piece() const { return flow->pieces[piece]; }
    void finish_piece() {
      waiting += amount;
      amount = ++piece < flow->pieces.size() ? flow->pieces[piece].amount : 0;
    }
    bool has_message() const { return message < flow->ends.size(); }
    bool message_has_passed() const { return has_message() && passed >= flow->ends[message] - kLinkRounding; }
    // Lets pass what is only rounding. However it was rounded on the way, all has passed when nothing is left.
    void settle_rounding() {
      if (waiting >= kLinkRounding) return;
      passed = has_piece() ? passed + waiting : flow->ends.back();
      waiting = 0;
    }
  };

  explicit Course(const FairIngress& link) : time_(link.time_) {
    for (const auto& [connection, flow] : link.flows_) {
      if (flow.ends.empty()) continue;
      runs_.push_back({.connection = connection, .flow = &flow, .waiting = flow.waiting, .passed = flow.passed});
      if (!flow.pieces.empty()) runs_.back().amount = flow.pieces.front().amount;
    }
  }

  // Returns the connection of the next message that has passed, and moves on to then; null if none is under way.
  const LinkConnection* next() {
    while (true) {
      for (Run& run : runs_) {
        if (!run.message_has_passed()) continue;
        ++run.message;
        return &run.connection;
      }
      if (!move()) return nullptr;
    }
  }

  double time() const { return time_; }
  const std::vector<Run>& runs() const { return runs_; }
  const std::vector<Free>& free() const { return free_; }

 private:
  // Moves on to when some rate changes or some message has passed. Returns false if nothing will.
  bool move() {
    double step = kInfinite;
    for (Run& run : runs_) {
      while (run.has_piece() && run.next_piece().end <= time_ + kLinkRounding) run.finish_piece();
      run.settle_rounding();
      if (run.message_has_passed()) return true;
      run.in = 0;
      if (!run.has_piece()) continue;
      const Piece& piece = run.next_piece();
      if (piece.begin <= time_) run.in = run.amount / (piece.end - time_);
      step = std::min(step, (piece.begin <= time_ ? piece.end : piece.begin) - time_);
    }
    share();
    for (const Run& run : runs_) {
      if (run.waiting > 0 && run.out > run.in) step = std::min(step, run.waiting / (run.out - run.in));
      if (run.out > 0 && run.has_message()) step = std::min(step, (run.flow->ends[run.message] - run.passed) / run.out);
    }
    if (step == kInfinite) return false;
    double used = 0;
    for (Run& run : runs_) {
      used += run.out;
      run.amount -= run.in * step;
      run.passed += run.out * step;
      run.waiting += (run.in - run.out) * step;
    }
    if (used < 1 - 1e-9) free_.push_back({time_, time_ + step, 1 - used});
    time_ += step;
    return true;
  }

  // Gives each run its share of the link, the most modest first.
  void share() {
    const auto wants = [](const Run& run) { return run.waiting > 0 ? kInfinite : run.in; };
    order_.resize(runs_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::sort(order_, std::less(), [&](std::size_t i) { return wants(runs_[i]); });
    double left = 1;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      Run& run = runs_[order_[i]];
      run.out = std::min(wants(run), left / static_cast<double>(order_.size() - i));
      left -= run.out;
    }
  }

  std::vector<Run> runs_;
  std::vector<std::size_t> order_;
  std::vector<Free> free_;
  double time_;
};

void FairIngress::add(LinkConnection connection, LinkPassage passage, Duration length) {
  assert(length > Duration::zero());
  Flow& flow = flows_[connection];
  if (flow.ends.empty()) flow = Flow();
  const double before = flow.ends.empty() ? 0 : flow.ends.back();
  flow.ends.push_back(before + in_nanoseconds(length));
  Piece piece{in_nanoseconds(passage.begin), in_nanoseconds(passage.end), in_nanoseconds(length)};
  if (flow.ends.size() == 1 && piece.begin < time_) {
    flow.passed = catch_up(piece);
    flow.waiting = -flow.passed;
  }
  reach(flow, piece);
  flow.waiting = std::max(flow.waiting, 0.0);
}

void FairIngress::revise(LinkConnection connection, std::span<const LinkRemainder> remainders) {
  const auto found = flows_.find(connection);
  if (found == flows_.end() || remainders.empty()) return;
  Flow& flow = found->second;
  std::deque<Piece> before;
  std::swap(before, flow.pieces);
  double ahead = -in_nanoseconds(remainders.front().left);  // of what reaches the link before the first of these times
  for (const Piece& piece : before) ahead += piece.amount;
  for (Piece& piece : before) {
    if (ahead <= 0) break;
    if (piece.amount <= 0) continue;
    const double kept = std::min(ahead, piece.amount);
    piece.end = piece.begin + (piece.end - piece.begin) * kept / piece.amount;
    piece.amount = kept;
    ahead -= kept;
    reach(flow, piece);
  }
  for (std::size_t i = 0; i + 1 < remainders.size(); ++i) {
    Piece piece{in_nanoseconds(remainders[i].time), in_nanoseconds(remainders[i + 1].time),
                in_nanoseconds(remainders[i].left - remainders[i + 1].left)};
    // What was said before has let this much reach the link too early.
    const double there = std::clamp(-ahead, 0.0, piece.amount);
    ahead += there;
    if (piece.amount - there <= 0) continue;
    piece.begin += (piece.end - piece.begin) * there / piece.amount;
    piece.amount -= there;
    reach(flow, piece);
  }
}

std::vector<LinkConnection> FairIngress::take(TimePoint now) {
  std::vector<LinkConnection> taken;
  while (true) {
    Course course(*this);
    const LinkConnection* const connection = course.next();
    if (connection == nullptr || time_at(course.time()) > now) return taken;
    taken.push_back(*connection);
    settle(course);
  }
}

TimePoint FairIngress::next(int endpoint) const {
  Course course(*this);
  while (const LinkConnection* const connection = course.next()) {
    if (connection->endpoint == endpoint) return time_at(course.time());
  }
  return TimePoint::max();
}

void FairIngress::leave(int endpoint) {
  std::erase_if(flows_, [&](const auto& flow) { return flow.first.endpoint == endpoint; });
}

void FairIngress::reach(Flow& flow, Piece piece) {
  if (!flow.pieces.empty()) piece.begin = std::max(piece.begin, flow.pieces.back().end);
  piece.end = std::max(piece.end, piece.begin);
  if (piece.end <= time_) {
    flow.waiting += piece.amount;
    return;
  }
  if (piece.begin < time_) {
    const double there = piece.amount * (time_ - piece.begin) / (piece.end - piece.begin);
    flow.waiting += there;
    piece = {time_, piece.end, piece.amount - there};
  }
  flow.pieces.push_back(piece);
}

double FairIngress::catch_up(const Piece& piece) {
  const double rate = piece.amount / std::max(piece.end - piece.begin, 1.0);
  const auto reached_by = [&](double time) { return std::clamp(rate * (time - piece.begin), 0.0, piece.amount); };
  double passed = 0;
  std::deque<Free> rest;
  for (const Free& free : free_) {
    const double begin = std::clamp(piece.begin, free.begin, free.end);
    const double used = reached_by(begin) > passed ? free.rate : std::min(free.rate, rate);
    const double amount = std::clamp(reached_by(free.end) - passed, 0.0, used * (free.end - begin));
    const double end = begin + amount / used;
    passed += amount;
    if (begin > free.begin) rest.push_back({free.begin, begin, free.rate});
    if (end > begin && used < free.rate) rest.push_back({begin, end, free.rate - used});
    if (free.end > end) rest.push_back({end, free.end, free.rate});
  }
  free_ = std::move(rest);
  return passed;
}

void FairIngress::settle(const Course& course) {
  for (const Course::Run& run : course.runs()) {
    Flow& flow = flows_[run.connection];
    flow.pieces.erase(flow.pieces.begin(), flow.pieces.begin() + static_cast<std::ptrdiff_t>(run.piece));
    if (!flow.pieces.empty()) {
      Piece& piece = flow.pieces.front();
      piece.begin = std::max(piece.begin, course.time());
      piece.amount = run.amount;
    }
    flow.ends.erase(flow.ends.begin(), flow.ends.begin() + static_cast<std::ptrdiff_t>(run.message));
    flow.waiting = run.waiting;
    flow.passed = run.passed;
  }
  free_.insert(free_.end(), course.free().begin(), course.free().end());
  while (free_.size() > kMostRemembered) free_.pop_front();
  time_ = course.time();
}

}  // namespace syncopate
