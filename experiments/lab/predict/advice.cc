#include "experiments/lab/predict/advice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"
#include "common/text/list_text.h"
#include "experiments/lab/predict/percent.h"
#include "experiments/lab/predict/plan_name.h"

namespace syncopate::experiments {
namespace {

using prediction::Family;
using prediction::kFamilies;

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

// The best synchronous way of each family that has one, the best first.
std::vector<const SimulatedWay*> leaders_of(const SimulatedSearch& search) {
  std::vector<const SimulatedWay*> leaders;
  for (const Family family : kFamilies) {
    if (const SimulatedWay* const one = search.synchronous(family)) leaders.push_back(one);
  }
  std::ranges::stable_sort(leaders, {}, &SimulatedWay::score);
  return leaders;
}

bool is_among(const std::vector<const SimulatedWay*>& leaders, const SimulatedWay& one) {
  return std::ranges::find(leaders, &one) != leaders.end();
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

// The leaders were named before.
std::string own_hosts_sentence(const Advised& advised, const std::vector<const SimulatedWay*>& leaders) {
  const SimulatedWay* const own = best_on_own_hosts(advised.search, *leaders.front());
  if (own == nullptr) return "";
  const std::string figure = is_among(leaders, *own) ? "" : ", " + advised.figure(*own);
  return fmt::format(" Without hosts more, on the workers' {}, the best is {}{}.", advised.network.hosts(),
                     advised.name(*own), figure);
}

std::string best_sentence(const Advised& advised, const std::vector<const SimulatedWay*>& leaders) {
  const SimulatedWay& best = *leaders.front();
  std::string text = fmt::format("{} among {}: {}, {}{}.", advised.is_cheapest() ? "Cheapest" : "Fastest",
                                 advised.search.left > 0 ? "the synchronous ways that ran" : "synchronous ways",
                                 advised.name(best), advised.figure(best), with_more_hosts(best));
  for (const SimulatedWay* other : leaders) {
    if (other == &best) continue;
    text += fmt::format(" The best of {}: {}, {}, ", name_of(other->family()), advised.name(*other),
                        advised.figure(*other));
    text += is_ahead(best, *other) ? percent(other->score / best.score - 1) + " more."
                                   : fmt::format("a difference below {}, which is none.", percent(kLeastLead));
  }
  text += own_hosts_sentence(advised, leaders);
  std::vector<std::string> alike;
  for (const SimulatedWay& one : advised.search.ways) {
    if (!one.is_synchronous() || is_among(leaders, one) || is_ahead(best, one)) continue;
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

// What does not fit stands in a sentence each.
void add_memory(const Advised& advised, const prediction::SearchResult& found, std::vector<std::string>& sentences) {
  const AdviseRequest& request = advised.request;
  const std::string limit = fmt::format(
      "{} of a worker's host, which has to hold weights, gradients and {}'s state (activations{} come on top)",
      request.memory, request.optimizer, request.job.own_model ? "" : ", which no profile knows,");
  const std::size_t count = found.too_large.size();
  sentences.push_back(count == 0 ? fmt::format("Nothing is left out for the {}.", limit)
                                 : fmt::format("Left out for the {}: {} kind{}.", limit, count, count == 1 ? "" : "s"));
  for (const prediction::TooLarge& large : found.too_large) {
    sentences.push_back(fmt::format("Does not fit: {}, which needs {} at the least.",
                                    kind_name(large.way, advised.network.hosts()), format_bytes(large.bytes)));
  }
}

// Which families have no way that fits.
void add_too_large(const prediction::SearchResult& found, std::vector<std::string>& sentences) {
  const auto is_of = [](Family family) {
    return [family](const auto& one) { return !one.way.asynchronous && one.way.family() == family; };
  };
  if (std::ranges::all_of(found.best, [](const auto& one) { return one.way.asynchronous; })) {
    sentences.emplace_back("No synchronous way fits into memory.");
    return;
  }
  if (std::ranges::all_of(found.best, [&](const auto& one) {
        return one.way.asynchronous || one.way.family() >= Family::kPipelines;
      })) {
    sentences.emplace_back("Of synchronous ways, those alone fit into memory that divide the model among workers.");
  }
  for (const Family family : kFamilies) {
    if (std::ranges::none_of(found.best, is_of(family)) && std::ranges::any_of(found.too_large, is_of(family))) {
      sentences.push_back(fmt::format("Nothing of {} fits into memory.", name_of(family)));
    }
  }
}

// Which kinds of ways are not searched, and why.
std::string not_searched(const ScaledJob& job) {
  if (job.own_model) {
    return "stages whose layers are in parts, stages at servers, and --mode=hybrid and --exchange=auto, which are for "
           "row-sparse tables";
  }
  return "pipelines and parts of layers, since a profile knows no activations (--model=gpt:4-8-256 and others that can "
         "be trained here know them), and --mode=hybrid and --exchange=auto, since it has no row-sparse tables";
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
  const std::vector<const SimulatedWay*> leaders = leaders_of(search);
  std::vector<std::string> sentences;
  if (!leaders.empty()) {
    sentences.push_back(best_sentence(advised, leaders));
  } else if (!search.refused.empty()) {
    sentences.emplace_back("No synchronous way ran; below stands why.");
  }
  add_too_large(found, sentences);
  if (const SimulatedWay* asynchronous = search.asynchronous()) {
    sentences.push_back(asynchronous_sentence(advised, *asynchronous));
  }
  for (const SimulatedWay& one : search.ways) {
    if (!one.addition.name.empty()) sentences.push_back(addition_sentence(advised, one));
  }
  if (request.memory_bytes) add_memory(advised, found, sentences);
  add_not_simulated(advised, sentences);
  return sentences;
}

std::string lead_in(int workers, const SimulatedSearch& search) {
  const std::vector<const SimulatedWay*> leaders = leaders_of(search);
  if (leaders.empty()) return fmt::format("{}: none fits", workers);
  const SimulatedWay& best = *leaders.front();
  std::vector<std::string> ahead;
  const SimulatedWay* next = nullptr;  // the best of those behind
  for (const SimulatedWay* one : leaders) {
    if (!is_ahead(best, *one)) {
      ahead.emplace_back(name_of(one->family()));
    } else if (next == nullptr) {
      next = one;
    }
  }
  if (leaders.size() == 1) return fmt::format("{}: {} alone", workers, ahead.front());
  if (next == nullptr) return fmt::format("{}: none", workers);
  const SimulatedWay* const own = best_on_own_hosts(search, best);
  return fmt::format("{}: {} by {}{}{}", workers, list_text(ahead, "and"), percent(next->score / best.score - 1),
                     with_more_hosts(best),
                     own == nullptr ? "" : fmt::format(" (without: {})", name_of(own->family())));
}

std::vector<std::string> how_sure(const ScaledJob& job) {
  return {
      fmt::format(
          "How sure: these are runs in virtual time, and the same at every call: each command above says what its row "
          "says. They are of this project's own strategies, over links that are shared by --network=frames; processes "
          "of "
          "one host share {} (--inside). Steps are equally long, and sums, updates, codecs, loss of packets and other "
          "traffic take "
          "no time. A lead is claimed from {} on. docs/simulated_cluster.md says how far such steps are from real "
          "ones.",
          job.inside.describe("inside it"), percent(kLeastLead)),
      fmt::format("Not searched: {}.", not_searched(job))};
}

}  // namespace syncopate::experiments
