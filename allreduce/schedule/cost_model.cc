#include "allreduce/schedule/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {
namespace {

// What moves between two ranks in one round, in parts; one is reduced while the next one moves.
struct Round {
  double count = 1;      // parts
  double message = 0;    // seconds of one: α + β·s
  double reduction = 0;  // γ·s

  double moved() const { return count * message; }
  double moved_and_reduced() const { return std::max(moved() + reduction, message + count * reduction); }
  // The same where the next round's parts follow without a pause.
  double handed_on() const { return std::max({moved(), count * reduction, message + reduction}); }
};

Round round_of(double bytes, const LinkModel& link, std::size_t segment_bytes) {
  const auto elements = static_cast<std::size_t>(std::ceil(bytes / sizeof(float)));
  const auto count = static_cast<double>(segments_in(elements, segment_bytes / sizeof(float)));
  return {.count = count,
          .message = link.latency + link.seconds_per_byte * bytes / count,
          .reduction = link.reduce_seconds_per_byte * bytes / count};
}

double ring_seconds(int size, const Round& share) { return (size - 1) * (share.handed_on() + share.moved()); }

double direct_seconds(int size, const Round& share) { return (size - 1) * (share.moved_and_reduced() + share.moved()); }

double binomial_seconds(double levels, const Round& all) {
  return levels * (all.handed_on() + std::min(all.count, 2 * levels) * all.message);
}

double tree_seconds(int size, double levels, const Round& half) {
  const double at_once = std::max(std::min(size, 4) * half.message, (std::min(size, 3) - 1) * half.reduction);
  return half.count * at_once + 4 * (levels - 1) * half.message + (2 * levels - 1) * half.reduction;
}

}  // namespace

double predicted_seconds(ScheduleKind kind, int size, std::size_t bytes, const LinkModel& link,
                         std::size_t segment_bytes) {
  if (size < 2) return 0;
  const auto ranks = static_cast<unsigned>(size);
  const unsigned power = std::bit_floor(ranks);
  const double levels = std::bit_width(ranks - 1);  // ceil(log2(size))
  const auto all = static_cast<double>(bytes);
  const auto round = [&](double of) { return round_of(of, link, segment_bytes); };
  const double fold = power == ranks ? 0 : round(all).moved_and_reduced() + round(all).moved();
  switch (kind) {
    case ScheduleKind::kRing:
      return ring_seconds(size, round(all / size));
    case ScheduleKind::kDirect:
    case ScheduleKind::kHierarchical:
      return direct_seconds(size, round(all / size));
    case ScheduleKind::kHalvingDoubling: {
      double seconds = fold;
      for (unsigned parts = 2; parts <= power; parts *= 2) {
        seconds += round(all / parts).moved_and_reduced() + round(all / parts).moved();
      }
      return seconds;
    }
    case ScheduleKind::kDoubling:
      return fold + (std::bit_width(ranks) - 1) * round(all).moved_and_reduced();
    case ScheduleKind::kBinomialTree:
      return binomial_seconds(levels, round(all));
    case ScheduleKind::kTree:
      return tree_seconds(size, levels, round(all / 2));
  }
  return 0;
}

double predicted_hierarchical_seconds(int hosts, int ranks, std::size_t bytes, const LinkModel& inside,
                                      const LinkModel& across, std::size_t segment_bytes) {
  const double share = static_cast<double>(bytes) / ranks;
  return direct_seconds(ranks, round_of(share, inside, segment_bytes)) +
         ring_seconds(hosts, round_of(share / hosts, across, segment_bytes));
}

ScheduleKind choose_schedule(int size, std::size_t bytes, const LinkModel& link, std::size_t segment_bytes) {
  ScheduleKind best = ScheduleKind::kRing;
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleKind kind : kAllScheduleKinds) {
    if (kind == ScheduleKind::kHierarchical) continue;
    const double seconds = predicted_seconds(kind, size, bytes, link, segment_bytes);
    if (seconds >= least) continue;
    best = kind;
    least = seconds;
  }
  return best;
}

Result<LinkModel> fit_link(std::span<const TransferSample> samples) {
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;  // sums of weights times bytes x and seconds t
  bool two_sizes = false;
  for (const TransferSample& sample : samples) {
    if (!(sample.seconds > 0)) {
      return Status::invalid_argument(
          fmt::format("{} bytes in {} s: a transfer's time must be above zero", sample.bytes, sample.seconds));
    }
    const double weight = 1 / (sample.seconds * sample.seconds), x = static_cast<double>(sample.bytes);
    w += weight;
    wx += weight * x;
    wxx += weight * x * x;
    wt += weight * sample.seconds;
    wxt += weight * x * sample.seconds;
    two_sizes = two_sizes || sample.bytes != samples.front().bytes;
  }
  if (!two_sizes) {
    return Status::invalid_argument(
        fmt::format("{} transfers of one size: a link is fitted to two sizes or more", samples.size()));
  }
  LinkModel link;
  const double determinant = w * wxx - wx * wx;
  link.latency = (wxx * wt - wx * wxt) / determinant;
  link.seconds_per_byte = (w * wxt - wx * wt) / determinant;
  // The best fit without a negative one lies where that one is zero.
  if (link.latency < 0) link = {.seconds_per_byte = wxt / wxx};
  if (link.seconds_per_byte < 0) link = {.latency = wt / w};
  return link;
}

}  // namespace syncopate::allreduce
