#include "experiments/config/fault_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <utility>

#include "common/hash.h"
#include "common/random.h"
#include "experiments/config/fault_text.h"

namespace syncopate::experiments {
namespace {

constexpr FaultKind kKinds[] = {FaultKind::kKill,      FaultKind::kStop,    FaultKind::kCut, FaultKind::kDelay,
                                FaultKind::kDuplicate, FaultKind::kReorder, FaultKind::kNan};
constexpr std::uint64_t kMostDrawn = 3;
constexpr std::string_view kAny = ":any";

int count_of(const FaultScene& scene, FaultRole role) {
  switch (role) {
    case FaultRole::kWorker:
      return scene.workers;
    case FaultRole::kServer:
      return scene.servers;
    case FaultRole::kStandby:
      return scene.standbys;
    case FaultRole::kEvaluator:
      return 1;
  }
  return 0;
}

// Returns "workers 0 to 3", "worker 0 alone" or "no servers".
std::string those_there(FaultRole role, int count) {
  if (count == 0) return fmt::format("there are no {}s", name_of(role));
  if (count == 1) return fmt::format("there is {} 0 alone", name_of(role));
  return fmt::format("there are {}s 0 to {}", name_of(role), count - 1);
}

Status check_fault(const Fault& fault, const FaultScene& scene) {
  const int count = count_of(scene, fault.target.role);
  if (fault.target.role == FaultRole::kServer && !scene.no_servers.empty()) {
    return Status::invalid_argument(scene.no_servers);
  }
  if (count == 0 || fault.target.rank.value_or(0) >= count)
    return Status::invalid_argument(those_there(fault.target.role, count));
  if (fault.step && scene.total_steps > 0 && *fault.step >= scene.total_steps) {
    return Status::invalid_argument(fmt::format("a worker's steps are 0 to {}", scene.total_steps - 1));
  }
  if (fault.kind == FaultKind::kNan && fault.target.role != FaultRole::kWorker) {
    return Status::invalid_argument("workers alone compute gradients, as in nan:worker0@step50");
  }
  if (fault.kind == FaultKind::kNan && !fault.step) {
    return Status::invalid_argument("a gradient is of a step; name it, as in nan:worker0@step50");
  }
  if (fault.kind == FaultKind::kNan && !scene.no_gradients.empty()) {
    return Status::invalid_argument("there is no gradient to spoil: " + scene.no_gradients);
  }
  if (!link_fault_of(fault.kind)) return {};
  if (fault.target.role == FaultRole::kEvaluator) {
    return Status::invalid_argument("the evaluator has no data links; it can be killed or stopped");
  }
  return scene.no_links.empty() ? Status()
                                : Status::invalid_argument("there are no links to impair: " + scene.no_links);
}

int drawn_rank(Random& random, int count) { return static_cast<int>(random.below(static_cast<std::uint64_t>(count))); }

// Draws any process that trains or serves, with equal probability. The evaluator is not among them.
FaultTarget draw_target(Random& random, const FaultScene& scene) {
  std::vector<FaultTarget> targets;
  for (const FaultRole role : {FaultRole::kWorker, FaultRole::kServer, FaultRole::kStandby}) {
    for (int rank = 0; rank < count_of(scene, role); ++rank) targets.push_back({role, rank});
  }
  return targets[random.below(targets.size())];
}

// Draws a fault in the middle four fifths of the run. Stops and cuts last from a twentieth of the timeout to nearly all
// of it: the run waits for the end of some, while others look like a silence or end a wait.
Fault draw_fault(Random& random, const FaultScene& scene) {
  Fault fault;
  fault.target = draw_target(random, scene);
  fault.kind = kKinds[random.below(scene.no_links.empty() ? 3 : 2)];  // a kill, a stop or a cut
  fault.step = scene.total_steps / 10 +
               static_cast<std::int64_t>(random.uniform() * 0.8 * static_cast<double>(scene.total_steps));
  // Whole milliseconds, as they are written.
  const double milliseconds = seconds(scene.timeout) * 1e3 * random.uniform(0.05, 0.9);
  if (fault.kind != FaultKind::kKill) {
    fault.length = std::chrono::milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(milliseconds)));
  }
  return fault;
}

