#include "experiments/lab/predict/advice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

#include "common/text/format.h"
#include "common/text/list_text.h"
#include "experiments/lab/predict/percent.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/stretch_text.h"
#include "prediction/advice/contest.h"

namespace syncopate::experiments {
namespace {

using prediction::Candidate;
using prediction::Contest;
using prediction::Errors;
using prediction::Exchange;
using prediction::Lead;
using prediction::Stretch;
using prediction::ValidatedError;

// What the sentences about one size need.
struct Advised {
  const AdviseRequest& request;
  const prediction::AdvisedJob& job;
  prediction::Network network;
  const prediction::SearchResult& result;
  const KnownErrors& errors;

  bool is_cheapest() const { return job.goal == prediction::Goal::kCheapest; }
  std::string name(const Candidate& candidate) const { return way_name(candidate.way, network.hosts()); }
  // As in "292 ms a step" or "5.53 for a million samples".
  std::string figure(const Candidate& candidate) const {
    if (!is_cheapest()) return format_ms(candidate.prediction.step * 1e3) + " ms a step";
    return cost_text(request.job, network.workers, candidate.way.plan, candidate.prediction.step) +
           " for a million samples";
  }
};

const ValidatedError& error_of(const Candidate& candidate, const KnownErrors& errors) {
  return candidate.way.plan.exchange == Exchange::kServers ? errors.servers : errors.allreduce;
}

Lead lead_of(const Candidate& first, const Candidate& second, const KnownErrors& errors,
             double ValidatedError::*error) {
  return prediction::lead({first.score, second.score},
                          {error_of(first, errors).*error, error_of(second, errors).*error});
}

// How the best of the other mode compares with the best of all.
std::string against_other_mode(const Advised& advised, const Candidate& best, const Candidate& other) {
  const char* mode = other.way.plan.exchange == Exchange::kServers ? "servers" : "allreduce";
  const std::string more = fmt::format("The best of {}: {}, {}, {} more", mode, advised.name(other),
                                       advised.figure(other), percent(other.score / best.score - 1));
  if (lead_of(best, other, advised.errors, &ValidatedError::median) != Lead::kFirst) {
    return more + ": no difference that this form could tell.";
  }
  if (lead_of(best, other, advised.errors, &ValidatedError::worst) != Lead::kFirst) {
    return more + ": a difference beyond the median errors of the forms, but within their worst.";
  }
  return more + ": a difference beyond the worst errors of the forms.";
}

// Names the best synchronous way, how the other mode's best compares, and what cannot be told from it.
std::string best_sentence(const Advised& advised, const Candidate& best, const Candidate* other) {
  std::string text = fmt::format("{} among synchronous ways: {}, {}.", advised.is_cheapest() ? "Cheapest" : "Fastest",
                                 advised.name(best), advised.figure(best));
  if (other != nullptr) text += " " + against_other_mode(advised, best, *other);
  std::vector<std::string> alike;
  for (const Candidate& candidate : advised.result.best) {
    if (candidate.way.asynchronous || &candidate == &best || &candidate == other) continue;
    if (lead_of(best, candidate, advised.errors, &ValidatedError::median) == Lead::kNeither) {
      alike.push_back(advised.name(candidate));
    }
  }
  if (!alike.empty()) text += fmt::format(" Not to be told from it either: {}.", fmt::join(alike, "; "));
  return text;
}

std::string rate_text(double bits_per_second) {
  return bits_per_second < 1e9 ? fmt::format("{:.3g} Mb/s", bits_per_second / 1e6)
                               : fmt::format("{:.3g} Gb/s", bits_per_second / 1e9);
}

// Where the lead changes from one way to the other; between them both may be equal.
std::vector<double> crossings_of(const std::vector<Stretch>& stretches) {
  std::vector<double> crossings;
  Lead before = Lead::kNeither;
  for (const Stretch& stretch : stretches) {
    if (stretch.lead == Lead::kNeither) continue;
    if (before != Lead::kNeither && stretch.lead != before) crossings.push_back(stretch.from);
    before = stretch.lead;
  }
  return crossings;
}

// What would change the answer between the two modes.
class Turns {
 public:
  explicit Turns(const Advised& advised)
      : advised_(advised),
        contest_(advised.job, advised.network,
                 [&request = advised.request](int workers) { return request.space(workers); },
                 {advised.errors.allreduce.median, advised.errors.servers.median}) {}

