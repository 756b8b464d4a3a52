#include "experiments/cluster/coordinator/stall_inspector.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::experiments {
namespace {

// "rank 2", "ranks 0 and 2", "ranks 0, 1 and 2"
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += i == 0 ? " " : i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

bool is_through(const CollectiveReport& report, std::int64_t number) {
  return report.begun > number || (report.begun == number && !report.under_way);
}

}  // namespace

StallInspector::StallInspector(int workers, const Options& options)
    : options_(options), workers_(static_cast<std::size_t>(workers)) {}

void StallInspector::on_heartbeat(int rank, const std::string& operation, std::int64_t step,
                                  const std::optional<CollectiveReport>& report, TimePoint now) {
  Worker& worker = workers_[static_cast<std::size_t>(rank)];
  worker.is_there = true;
  worker.heard = now;
  worker.operation = operation;
  worker.step = step;
  if (report) {
    worker.report = *report;
  } else {
    worker.report.under_way = false;
  }
}

bool StallInspector::waits(const Worker& worker, TimePoint now) const {
  return worker.report.under_way && now - *worker.heard <= 3 * options_.heartbeat;
}

std::optional<StallInspector::Stall> StallInspector::find(Duration at_least, TimePoint now) const {
  std::optional<Stall> first;
  bool is_long = false;
  for (const Worker& worker : workers_) {
    const CollectiveReport& report = worker.report;
    if (!waits(worker, now)) continue;
    const TimePoint since = *worker.heard - report.age;
    // A worker that has not waited for long is late itself. One that waits since the last stall may have been heard
    // before that ended.
    if (now - since < at_least / 2 || since < not_before_) continue;
    // Uses the age as reported, and not as it may have grown: the operation may have ended between two heartbeats.
    is_long |= report.age >= at_least;
    if (!first || report.begun < first->number) {
      first = Stall{report.begun, report.what, since};
    } else if (report.begun == first->number) {
      first->since = std::min(first->since, since);
    }
  }
  return is_long ? first : std::nullopt;
}

std::string StallInspector::describe(const Stall& stall, TimePoint now) const {
  std::vector<int> waiting;
  std::string missing, chain;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = workers_[i];
    const CollectiveReport& report = worker.report;
    // Some workers may have finished this one, and wait in the next.
    if (waits(worker, now) && report.begun >= stall.number) {
      waiting.push_back(static_cast<int>(i));
      if (report.waits_for >= 0) chain += fmt::format("; rank {} waits for rank {}", i, report.waits_for);
      continue;
    }
    if (!worker.is_there || is_through(report, stall.number)) continue;
    missing += missing.empty() ? "" : ", ";
    missing += worker.heard ? fmt::format("rank {} ({} at step {}, last heard {:.1f} s ago)", i, worker.operation,
                                          worker.step, seconds(now - *worker.heard))
                            : fmt::format("rank {} (not heard yet)", i);
  }
  std::string text = fmt::format("stalled for {:.1f} s: {}: {} wait{}", seconds(now - stall.since), stall.what,
                                 ranks_text(waiting), waiting.size() == 1 ? "s" : "");
  if (!missing.empty()) return text + "; missing: " + missing;
  return text + "; none is missing" + chain;
}

std::optional<std::string> StallInspector::stall(Duration at_least, TimePoint now) const {
  const std::optional<Stall> found = find(at_least, now);
  return found ? std::optional(describe(*found, now)) : std::nullopt;
}

bool StallInspector::has_gone_on(const Stall& stall, TimePoint now) const {
  const auto got_through = [&](const Worker& worker) { return is_through(worker.report, stall.number); };
  const auto waits_in_it = [&](const Worker& worker) {
    return worker.report.begun == stall.number && waits(worker, now);
  };
  return std::ranges::any_of(workers_, got_through) && std::ranges::none_of(workers_, waits_in_it);
}

std::vector<std::string> StallInspector::take_lines(TimePoint now) {
  std::vector<std::string> lines;
  if (options_.warning == Duration::zero()) return lines;
  if (shown_ && has_gone_on(*shown_, now)) {
    lines.push_back(fmt::format("went on after {:.1f} s: {}", seconds(now - shown_->since), shown_->what));
    not_before_ = shown_->since + options_.warning;
    shown_.reset();
  }
  if (shown_) return lines;
  shown_ = find(options_.warning, now);
  if (shown_) lines.push_back(describe(*shown_, now));
  return lines;
}

}  // namespace syncopate::experiments
