#include "experiments/lab/predict/advice.h"

#include <fmt/ranges.h>

#include <algorithm>

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
  std::string name(const SimulatedWay& one) const { return way_name(one.way, one.addition.name, network.hosts()); }
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

std::string best_sentence(const Advised& advised, const SimulatedWay& best, const SimulatedWay* other) {
  std::string text = fmt::format("{} among {}: {}, {}.", advised.is_cheapest() ? "Cheapest" : "Fastest",
                                 advised.search.left > 0 ? "the synchronous ways that ran" : "synchronous ways",
                                 advised.name(best), advised.figure(best));
  if (other != nullptr) {
    const char* mode = other->way.plan.exchange == Exchange::kServers ? "servers" : "allreduce";
    text += fmt::format(" The best of {}: {}, {}, ", mode, advised.name(*other), advised.figure(*other));
    text += is_ahead(best, *other) ? percent(other->score / best.score - 1) + " more."
                                   : fmt::format("a difference below {}, which is none.", percent(kLeastLead));
  }
  std::vector<std::string> alike;
  for (const SimulatedWay& one : advised.search.ways) {
    if (!one.is_synchronous() || &one == &best || &one == other || is_ahead(best, one)) continue;
    alike.push_back(advised.name(one));
  }
  if (!alike.empty()) text += fmt::format(" Alike: {}.", fmt::join(alike, "; "));
  return text;
}

std::string asynchronous_sentence(const Advised& advised, const SimulatedWay& one, const SimulatedWay* best) {
  std::string text = fmt::format("Asynchronous workers reach {} samples/s ({})", format_count(one.samples_per_second),
                                 advised.name(one));
  if (best != nullptr) {
    text += fmt::format(", {:.2f} times as many as the best synchronous way",
                        one.samples_per_second / best->samples_per_second);
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
    names.push_back(fmt::format("{} ({} at the least)", plan_name(large.way.plan, advised.network.hosts()),
                                format_bytes(large.bytes)));
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
  const SimulatedWay* const allreduce = search.synchronous(false);
  const SimulatedWay* const servers = search.synchronous(true);
  const SimulatedWay* best = allreduce != nullptr ? allreduce : servers;
  if (servers != nullptr && servers->score < best->score) best = servers;
  const auto is_found = [&](bool of_servers) {
    return std::ranges::any_of(found.best, [&](const prediction::Candidate& candidate) {
      return !candidate.way.asynchronous && (candidate.way.plan.exchange == Exchange::kServers) == of_servers;
    });
  };
  std::vector<std::string> sentences;
  if (best != nullptr) sentences.push_back(best_sentence(advised, *best, best == allreduce ? servers : allreduce));
  if (!is_found(false) && !is_found(true)) {
    sentences.emplace_back("No synchronous way fits into memory.");
  } else {
    if (!is_found(false)) sentences.emplace_back("Nothing of allreduce fits into memory.");
    if (!is_found(true)) sentences.emplace_back("Nothing of servers fits into memory.");
  }
  if (const SimulatedWay* asynchronous = search.asynchronous()) {
    sentences.push_back(asynchronous_sentence(advised, *asynchronous, best));
  }
  for (const SimulatedWay& one : search.ways) {
    if (!one.addition.name.empty()) sentences.push_back(addition_sentence(advised, one));
  }
  if (request.memory_bytes) sentences.push_back(memory_sentence(advised, found));
  add_not_simulated(advised, sentences);
  return sentences;
}

std::string lead_in(int workers, const SimulatedSearch& search) {
  const SimulatedWay* const allreduce = search.synchronous(false);
  const SimulatedWay* const servers = search.synchronous(true);
  if (allreduce == nullptr || servers == nullptr) {
    return fmt::format("{}: {}", workers,
                       allreduce != nullptr ? "allreduce alone"
                       : servers != nullptr ? "servers alone"
                                            : "none fits");
  }
  const bool is_allreduce = allreduce->score <= servers->score;
  const SimulatedWay& best = is_allreduce ? *allreduce : *servers;
  const SimulatedWay& other = is_allreduce ? *servers : *allreduce;
  if (!is_ahead(best, other)) return fmt::format("{}: neither", workers);
  return fmt::format("{}: {} by {}", workers, is_allreduce ? "allreduce" : "servers",
                     percent(other.score / best.score - 1));
}

std::string how_sure(const ScaledJob& job) {
  return fmt::format(
      "How sure: these are runs in virtual time, and the same at every call: each command above says what its row "
      "says. They are of this project's own strategies, over links that are shared by --network=frames; processes of "
      "one host share {} (--inside). Steps are equally long, and sums, updates, loss of packets and other traffic take "
      "no time. A lead is claimed from {} on. docs/simulated_cluster.md says how far such steps are from real ones.\n",
      job.inside.describe("inside it"), percent(kLeastLead));
}

}  // namespace syncopate::experiments