// A silence of half of the timeout counts as a failure, and three faults may directly follow each other.
constexpr double kLongestOutlasted = 0.15;

// Returns whether the run goes on without `target`, once those of `killed` are lost.
bool may_lose(const FaultTarget& target, const std::vector<FaultTarget>& killed, const FaultScene& scene) {
  if (target.role == FaultRole::kWorker) {
    return std::ranges::count(killed, FaultRole::kWorker, &FaultTarget::role) < scene.workers_to_spare;
  }
  const auto holds_the_same = [&](const FaultTarget& other) {
    return other.role != FaultRole::kWorker && other.rank == target.rank;
  };
  return scene.spares_servers && std::ranges::none_of(killed, holds_the_same);
}

// Changes `fault` into one that the run survives. `killed` are those that earlier faults have killed.
Fault outlasted(Fault fault, std::vector<FaultTarget>& killed, Random& random, const FaultScene& scene) {
  if (fault.kind == FaultKind::kKill) {
    if (std::ranges::find(killed, fault.target) == killed.end() && may_lose(fault.target, killed, scene)) {
      killed.push_back(fault.target);
      return fault;
    }
    fault.kind = scene.no_links.empty() && random.below(2) == 0 ? FaultKind::kCut : FaultKind::kStop;
  }
  const double milliseconds = seconds(scene.timeout) * 1e3 * random.uniform(0.05, kLongestOutlasted);
  fault.length = std::chrono::milliseconds(std::max<std::int64_t>(1, static_cast<std::int64_t>(milliseconds)));
  return fault;
}

std::uint64_t stream_of(std::string_view what, std::uint64_t number) {
  Fnv stream;
  stream.add(what);
  stream.add(number);
  return stream.value();
}

std::vector<Fault> draw_faults(std::uint64_t seed, bool any, const FaultScene& scene) {
  Random random(seed, stream_of("random faults", 0));
  Random changes(seed, stream_of("outlasted faults", 0));  // so that both forms draw the same targets and times
  std::vector<Fault> faults;
  std::vector<FaultTarget> killed;
  const std::uint64_t count = 1 + random.below(kMostDrawn);
  for (std::uint64_t k = 0; k < count; ++k) {
    const Fault fault = draw_fault(random, scene);
    faults.push_back(any ? fault : outlasted(fault, killed, changes, scene));
  }
  return faults;
}

}  // namespace

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
      return "kill";
    case FaultKind::kStop:
      return "stop";
    case FaultKind::kCut:
      return "cut";
    case FaultKind::kDelay:
      return "delay";
    case FaultKind::kDuplicate:
      return "duplicate";
    case FaultKind::kReorder:
      return "reorder";
    case FaultKind::kNan:
      return "nan";
  }
  return "";
}

std::optional<LinkFault> link_fault_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::kKill:
    case FaultKind::kStop:
    case FaultKind::kNan:
      return std::nullopt;
    case FaultKind::kCut:
      return LinkFault::kCut;
    case FaultKind::kDelay:
      return LinkFault::kDelay;
    case FaultKind::kDuplicate:
      return LinkFault::kDuplicate;
    case FaultKind::kReorder:
      return LinkFault::kReorder;
  }
  return std::nullopt;
}

const char* name_of(FaultRole role) {
  switch (role) {
    case FaultRole::kWorker:
      return "worker";
    case FaultRole::kServer:
      return "server";
    case FaultRole::kStandby:
      return "standby";
    case FaultRole::kEvaluator:
      return "evaluator";
  }
  return "";
}

std::string FaultTarget::name() const {
  if (role == FaultRole::kEvaluator) return name_of(role);
  return rank ? fmt::format("{} {}", name_of(role), *rank) : fmt::format("any {}", name_of(role));
}