  std::string over_links() const {
    constexpr double kSlowest = 1e6, kFastest = 1e12;  // bits a second
    const LinkShape& link = advised_.request.job.link;
    const double bits_per_byte = static_cast<double>(link.bits_per_second) / link.payload_bytes_per_second();
    const auto shown = [&](double rate) { return rate_text(rate * bits_per_byte); };
    const std::vector<Stretch> told = contest_.over_links(kSlowest / bits_per_byte, kFastest / bits_per_byte);
    std::string text = fmt::format("Links of 1 Mb/s to 1 Tb/s: {}.", stretch_text(told, kLeads, shown));
    const Errors& errors = contest_.errors();
    if (told.size() > 1 && told.back().lead == Lead::kNeither) {
      const double least = std::max((1 + errors.first) / (1 - errors.second), (1 + errors.second) / (1 - errors.first));
      text +=
          fmt::format(" With {} or faster they differ by less than {}.", shown(told.back().from), percent(least - 1));
    }
    std::vector<std::string> crossings;
    for (const double rate :
         crossings_of(contest_.without_errors().over_links(kSlowest / bits_per_byte, kFastest / bits_per_byte))) {
      crossings.push_back(shown(rate));
    }
    return text + crossing_text(crossings);
  }

  std::string over_workers() const {
    // The same number, as often doubled: between powers of two halving-doubling loses.
    int most = advised_.network.workers;
    while (most < kUsualMost) most *= 2;
    return fmt::format("1 to {} workers, in doublings: {}.", format_count(most),
                       whole_stretch_text(contest_.over_workers(most), kLeads)) +
           crossing_text(numbers(crossings_of(contest_.without_errors().over_workers(most))));
  }

  std::string over_servers() const {
    const int most = std::max(kUsualMost, advised_.network.workers);
    return fmt::format("1 to {} servers on hosts of their own: {}.", format_count(most),
                       whole_stretch_text(contest_.over_servers(most), kLeads)) +
           crossing_text(numbers(crossings_of(contest_.without_errors().over_servers(most))));
  }

 private:
  static constexpr int kUsualMost = 256;
  static inline const LeadNames kLeads = {"allreduce leads", "servers lead"};

  static std::vector<std::string> numbers(const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(format_count(value));
    return texts;
  }

  static std::string crossing_text(const std::vector<std::string>& crossings) {
    constexpr std::size_t kMostCrossings = 4;
    if (crossings.empty() || crossings.size() > kMostCrossings) return "";
    return fmt::format(" The forms themselves cross at {}.", list_text(crossings, "and"));
  }

