#include "experiments/lab/predict/advise_request.h"

#include <algorithm>

#include "allreduce/strategy/sharded_strategy.h"
#include "common/text/list_text.h"
#include "experiments/config/commands.h"
#include "experiments/config/given_values.h"
#include "experiments/config/optimizer_choice.h"
#include "experiments/lab/predict/own_model.h"

namespace syncopate::experiments {
namespace {

Result<std::vector<prediction::Sharding>> shardings_in(const std::string& text) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> parts, parts_in("sharding", text));
  std::vector<prediction::Sharding> shardings;
  for (const std::string& part : parts) {
    SYNCOPATE_ASSIGN_OR_RETURN(const prediction::Sharding sharding, read_sharding(part));
    shardings.push_back(sharding);
  }
  return shardings;
}

Result<std::vector<double>> buckets_in(const std::string& text) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> parts, parts_in("bucket-sizes", text));
  std::vector<double> buckets;
  for (const std::string& part : parts) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double bytes, bytes_in("bucket-sizes", part, 0, kMostBucketBytes,
                                                            std::string(kBucketRange) + ", or a list of such"));
    buckets.push_back(bytes);
  }
  return buckets;
}

Result<prediction::Goal> goal_in(const std::string& text, const std::optional<prediction::HostPrices>& prices) {
  if (text == "fastest") return prediction::Goal::kFastest;
  if (text != "cheapest") return Status::invalid_argument(fmt::format("--goal={}: must be fastest or cheapest", text));
  if (prices && prices->worker > 0) return prediction::Goal::kCheapest;
  return Status::invalid_argument("--goal=cheapest: needs --price-worker above 0, and --price-server");
}

Result<OptimizerKind> optimizer_in(const std::string& text) {
  std::vector<std::string> names;
  for (const OptimizerTraits& traits : kOptimizers) {
    if (text == traits.name) return traits.kind;
    names.emplace_back(traits.name);
  }
  return Status::invalid_argument(fmt::format("--optimizer={}: must be {}", text, list_text(names, "or")));
}

// A model that can be trained here goes by its own tensors; of a profile's there is nothing more to say.
Result<ScaledJob> job_in(GivenOptions& given) {
  if (names_own_model(given)) {
    SYNCOPATE_ASSIGN_OR_RETURN(OwnModel own, take_own_model(given));
    own.words.push_back("--optimizer=" + given.at("optimizer"));
    SYNCOPATE_ASSIGN_OR_RETURN(ScaledJob job,
                               read_scaled_job(given, {.profile_name = own.name, .profile = std::move(own.profile)}));
    job.own_model = {.words = std::move(own.words), .has_generated_data = own.has_generated_data};
    return job;
  }
  for (const char* const name : kOfModels) {
    if (name == std::string_view("model") || !given.contains(name)) continue;
    return Status::invalid_argument(fmt::format(
        "--{}={}: is of a model that can be trained here, as --model=gpt:4-8-256; a profile has its tensors already; "
        "leave it out",
        name, given.at(name)));
  }
  return read_scaled_job(given);
}

}  // namespace

prediction::AdvisedJob AdviseRequest::advised_job() const {
  return {.profile = job.profile,
          .compute = job.step_seconds,
          .prices = job.prices.value_or(prediction::HostPrices()),
          .goal = goal,
          .state_floats = state_floats,
          .memory_bytes = memory_bytes};
}

prediction::SearchSpace AdviseRequest::space(int workers) const {
  prediction::SearchSpace space{.servers = servers, .shardings = shardings, .bucket_bytes = bucket_bytes};
  space.sharded = shards_state;
  space.buckets_ahead = allreduce::kBucketsAhead;
  if (!space.servers.empty()) return space;
  for (int count = 1; count < workers; count *= 2) space.servers.push_back(count);
  space.servers.push_back(workers);
  return space;
}

Result<AdviseRequest> parse_advise_request(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(GivenOptions given, job_words("advise", words));
  given.insert(
      {{"sharding", "even,whole"}, {"bucket-sizes", "1MB,5MB,25MB,100MB"}, {"optimizer", "adam"}, {"goal", "fastest"}});
  AdviseRequest request;
  SYNCOPATE_ASSIGN_OR_RETURN(request.job, job_in(given));
  if (given.contains("output")) request.output = given["output"];
  if (given.contains("servers")) {
    SYNCOPATE_ASSIGN_OR_RETURN(request.servers, counts_in("servers", given["servers"], 1, kMostPredictedWorkers));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(request.shardings, shardings_in(given["sharding"]));
  SYNCOPATE_ASSIGN_OR_RETURN(request.bucket_bytes, buckets_in(given["bucket-sizes"]));
  if (const auto memory = given.find("memory"); memory != given.end()) {
    request.memory = memory->second;
    SYNCOPATE_ASSIGN_OR_RETURN(request.memory_bytes,
                               bytes_in("memory", memory->second, 1e6, 1e15, "1MB to 1000000GB, as 16GiB or 64GB"));
  }
  request.optimizer = given["optimizer"];
  SYNCOPATE_ASSIGN_OR_RETURN(const OptimizerKind optimizer, optimizer_in(request.optimizer));
  request.state_floats = static_cast<int>(state_floats({.kind = optimizer}));
  request.shards_state = !is_layerwise(optimizer);
  if (const auto events = given.find("search-events"); events != given.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(request.search_events,
                               number_in<std::int64_t>("search-events", events->second, 1, 1'000'000'000'000, ""));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(request.goal, goal_in(given["goal"], request.job.prices));
  return request;
}

}  // namespace syncopate::experiments