std::string Fault::to_string() const {
  std::string text = fmt::format("{}:{}@", name_of(kind), fault_target_text(target));
  text += step ? fmt::format("step{}", *step) : fault_time_text(time);
  return lasts(kind) ? text + "+" + fault_time_text(length) : text;
}

std::string FaultSchedule::Entry::to_string() const {
  switch (kind) {
    case Kind::kFault:
      return fault.to_string();
    case Kind::kRandom:
      return fmt::format("random:{}{}", seed, any ? kAny : "");
    case Kind::kChurn:
      return "churn:" + fault_time_text(mean);
  }
  return {};
}

Result<FaultSchedule::Entry> FaultSchedule::parse_entry(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  Entry entry;
  if (kind == "random") {
    entry.kind = Entry::Kind::kRandom;
    entry.any = rest.ends_with(kAny);
    const std::string_view number = rest.substr(0, rest.size() - (entry.any ? kAny.size() : 0));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), entry.seed);
    if (error == std::errc() && end == number.data() + number.size() && !number.empty()) return entry;
    return Status::invalid_argument(
        fmt::format("'{}' must be a whole number from 0, as in random:7, and :any behind it if the run may "
                    "end by them",
                    rest));
  }
  if (kind == "churn") {
    entry.kind = Entry::Kind::kChurn;
    SYNCOPATE_ASSIGN_OR_RETURN(entry.mean, parse_fault_time(rest));
    return entry;
  }
  const auto* const known = std::ranges::find(kKinds, kind, [](FaultKind k) { return std::string_view(name_of(k)); });
  if (known == std::end(kKinds))
    return Status::invalid_argument(
        "must begin with kill:, stop:, cut:, delay:, duplicate:, reorder:, nan:, random: or churn:");
  SYNCOPATE_ASSIGN_OR_RETURN(entry.fault, parse_fault(*known, rest));
  return entry;
}

Result<FaultSchedule> FaultSchedule::parse(std::string_view text) {
  FaultSchedule schedule;
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    Result<Entry> entry = parse_entry(item);
    if (!entry.ok()) return entry.status().in(fmt::format("'{}'", item));
    schedule.entries_.push_back(*entry);
    begin = end + 1;
  }
  return schedule;
}

std::string FaultSchedule::to_string() const {
  std::string text;
  for (const Entry& entry : entries_) text += (text.empty() ? "" : ",") + entry.to_string();
  return text;
}

bool FaultSchedule::may(LinkFault fault) const {
  return std::ranges::any_of(entries_, [&](const Entry& entry) {
    if (entry.kind == Entry::Kind::kRandom) return fault == LinkFault::kCut;
    return entry.kind == Entry::Kind::kFault && link_fault_of(entry.fault.kind) == fault;
  });
}

Status FaultSchedule::check(const FaultScene& scene) const {
  for (const Entry& entry : entries_) {
    if (entry.kind == Entry::Kind::kChurn && scene.workers < 2) {
      return Status::invalid_argument(
                 "needs two workers or more, since it never takes the last; there is worker 0 alone")
          .in(entry.to_string());
    }
    if (entry.kind != Entry::Kind::kFault) continue;
    SYNCOPATE_RETURN_IF_ERROR(check_fault(entry.fault, scene).in(entry.to_string()));
  }
  return {};
}

DrawnFaults FaultSchedule::draw(std::uint64_t seed, const FaultScene& scene) const {
  assert(scene.total_steps > 0);
  DrawnFaults drawn;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.kind == Entry::Kind::kChurn) {
      drawn.churns.push_back(entry.mean);
    } else if (entry.kind == Entry::Kind::kRandom) {
      const std::vector<Fault> faults = draw_faults(entry.seed, entry.any, scene);
      drawn.faults.insert(drawn.faults.end(), faults.begin(), faults.end());
    } else {
      Random random(seed, stream_of("any target", i));
      drawn.faults.push_back(entry.fault);
      FaultTarget& target = drawn.faults.back().target;
      if (!target.rank) target.rank = drawn_rank(random, count_of(scene, target.role));
    }
  }
  return drawn;
}

}  // namespace syncopate::experiments