  const Advised& advised_;
  Contest contest_;
};

std::string asynchronous_sentence(const Advised& advised, const Candidate& asynchronous, const Candidate* best) {
  const ScaledJob& job = advised.request.job;
  std::string text =
      fmt::format("Asynchronous workers reach at most {} samples/s ({})",
                  format_count(job.samples_per_second(advised.network.workers, asynchronous.prediction.step)),
                  plan_name(asynchronous.way.plan, advised.network.hosts()));
  if (best != nullptr) {
    const double ratio = best->prediction.step / asynchronous.prediction.step;
    text += fmt::format(", {:.2f} times as many as the best synchronous way", ratio);
  }
  return text +
         ". That is a bound, which no table here has been held against; and gradients are stale, so that a sample may "
         "teach less.";
}

std::string memory_sentence(const Advised& advised) {
  const AdviseRequest& request = advised.request;
  const std::string limit = fmt::format(
      "{} of a worker's host, which has to hold weights, gradients and {}'s state (activations, which no "
      "profile knows, come on top)",
      request.memory, request.optimizer);
  if (advised.result.too_large.empty()) return fmt::format("Nothing is left out for the {}.", limit);
  std::vector<std::string> names;
  for (const prediction::TooLarge& large : advised.result.too_large) {
    names.push_back(fmt::format("{} ({} at the least)", plan_name(large.way.plan, advised.network.hosts()),
                                format_bytes(large.bytes)));
  }
  return fmt::format("Left out for the {}: {}.", limit, fmt::join(names, "; "));
}

ValidatedError validated(Exchange exchange) {
  const std::optional<ValidatedError> error = prediction::validated_error(exchange);
  assert(error.has_value());
  return error.value_or(ValidatedError());
}

std::string errors_text(const char* form, const ValidatedError& error) {
  return fmt::format("{}: median error up to {} a table, worst {} ({})", form, percent(error.median),
                     percent(error.worst), fmt::join(error.tables, ", "));
}

}  // namespace

KnownErrors known_errors() { return {validated(Exchange::kRing), validated(Exchange::kServers)}; }

std::vector<std::string> advice(const AdviseRequest& request, const prediction::AdvisedJob& job, int workers,
                                const prediction::SearchResult& result, const KnownErrors& errors) {
  if (workers == 1) return {"One worker has nobody to agree with: there is nothing to choose."};
  const Advised advised{request, job, request.job.network(workers), result, errors};
  const Candidate* const allreduce = result.allreduce();
  const Candidate* const servers = result.servers();
  const Candidate* best = allreduce != nullptr ? allreduce : servers;
  if (servers != nullptr && servers->score < best->score) best = servers;
  std::vector<std::string> sentences;
  if (best != nullptr) sentences.push_back(best_sentence(advised, *best, best == allreduce ? servers : allreduce));
  if (best == nullptr) sentences.emplace_back("No synchronous way fits into memory.");
  if (best != nullptr && (allreduce == nullptr || servers == nullptr)) {
    sentences.push_back(fmt::format("Nothing of {} fits into memory.", allreduce == nullptr ? "allreduce" : "servers"));
  }
  if (allreduce != nullptr && servers != nullptr) {
    const Turns turns(advised);
    sentences.push_back(
        fmt::format("What would change that, each mode with its best choice, all else equal:\n  - {}\n  - {}\n  - {}",
                    turns.over_links(), turns.over_workers(), turns.over_servers()));
  }
  if (const Candidate* asynchronous = result.asynchronous()) {
    sentences.push_back(asynchronous_sentence(advised, *asynchronous, best));
  }
  if (request.memory_bytes) sentences.push_back(memory_sentence(advised));
  return sentences;
}

std::string how_sure(const KnownErrors& errors) {
  return fmt::format(
      "How sure: against published measurements ({}; {}). Tree and halving-doubling are in no table: the ring's errors "
      "are taken for them. No difference within the median errors is claimed. Those tables took a link's rate from "
      "some of their cells; where software does not reach the rate of --shape, steps that exchange much are slower "
      "than "
      "predicted. `run_experiment reproduce all` shows each cell.\n",
      errors_text("allreduce", errors.allreduce), errors_text("servers", errors.servers));
}

std::string way_name(const prediction::Way& way, int hosts) {
  std::string name = plan_name(way.plan, hosts);
  if (way.plan.exchange != Exchange::kServers) {
    return way.plan.bucket_bytes > 0 ? fmt::format("{}, buckets of {:g} MB", name, way.plan.bucket_bytes / 1e6)
                                     : name + ", a tensor at a time";
  }
  return way.asynchronous ? "asynchronous, at best: " + name : name;
}

}  // namespace syncopate::experiments
