#include "experiments/lab/predict/simulated_search.h"

#include <algorithm>
#include <cmath>

#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/simulated_step.h"

namespace syncopate::experiments {
namespace {

using prediction::Candidate;
using prediction::Family;
using prediction::Way;

// What runs have beside their exchange. Those that the simulated cluster refuses say so.
const std::vector<Addition>& additions_of(const Way& way) {
  static const std::vector<Addition> of_allreduce = {
      {.name = "weights averaged every 8 steps", .words = {"--sync-every=8"}, .period = 8},
      {.name = "int8 gradients", .words = {"--compress=int8"}}};
  static const std::vector<Addition> of_servers = {{.name = "int8 gradients", .words = {"--compress=int8"}}};
  return way.family() == Family::kServers ? of_servers : of_allreduce;
}

class Tries {
 public:
  Tries(const AdviseRequest& request, int workers, const JobRunner& run)
      : request_(request), job_(request.advised_job()), workers_(workers), run_(run) {}

  Status of(const Candidate& candidate) {
    if (has_like(candidate.way) && is_beaten(candidate)) {
      ++search_.beaten;
      return {};
    }
    return simulate(candidate.way, candidate.host_bytes, {});
  }

  // Tries what the best ways of both modes could have besides.
  Status of_additions() {
    for (const Family family : {Family::kAllreduce, Family::kServers}) {
      const SimulatedWay* const base = search_.synchronous(family);
      if (base == nullptr) continue;
      Way way = base->way;
      const double base_bytes = base->host_bytes;  // a run moves `base`
      way.plan.aggregated = false;                 // codecs are of each worker's own pushes
      for (const Addition& addition : additions_of(way)) {
        SYNCOPATE_RETURN_IF_ERROR(simulate(way, base_bytes, addition));
      }
    }
    return {};
  }

  SimulatedSearch take() { return std::move(search_); }

 private:
  // Whether a way by the same mode, with servers in the same places, has run.
  bool has_like(const Way& way) const {
    return way.asynchronous || std::ranges::any_of(search_.ways, [&](const SimulatedWay& other) {
             return other.family() == way.family() && other.way.plan.colocated == way.plan.colocated;
           });
  }

  bool is_beaten(const Candidate& candidate) const {
    return std::ranges::any_of(search_.ways, [&](const SimulatedWay& other) {
      return other.way.asynchronous == candidate.way.asynchronous && other.addition.name.empty() &&
             other.score <= candidate.least;
    });
  }

  // A model that can be trained here is trained, whose time is counted as that of so many events.
  std::int64_t events_of_computing(const RunRequest& run) const {
    constexpr double kFlopsOfAnEvent = 2e4, kPasses = 3;
    if (!request_.job.own_model) return 0;
    const double samples = static_cast<double>(run.steps.value_or(0)) * workers_ * request_.job.batch_size;
    return std::llround(kPasses * request_.job.profile.forward_flops() * samples / kFlopsOfAnEvent);
  }

  Status simulate(const Way& way, double host_bytes, const Addition& addition) {
    SimulatedWay one{.way = way,
                     .addition = addition,
                     .words = words_of(request_.job, workers_, way, addition),
                     .host_bytes = host_bytes};
    const Result<RunRequest> asked = run_of(one.words);
    if (!asked.ok()) {
      const int hosts = request_.job.network(workers_).hosts();
      search_.refused.push_back({way_name(way, addition, hosts), asked.status().message()});
      return {};
    }
    if (events_ >= request_.search_events && has_like(way)) {
      ++search_.left;
      return {};
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const JobResult result, simulated_run(*asked, run_));
    events_ += result.facts.simulation->events + events_of_computing(*asked);
    const RunReport& report = result.reports.front();
    one.samples_per_second = report.window ? report.window->samples_per_second : report.samples_per_second.value_or(0);
    if (one.samples_per_second <= 0) return Status::internal("a simulated run made no step");
    one.step = static_cast<double>(workers_) * request_.job.batch_size / one.samples_per_second;
    one.staleness = way.asynchronous ? report.staleness_mean : 0;
    one.score = prediction::score(job_, request_.job.network(workers_), way, one.step);
    search_.ways.insert(std::ranges::upper_bound(search_.ways, one.score, {}, &SimulatedWay::score), std::move(one));
    return {};
  }

  const AdviseRequest& request_;
  const prediction::AdvisedJob job_;
  const int workers_;
  const JobRunner& run_;
  std::int64_t events_ = 0;  // of all runs
  SimulatedSearch search_;
};

const SimulatedWay* first_where(const std::vector<SimulatedWay>& ways, const auto& condition) {
  const auto found = std::ranges::find_if(ways, condition);
  return found == ways.end() ? nullptr : &*found;
}

}  // namespace

const SimulatedWay* SimulatedSearch::synchronous(Family family) const {
  return first_where(ways, [&](const SimulatedWay& one) { return one.is_synchronous() && one.family() == family; });
}

const SimulatedWay* SimulatedSearch::asynchronous() const {
  return first_where(ways, [](const SimulatedWay& one) { return one.way.asynchronous; });
}

Result<SimulatedSearch> simulate_ways(const AdviseRequest& request, int workers, const prediction::SearchResult& found,
                                      const JobRunner& run) {
  Tries tries(request, workers, run);
  for (const bool asynchronous : {false, true}) {
    for (const Candidate& candidate : found.best) {
      if (candidate.way.asynchronous == asynchronous) SYNCOPATE_RETURN_IF_ERROR(tries.of(candidate));
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(tries.of_additions());
  for (const Candidate& candidate : found.others) SYNCOPATE_RETURN_IF_ERROR(tries.of(candidate));
  return tries.take();
}

}  // namespace syncopate::experiments
