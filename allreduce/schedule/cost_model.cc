#include "allreduce/schedule/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "allreduce/schedule/timetable.h"

namespace syncopate::allreduce {
namespace {

std::vector<std::size_t> sizes_of(const RanksByHost& hosts) {
  std::vector<std::size_t> sizes;
  for (const std::vector<int>& ranks : hosts) sizes.push_back(ranks.size());
  return sizes;
}

// `message` tells the seconds of one part of so many bytes.
template <typename Message>
RoundCost cut_into_parts(double bytes, std::size_t segment_bytes, const Message& message,
                         double reduce_seconds_per_byte) {
  const auto elements = static_cast<std::size_t>(std::ceil(bytes / sizeof(float)));
  const auto count = static_cast<double>(segments_in(elements, segment_bytes / sizeof(float)));
  return {.count = count, .message = message(bytes / count), .reduction = reduce_seconds_per_byte * bytes / count};
}

double message_seconds(const LinkModel& link, double bytes, double at_once = 1) {
  return link.latency + link.seconds_per_byte * bytes * at_once;
}

double ring_seconds(double size, const RoundCost& share) { return (size - 1) * (share.handed_on() + share.moved()); }

double direct_seconds_of(double size, const RoundCost& share) {
  return (size - 1) * (share.moved_and_reduced() + share.moved());
}

}  // namespace

double RoundCost::moved() const { return count * message; }
double RoundCost::moved_and_reduced() const { return std::max(moved() + reduction, message + count * reduction); }
double RoundCost::handed_on() const { return std::max({moved(), count * reduction, message + reduction}); }

RanksByHost one_host(int ranks) {
  RanksByHost hosts(1, std::vector<int>(static_cast<std::size_t>(ranks)));
  std::iota(hosts.front().begin(), hosts.front().end(), 0);
  return hosts;
}

CostModel::CostModel(const RanksByHost& hosts, const GroupLinks& links, std::size_t segment_bytes)
    : links_(links), segment_bytes_(segment_bytes), ranks_of_hosts_(sizes_of(hosts)) {
  sizes_of_hosts_.insert(ranks_of_hosts_.begin(), ranks_of_hosts_.end());
  const HostTraffic traffic(hosts);
  size_ = traffic.size();
  ring_ = traffic.ring();
  double_tree_ = traffic.double_tree();
  fold_ = traffic.fold();
  by_distance_ = traffic.by_distance();
  by_level_ = traffic.by_level();
}

RoundCost CostModel::round_of(double bytes, const RoundTraffic& traffic) const {
  const auto message = [&](double part) {
    const double inside = traffic.inside ? message_seconds(links_.inside, part) : 0;
    const double across = traffic.over_link > 0 ? message_seconds(links_.across, part, traffic.over_link) : 0;
    return std::max(inside, across);
  };
  return cut_into_parts(bytes, segment_bytes_, message,
                        std::max(traffic.inside ? links_.inside.reduce_seconds_per_byte : 0,
                                 traffic.over_link > 0 ? links_.across.reduce_seconds_per_byte : 0));
}

double CostModel::direct_seconds(double share) const {
  // The mean of a rank's messages, on the host whose ranks take longest.
  const auto message = [&](double part) {
    double longest = 0;
    for (const std::size_t ranks : sizes_of_hosts_) {
      const auto here = static_cast<double>(ranks), elsewhere = size_ - here;
      const double one_by_one =
          (here - 1) * message_seconds(links_.inside, part) + elsewhere * message_seconds(links_.across, part);
      const double of_host = elsewhere > 0 ? message_seconds(links_.across, part, here * elsewhere) : 0;
      longest = std::max({longest, one_by_one, of_host});
    }
    return longest / (size_ - 1);
  };
  const double reduce = ranks_of_hosts_.size() > 1
                            ? std::max(links_.inside.reduce_seconds_per_byte, links_.across.reduce_seconds_per_byte)
                            : links_.inside.reduce_seconds_per_byte;
  return direct_seconds_of(size_, cut_into_parts(share, segment_bytes_, message, reduce));
}

double CostModel::fold_seconds(double bytes) const {
  if (!fold_) return 0;
  const RoundCost all = round_of(bytes, *fold_);
  return all.moved_and_reduced() + all.moved();
}

double CostModel::halving_doubling_seconds(double bytes) const {
  double seconds = fold_seconds(bytes), part = bytes;
  for (const RoundTraffic& traffic : by_distance_) {
    part /= 2;
    const RoundCost round = round_of(part, traffic);
    seconds += round.moved_and_reduced() + round.moved();
  }
  return seconds;
}

double CostModel::doubling_seconds(double bytes) const {
  double seconds = fold_seconds(bytes);
  for (const RoundTraffic& traffic : by_distance_) seconds += round_of(bytes, traffic).moved_and_reduced();
  return seconds;
}

double CostModel::binomial_seconds(double bytes) const {
  const double levels = static_cast<double>(by_level_.size());
  double seconds = 0;
  for (const RoundTraffic& traffic : by_level_) {
    const RoundCost level = round_of(bytes, traffic);
    seconds += level.handed_on() + std::min(level.count, 2 * levels) * level.message;
  }
  return seconds;
}

double CostModel::tree_seconds(double half) const {
  const double levels = static_cast<double>(by_level_.size());
  const RoundCost one =
      round_of(half, {.inside = double_tree_.inside, .over_link = std::min(double_tree_.over_link, 1)});
  const double over_link =
      double_tree_.over_link > 0 ? message_seconds(links_.across, half / one.count, double_tree_.over_link) : 0;
  const double at_once =
      std::max({std::min(size_, 4) * one.message, over_link, (std::min(size_, 3) - 1) * one.reduction});
  return one.count * at_once + 4 * (levels - 1) * one.message + (2 * levels - 1) * one.reduction;
}

double CostModel::hierarchical_seconds(double bytes) const {
  const auto [owners, largest] = std::ranges::minmax(ranks_of_hosts_);
  const auto hosts = static_cast<double>(ranks_of_hosts_.size()), chunks = static_cast<double>(owners);
  const LinkModel& inside = links_.two_level_inside;
  const RoundCost of_host = cut_into_parts(
      bytes / chunks, segment_bytes_, [&](double part) { return message_seconds(inside, part); },
      inside.reduce_seconds_per_byte);
  const RoundCost of_hosts = cut_into_parts(
      bytes / chunks / hosts, segment_bytes_, [&](double part) { return message_seconds(links_.across, part, chunks); },
      links_.across.reduce_seconds_per_byte);
  return direct_seconds_of(static_cast<double>(largest), of_host) + ring_seconds(hosts, of_hosts);
}

double CostModel::seconds(ScheduleKind kind, std::size_t bytes) const {
  if (size_ < 2) return 0;
  const auto all = static_cast<double>(bytes);
  switch (kind) {
    case ScheduleKind::kRing:
      return ring_seconds(size_, round_of(all / size_, ring_));
    case ScheduleKind::kDirect:
      return direct_seconds(all / size_);
    case ScheduleKind::kHierarchical:
      return hierarchical_seconds(all);
    case ScheduleKind::kHalvingDoubling:
      return halving_doubling_seconds(all);
    case ScheduleKind::kDoubling:
      return doubling_seconds(all);
    case ScheduleKind::kBinomialTree:
      return binomial_seconds(all);
    case ScheduleKind::kTree:
      return tree_seconds(all / 2);
  }
  return 0;
}

ScheduleKind CostModel::cheapest(std::size_t bytes) const {
  const bool has_two_levels = ranks_of_hosts_.size() > 1 && std::ranges::max(ranks_of_hosts_) > 1;
  ScheduleKind best = ScheduleKind::kRing;
  double least = std::numeric_limits<double>::infinity();
  for (const ScheduleKind kind : kAllScheduleKinds) {
    if (kind == ScheduleKind::kHierarchical && !has_two_levels) continue;
    const double taken = seconds(kind, bytes);
    if (taken >= least) continue;
    best = kind;
    least = taken;
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
