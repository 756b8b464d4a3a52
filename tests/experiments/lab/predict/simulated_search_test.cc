#include "experiments/lab/predict/simulated_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/divided_ways.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/predict/simulated_step.h"

namespace syncopate::experiments {
namespace {

using prediction::Candidate;
using prediction::Exchange;
using prediction::Family;
using prediction::Way;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;

// Carries runs out in this process.
class Runs {
 public:
  JobRunner runner() {
    return [this](const ResolvedRun& config) {
      Console quiet(true);
      return run_job(config, Survey(), solo_, interrupts_, quiet);
    };
  }

 private:
  SoloTimes solo_;
  Interrupts interrupts_;
};

AdviseRequest drawn_request(std::mt19937& random) {
  const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
  const std::string names[] = {"resnet18", "resnet50", "torchvision-inception3"};
  const char* rates[] = {"1gbit+50us", "3gbit+50us", "10gbit+20us", "25gbit+50us", "40gbit+5us"};
  const int workers[] = {2, 3, 4, 6};
  AdviseRequest request;
  request.job.profile_name = one_of(names);
  request.job.profile = *prediction::built_in_profile(request.job.profile_name);
  request.job.workers = {one_of(workers)};
  request.job.workers_per_host = random() % 3 == 0 ? 2 : 1;
  request.job.batch_size = 32;
  request.job.step_seconds = static_cast<double>(50 + random() % 200) / 1000;
  request.job.link = *LinkShape::parse(one_of(rates));
  request.shardings = {prediction::Sharding::kEven, prediction::Sharding::kWhole};
  request.bucket_bytes = {5e6, 25e6};
  request.search_events = 1'000'000'000;
  return request;
}

std::string text_of(const AdviseRequest& request) {
  return fmt::format("{}, {} workers, {} a host, {}, {} s", request.job.profile_name, request.job.workers.front(),
                     request.job.workers_per_host, request.job.link.to_string(), request.job.step_seconds);
}

// A job of a model that can be trained here, whose layers may be divided.
AdviseRequest drawn_request_with_layers(std::mt19937& random) {
  const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
  const std::vector<std::string> models[] = {
      {"--model=mlp:784-128-128-128-128-128-10"}, {"--model=gpt:2-2-16", "--context=16"}, {"--model=conv:4-16"}};
  const char* rates[] = {"100mbit+50us", "1gbit+50us", "10gbit+20us", "100gbit+2us"};
  const int workers[] = {2, 3, 4};
  std::vector<std::string> words = one_of(models);
  words.insert(words.end(), {fmt::format("--workers={}", one_of(workers)), "--batch-size=8",
                             fmt::format("--compute={}ms", 5 + random() % 50), fmt::format("--shape={}", one_of(rates)),
                             "--bucket-sizes=100kB,5MB", "--sharding=even", "--search-events=1000000000"});
  const Result<AdviseRequest> request = parse_advise_request(words);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return *request;
}

Result<prediction::SearchResult> forms_of(const AdviseRequest& request) {
  const int workers = request.job.workers.front();
  return search(request.advised_job(), request.job.network(workers), request.space(workers),
                divided_ways(request, workers).ways);
}

// The samples a second of a command, run as a person would.
double rate_of(const std::vector<std::string>& words, const JobRunner& run) {
  const Result<RunRequest> request = run_of(words);
  EXPECT_TRUE(request.ok()) << request.status().message();
  const Result<JobResult> result = simulated_run(*request, run);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result->reports.front().window->samples_per_second;
}

// What a form has at the least may be `rounding` more than what the simulation has.
void expect_order_of_simulation(int settings, AdviseRequest (*draw)(std::mt19937&), double rounding) {
  Runs runs;
  const JobRunner run = runs.runner();
  std::mt19937 random(5 + static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
  for (int setting = 0; setting < settings; ++setting) {
    const AdviseRequest request = draw(random);
    SCOPED_TRACE(text_of(request));
    const int workers = request.job.workers.front();
    const auto forms = forms_of(request);
    ASSERT_TRUE(forms.ok());
    const Result<SimulatedSearch> found = simulate_ways(request, workers, *forms, run);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_EQ(found->left, 0);
    ASSERT_GE(found->ways.size(), 2u);
    // Where a lead is claimed, the commands of both have it, too.
    const SimulatedWay& best = found->ways.front();
    const double best_rate = rate_of(best.words, run);
    EXPECT_DOUBLE_EQ(best_rate, best.samples_per_second);
    const SimulatedWay& other = found->ways[1 + random() % (found->ways.size() - 1)];
    const double other_rate = rate_of(other.words, run);
    EXPECT_DOUBLE_EQ(other_rate, other.samples_per_second);
    EXPECT_GE(best_rate, other_rate);
    // No way that was not simulated, since it cannot win, does.
    std::vector<Candidate> all = forms->best;
    all.insert(all.end(), forms->others.begin(), forms->others.end());
    double fastest = 0;
    for (const Family family : prediction::kFamilies) {
      if (const SimulatedWay* const one = found->synchronous(family))
        fastest = std::max(fastest, one->samples_per_second);
    }
    int left_out = 0;
    for (const Candidate& candidate : all) {
      const std::vector<std::string> words = words_of(request.job, workers, candidate.way);
      const bool has_run =
          std::ranges::any_of(found->ways, [&](const SimulatedWay& way) { return way.words == words; });
      left_out += has_run ? 0 : 1;
      if (candidate.way.asynchronous || has_run) continue;
      const double rate = rate_of(words, run);
      EXPECT_LE(rate, fastest * (1 + rounding)) << command_of(words);
      EXPECT_GE(request.job.batch_size / rate, candidate.least * (1 - rounding)) << command_of(words);
    }
    EXPECT_EQ(left_out, found->beaten);
  }
}

// What is drawn has the same seed at every call. For a hundred settings: --gtest_shuffle --gtest_random_seed=1
// --gtest_repeat=20, each of which draws others.
TEST(SimulatedSearch, HasTheOrderOfTheSimulationAndLosesNoWinner) {
  expect_order_of_simulation(5, drawn_request, 1e-9);
}

// Each pass of a microbatch through a tensor is a whole number of nanoseconds.
TEST(SimulatedSearch, HasTheOrderOfTheSimulationOfDividedModels) {
  expect_order_of_simulation(2, drawn_request_with_layers, 1e-4);
}

// The form chooses what is simulated first.
TEST(SimulatedSearch, SimulatesDividedModelsAsTheirFormsSay) {
  constexpr double kOfForm = 0.1;
  Runs runs;
  std::mt19937 random(7);
  int divided = 0;
  for (int setting = 0; setting < 3; ++setting) {
    AdviseRequest request = drawn_request_with_layers(random);
    request.search_events = 1;
    SCOPED_TRACE(text_of(request));
    const int workers = request.job.workers.front();
    for (const prediction::FormedWay& one : divided_ways(request, workers).ways) {
      const double step =
          workers * request.job.batch_size / rate_of(words_of(request.job, workers, one.way), runs.runner());
      EXPECT_NEAR(one.prediction.step / step, 1, kOfForm) << way_name(one.way, {}, workers);
      ++divided;
    }
  }
  EXPECT_GT(divided, 10);
}

AdviseRequest resnet_request(int workers, int workers_per_host) {
  std::mt19937 random(1);
  AdviseRequest request = drawn_request(random);
  request.job.profile_name = "resnet50";
  request.job.profile = *prediction::built_in_profile("resnet50");
  request.job.workers = {workers};
  request.job.workers_per_host = workers_per_host;
  request.job.step_seconds = 0.1;
  request.job.link = *LinkShape::parse("10gbit+50us");
  request.bucket_bytes = {25e6};
  request.shardings = {prediction::Sharding::kEven};
  return request;
}

TEST(SimulatedSearch, TriesWhatTheBestOfBothModesCouldHaveBeside) {
  Runs runs;
  const AdviseRequest request = resnet_request(4, 2);
  const Result<SimulatedSearch> found = simulate_ways(request, 4, *forms_of(request), runs.runner());
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_TRUE(found->refused.empty());
  const auto count_with = [&](const std::string& addition) {
    return std::ranges::count_if(found->ways,
                                 [&](const SimulatedWay& one) { return one.addition.name.starts_with(addition); });
  };
  EXPECT_EQ(count_with("weights averaged"), 1);
  EXPECT_EQ(count_with("int8"), 2);
  const auto on_own_hosts = [](const SimulatedWay& one) {
    return one.way.plan.exchange == Exchange::kServers && !one.way.plan.colocated;
  };
  EXPECT_TRUE(std::ranges::any_of(found->ways, on_own_hosts)) << "beside hosts with several workers, too";
}

// A ring inside one host needs no network.
TEST(SimulatedSearch, ChargesNoLinkForWhatStaysOnAHost) {
  Runs runs;
  const AdviseRequest request = resnet_request(4, 4);
  const Result<SimulatedSearch> found = simulate_ways(request, 4, *forms_of(request), runs.runner());
  ASSERT_TRUE(found.ok()) << found.status().message();
  ASSERT_NE(found->synchronous(Family::kAllreduce), nullptr);
  EXPECT_LT(found->synchronous(Family::kAllreduce)->step, 1.05 * request.job.step_seconds);
  for (const Candidate& candidate : forms_of(request)->best) {
    if (candidate.way.plan.exchange == Exchange::kServers) continue;
    EXPECT_LT(candidate.prediction.step, 1.05 * request.job.step_seconds) << "the form's";
  }
}

TEST(SimulatedSearch, EndsAtItsEventsWithOneWayOfEachModeAndPlace) {
  Runs runs;
  AdviseRequest request = resnet_request(4, 1);
  request.search_events = 1;
  const Result<SimulatedSearch> found = simulate_ways(request, 4, *forms_of(request), runs.runner());
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->ways.size(), 4u);
  EXPECT_NE(found->synchronous(Family::kAllreduce), nullptr);
  EXPECT_NE(found->synchronous(Family::kSharded), nullptr);
  EXPECT_NE(found->synchronous(Family::kServers), nullptr);
  EXPECT_GT(found->left, 0);
}

}  // namespace
}  // namespace syncopate::experiments
