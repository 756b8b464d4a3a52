#include "experiments/lab/predict/advice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"
#include "experiments/lab/predict/percent.h"
#include "experiments/lab/predict/plan_name.h"

namespace syncopate::experiments {
namespace {

using prediction::Exchange;

// What the sentences about one size need.
struct Advised {
  const AdviseRequest& request;
  prediction::Network network;
  const SimulatedSearch& search;

  bool is_cheapest() const { return request.goal == prediction::Goal::kCheapest; }
  std::string name(const SimulatedWay& one) const { return way_name(one.way, one.addition, network.hosts()); }
  // As in "292 ms a step" or "5.53 for a million samples".
  std::string figure(const SimulatedWay& one) const {
    if (!is_cheapest()) return format_ms(one.step * 1e3) + " ms a step";
    return cost_text(request.job, network.workers, one.way.plan, one.step) + " for a million samples";
  }
};

// `other` is not better than `best`.
bool is_ahead(const SimulatedWay& best, const SimulatedWay& other) {
  return other.score > best.score * (1 + kLeastLead);
}

// The best synchronous way, and the best one of the other mode; null if there is none.
struct Leaders {
  const SimulatedWay* best = nullptr;
  const SimulatedWay* other = nullptr;
};

Leaders leaders_of(const SimulatedSearch& search) {
  const SimulatedWay* const allreduce = search.synchronous(false);
  const SimulatedWay* const servers = search.synchronous(true);
  const bool servers_lead = servers != nullptr && (allreduce == nullptr || servers->score < allreduce->score);
  return servers_lead ? Leaders{servers, allreduce} : Leaders{allreduce, servers};
}

// Returns " with 8 hosts more", where servers have hosts of their own.
std::string with_more_hosts(const SimulatedWay& one) {
  const int more = server_hosts(one.way.plan);
  return more == 0 ? "" : fmt::format(" with {} host{} more", more, more == 1 ? "" : "s");
}

// The best synchronous way without hosts beside those with workers; null if there is none, or `best` has none.
const SimulatedWay* best_on_own_hosts(const SimulatedSearch& search, const SimulatedWay& best) {
  if (server_hosts(best.way.plan) == 0) return nullptr;
  const auto own = std::ranges::find_if(
      search.ways, [](const SimulatedWay& one) { return one.is_synchronous() && server_hosts(one.way.plan) == 0; });
  return own == search.ways.end() ? nullptr : &*own;
}

// `other` was named before.
std::string own_hosts_sentence(const Advised& advised, const SimulatedWay& best, const SimulatedWay* other) {
  const SimulatedWay* const own = best_on_own_hosts(advised.search, best);
  if (own == nullptr) return "";
  const std::string figure = own == other ? "" : ", " + advised.figure(*own);
  return fmt::format(" Without hosts more, on the workers' {}, the best is {}{}.", advised.network.hosts(),
                     advised.name(*own), figure);
}

std::string best_sentence(const Advised& advised, const SimulatedWay& best, const SimulatedWay* other) {
  std::string text = fmt::format("{} among {}: {}, {}{}.", advised.is_cheapest() ? "Cheapest" : "Fastest",
                                 advised.search.left > 0 ? "the synchronous ways that ran" : "synchronous ways",
                                 advised.name(best), advised.figure(best), with_more_hosts(best));
  if (other != nullptr) {
    const char* mode = other->has_servers() ? "servers" : "allreduce";
    text += fmt::format(" The best of {}: {}, {}, ", mode, advised.name(*other), advised.figure(*other));
    text += is_ahead(best, *other) ? percent(other->score / best.score - 1) + " more."
                                   : fmt::format("a difference below {}, which is none.", percent(kLeastLead));
  }
  text += own_hosts_sentence(advised, best, other);
  std::vector<std::string> alike;
  for (const SimulatedWay& one : advised.search.ways) {
    if (!one.is_synchronous() || &one == &best || &one == other || is_ahead(best, one)) continue;
    alike.push_back(advised.name(one));
  }
  if (!alike.empty()) text += fmt::format(" Alike: {}.", fmt::join(alike, "; "));
  return text;
}

std::string asynchronous_sentence(const Advised& advised, const SimulatedWay& one) {
  double fastest = 0;  // of those that wait for each other, which need not be the cheapest
  for (const SimulatedWay& other : advised.search.ways) {
    if (other.is_synchronous()) fastest = std::max(fastest, other.samples_per_second);
  }
  std::string text = fmt::format("Asynchronous workers reach {} samples/s ({})", format_count(one.samples_per_second),
                                 advised.name(one));
  if (fastest > 0) {
    const double ratio = one.samples_per_second / fastest;
    text += std::abs(ratio - 1) < kLeastLead
                ? ", as many as the fastest synchronous way within 1 %"
                : fmt::format(", {:.2f} times as many as the fastest synchronous way", ratio);
  }
  return text + fmt::format(
                    ". Their gradients are {:.1f} updates old in the mean, so that a sample may teach less; all steps "
                    "are equally long here, and uneven ones are what asynchronous workers are spared.",
                    one.staleness);
}

// A way that has something beside its exchange is told apart.
std::string addition_sentence(const Advised& advised, const SimulatedWay& one) {
  return fmt::format("Not like the synchronous ways, a sample may teach less: {}, {}.", advised.name(one),
                     advised.figure(one));
}

std::string memory_sentence(const Advised& advised, const prediction::SearchResult& found) {
  const AdviseRequest& request = advised.request;
  const std::string limit = fmt::format(
      "{} of a worker's host, which has to hold weights, gradients and {}'s state (activations, which no "
      "profile knows, come on top)",
      request.memory, request.optimizer);
  if (found.too_large.empty()) return fmt::format("Nothing is left out for the {}.", limit);
  std::vector<std::string> names;
  for (const prediction::TooLarge& large : found.too_large) {
    names.push_back(fmt::format("{}{} ({} at the least)", large.way.asynchronous ? "asynchronous: " : "",
                                plan_name(large.way.plan, advised.network.hosts()), format_bytes(large.bytes)));
  }
  return fmt::format("Left out for the {}: {}.", limit, fmt::join(names, "; "));
}

// Which ways there is no figure of.
void add_not_simulated(const Advised& advised, std::vector<std::string>& sentences) {
  const SimulatedSearch& search = advised.search;
  if (search.beaten > 0) {
    sentences.push_back(fmt::format(
        "Not simulated: {} more that cannot win, since the bytes over the busiest link, or computing alone, "
        "take them as long as a way above.",
        search.beaten));
  }
  if (search.left > 0) {
    sentences.push_back(
        fmt::format("Not simulated within --search-events={}: {} more, of which nothing is claimed; more events have "
                    "them, too.",
                    advised.request.search_events, search.left));
  }
  for (const RefusedWay& refused : search.refused) {
    sentences.push_back(fmt::format("Not simulated: {}: {}.", refused.name, refused.why));
  }
}

}  // namespace

std::vector<std::string> advice(const AdviseRequest& request, int workers, const prediction::SearchResult& found,
                                const SimulatedSearch& search) {
  if (workers == 1) return {"One worker has nobody to agree with: there is nothing to choose."};
  const Advised advised{request, request.job.network(workers), search};
  const auto [best, other] = leaders_of(search);
  const auto is_found = [&](bool of_servers) {
    return std::ranges::any_of(found.best, [&](const prediction::Candidate& candidate) {
      return !candidate.way.asynchronous && (candidate.way.plan.exchange == Exchange::kServers) == of_servers;
    });
  };
  std::vector<std::string> sentences;
  if (best != nullptr) sentences.push_back(best_sentence(advised, *best, other));
  if (!is_found(false) && !is_found(true)) {
    sentences.emplace_back("No synchronous way fits into memory.");
  } else {
    if (!is_found(false)) sentences.emplace_back("Nothing of allreduce fits into memory.");
    if (!is_found(true)) sentences.emplace_back("Nothing of servers fits into memory.");
  }
  if (const SimulatedWay* asynchronous = search.asynchronous()) {
    sentences.push_back(asynchronous_sentence(advised, *asynchronous));
  }
  for (const SimulatedWay& one : search.ways) {
    if (!one.addition.name.empty()) sentences.push_back(addition_sentence(advised, one));
  }
  if (request.memory_bytes) sentences.push_back(memory_sentence(advised, found));
  add_not_simulated(advised, sentences);
  return sentences;
}

std::string lead_in(int workers, const SimulatedSearch& search) {
  const auto [best, other] = leaders_of(search);
  if (best == nullptr) return fmt::format("{}: none fits", workers);
  const char* mode = best->has_servers() ? "servers" : "allreduce";
  if (other == nullptr) return fmt::format("{}: {} alone", workers, mode);
  if (!is_ahead(*best, *other)) return fmt::format("{}: neither", workers);
  const SimulatedWay* const own = best_on_own_hosts(search, *best);
  return fmt::format("{}: {} by {}{}{}", workers, mode, percent(other->score / best->score - 1), with_more_hosts(*best),
                     own == nullptr ? "" : fmt::format(" (without: {})", own->has_servers() ? "servers" : "allreduce"));
}

std::string how_sure(const ScaledJob& job) {
  return fmt::format(
      "How sure: these are runs in virtual time, and the same at every call: each command above says what its row "
      "says. They are of this project's own strategies, over links that are shared by --network=frames; processes of "
      "one host share {} (--inside). Steps are equally long, and sums, updates, codecs, loss of packets and other "
      "traffic take "
      "no time. A lead is claimed from {} on. docs/simulated_cluster.md says how far such steps are from real ones.\n",
      job.inside.describe("inside it"), percent(kLeastLead));
}

}  // namespace syncopate::experiments
