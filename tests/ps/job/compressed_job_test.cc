// Whole jobs whose gradients and weights travel compressed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "common/codec/codec.h"
#include "tests/ps/job/codec_names.h"
#include "tests/ps/job/ps_job.h"
#include "tests/support/plain_gradient_compression.h"

namespace syncopate::ps {
namespace {

const PsGroup kGroup{.workers = 3, .servers = 2};
constexpr double kTarget = 0.25;

PsJobOptions job_options(const std::string& codec, const std::string& consistency) {
  return {.group = kGroup,
          .consistency = consistency,
          .wire = "shm",
          .chunk_bytes = 1024,
          .compression = compression_of(codec)};
}

// The padding between the tensors.
std::vector<Range> gaps() {
  std::vector<Range> gaps;
  const ParamLayout layout = small_layout();
  for (const Range& tensor : tensor_ranges(layout)) {
    gaps.push_back({tensor.end, (tensor.end + kAlignment - 1) / kAlignment * kAlignment});
  }
  return gaps;
}

// Descends to weights of kTarget, from where the distance is one, with the exact gradient of half its square.
void make_slope(std::span<const float> weights, std::span<float> gradient) {
  std::ranges::transform(weights, gradient.begin(), [](float w) { return w - static_cast<float>(kTarget); });
  for (const Range& gap : gaps()) std::ranges::fill(slice(gradient, gap), 0.0f);
}

double distance_to_target(std::span<const float> weights) {
  double squares = 0;
  for (const float weight : weights) squares += (weight - kTarget) * (weight - kTarget);
  return std::sqrt(squares / static_cast<double>(weights.size()));
}

// The worker's weights after each step, the last after it has left.
std::vector<std::vector<float>> descend(PsStrategy& strategy, int steps, double rate) {
  const ParamArenas arenas = *strategy.allocate(small_layout());
  fill_tensors(arenas.weights, static_cast<float>(kTarget + 1));
  std::vector<std::vector<float>> history;
  const Result<std::vector<Range>> buckets = strategy.join();
  EXPECT_TRUE(buckets.ok()) << buckets.status().message();
  const auto keep = [&] { history.emplace_back(arenas.weights.begin(), arenas.weights.end()); };
  for (int i = 0; i < steps; ++i) {
    EXPECT_TRUE(strategy.weights_needed({0, arenas.weights.size()}).ok());
    make_slope(arenas.weights, arenas.gradients);
    const Result<SyncStats> stats = step(strategy, i, buckets->size(), rate);
    EXPECT_TRUE(stats.ok()) << stats.status().message();
    keep();
  }
  EXPECT_TRUE(strategy.leave().ok());
  EXPECT_EQ(strategy.dropped(), 0);
  keep();
  return history;
}

using Histories = std::vector<std::vector<std::vector<float>>>;  // by worker
Histories run_descents(const PsJobOptions& options, int steps, double rate) {
  PsJob job(options);
  Histories histories(static_cast<std::size_t>(options.group.workers));
  job.run([&](int rank, PsStrategy& strategy) {
    histories[static_cast<std::size_t>(rank)] = descend(strategy, steps, rate);
  });
  EXPECT_EQ(job.total().dropped, 0);
  return histories;
}

class CompressedJob : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Codec, CompressedJob, all_codecs(), letters_of);

TEST_P(CompressedJob, DescendsUnderEveryConsistency) {
  for (const char* consistency : {"sync", "bounded:1", "softsync:1", "async"}) {
    const Histories histories = run_descents(job_options(GetParam(), consistency), 300, 0.01);
    for (const auto& history : histories) {
      EXPECT_LT(distance_to_target(history.back()), 0.2) << consistency;
      EXPECT_EQ(history.back(), histories[0].back()) << "the final weights are the same, and full";
    }
  }
}

TEST_P(CompressedJob, GivesAllWorkersTheSameWeightsInEachStepUnderSync) {
  const Histories histories = run_descents(job_options(GetParam(), "sync"), 10, 0.1);
  EXPECT_EQ(histories[1], histories[0]);
  EXPECT_EQ(histories[2], histories[0]);
}

TEST_P(CompressedJob, DescendsWithPipelinesAndOverlappedForwardPasses) {
  PsJobOptions ahead = job_options(GetParam(), "async");
  ahead.pipeline_depth = 2;
  PsJobOptions overlapped = job_options(GetParam(), "async");
  overlapped.overlap_forward = true;
  for (const PsJobOptions& options : {ahead, overlapped}) {
    for (const auto& history : run_descents(options, 300, 0.01)) EXPECT_LT(distance_to_target(history.back()), 0.3);
  }
}

TEST_P(CompressedJob, CountsTheBytesThatTravel) {
  for (const bool answers : {true, false}) {
    PsJobOptions options = job_options(GetParam(), "sync");
    options.compression.answers = answers;
    const Codec codec(options.compression.codec, tensor_ranges(small_layout()));
    PsJob job(options);
    job.run([&](int, PsStrategy& strategy) {
      ASSERT_TRUE(strategy.allocate(small_layout()).ok());
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok());
      std::size_t encoded = 0, full = 0;
      for (const Range& bucket : *buckets) {
        encoded += codec.encoded_size(bucket.size(), bucket.begin);
        full += sizeof(float) * bucket.size();
      }
      const Result<SyncStats> stats = step(strategy, 0, buckets->size(), 0.1);
      ASSERT_TRUE(stats.ok());
      EXPECT_EQ(stats->bytes_out, static_cast<std::int64_t>(encoded));
      EXPECT_EQ(stats->bytes_in, static_cast<std::int64_t>(answers ? encoded : full));
      EXPECT_GT(stats->codec, Duration::zero());
      EXPECT_TRUE(strategy.leave().ok());
    });
  }
}

// Worker 1 pushes bytes that are no encoding before what it should; headers are right.
TEST_P(CompressedJob, DropsAndCountsWildPushes) {
  constexpr int kWild = 200;
  PsJobOptions options = job_options(GetParam(), "sync");
  options.group = {.workers = 2};
  PsJob job(options);
  const Codec codec(options.compression.codec, tensor_ranges(small_layout()));
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok());
    if (rank == 1) {
      Random random(3);
      Transport& endpoint = job.endpoint(1);
      const std::span<std::byte> memory = *endpoint.allocate(4096);
      for (std::byte& byte : memory) byte = static_cast<std::byte>(random.next());
      wire::Header push;
      push.mutable_push()->set_clock(1);
      for (int i = 0; i < kWild;) {
        push.mutable_push()->set_chunk(random.below(buckets->size() + 1));
        const std::span<const std::byte> payload = memory.first(random.below(memory.size()));
        const auto is_length = [&](const Range& bucket) {
          return payload.size() == codec.encoded_size(bucket.size(), bucket.begin);
        };
        if (std::ranges::any_of(*buckets, is_length)) continue;
        PendingSends pending;
        ASSERT_TRUE(endpoint.send(2, push.SerializeAsString(), payload, &pending, testing_support::soon()).ok());
        ++i;
      }
    }
    fill_tensors(arenas.gradients, 1.0f);
    ASSERT_TRUE(step(strategy, 0, buckets->size(), 1.0).ok());
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.total().dropped, kWild);
}

// Worker 1 pushes each chunk twice: the second push, of another gradient, comes while the first waits for worker 0.
TEST(CompressedJobs, KeepAHeldGradientFromPushesThatCannotBeRight) {
  PsJobOptions options = job_options("fp16", "sync");
  options.group = {.workers = 2};
  PsJob job(options);
  std::promise<void> sent;
  std::shared_future<void> all_sent = sent.get_future().share();
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok());
    const Codec codec(options.compression.codec, tensor_ranges(small_layout()));
    fill_tensors(arenas.gradients, 1.0f);
    if (rank == 0) {
      all_sent.wait();
      ASSERT_TRUE(step(strategy, 0, buckets->size(), 1.0).ok());
    } else {
      strategy.begin_step({.learning_rate = 1.0});
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
      const std::span<std::byte> zeros = *job.endpoint(1).allocate(4096);
      PendingSends pending;
      for (std::size_t chunk = 0; chunk < buckets->size(); ++chunk) {
        const Range range = (*buckets)[buckets->size() - 1 - chunk];  // in the order of the arena
        wire::Header push;
        push.mutable_push()->set_chunk(chunk);
        push.mutable_push()->set_clock(2);
        ASSERT_TRUE(job.endpoint(1)
                        .send(2, push.SerializeAsString(), zeros.first(codec.encoded_size(range.size(), range.begin)),
                              &pending, testing_support::soon())
                        .ok());
      }
      ASSERT_TRUE(job.endpoint(1).wait(pending, testing_support::soon()).ok());
      sent.set_value();
      ASSERT_TRUE(strategy.finish_step().ok());
    }
    EXPECT_TRUE(strategy.leave().ok());
    std::vector<float> expected(arenas.weights.size());
    fill_tensors(expected, -1.0f);
    EXPECT_TRUE(std::ranges::equal(arenas.weights, expected));
  });
  EXPECT_GT(job.total().dropped, 0);
}

// Against plain vectors, bit by bit: velocities and residuals of workers, a warm-up, plain sgd of what arrives.
TEST(CompressedJobs, CorrectMomentumUnderSyncAsThePaperSays) {
  constexpr int kWorkers = 2, kSteps = 8, kStepsAnEpoch = 3;
  constexpr double kRate = 0.25;
  for (const CodecConfig& codec : testing_support::momentum_codecs()) {
    PsJobOptions options = job_options("none", "sync");
    options.group = {.workers = kWorkers, .servers = 2};
    options.compression = {.codec = codec, .answers = false};
    PsJob job(options);
    job.run([&](int rank, PsStrategy& strategy) {
      const ParamLayout layout = small_layout();
      const ParamArenas arenas = *strategy.allocate(layout);
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok());
      const auto expected = testing_support::plain_descent(codec, layout, *buckets, kWorkers, kSteps, kStepsAnEpoch,
                                                           static_cast<float>(kRate));
      for (int i = 0; i < kSteps; ++i) {
        testing_support::draw_small_integers(layout, rank, i, arenas.gradients);
        strategy.begin_step({.step = i, .learning_rate = kRate, .epoch = i / kStepsAnEpoch});
        for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
        ASSERT_TRUE(strategy.finish_step().ok());
        ASSERT_TRUE(std::ranges::equal(arenas.weights, expected[static_cast<std::size_t>(i)])) << i;
      }
      EXPECT_TRUE(strategy.leave().ok());
    });
    EXPECT_EQ(job.total().dropped, 0);
  }
}

TEST(CompressedJobs, WarmUpInBothDirectionsAndComeToTheTarget) {
  PsJobOptions options = job_options("topk:0.05", "async");
  options.compression.codec.warmup_epochs = 2;
  PsJob job(options);
  job.run([&](int, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(small_layout());
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok());
    std::vector<std::int64_t> out, in;
    for (int i = 0; i < 4; ++i) {
      make_slope(arenas.weights, arenas.gradients);
      strategy.begin_step({.step = i, .learning_rate = 0.01, .epoch = i});
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
      const Result<SyncStats> stats = strategy.finish_step();
      ASSERT_TRUE(stats.ok());
      out.push_back(stats->bytes_out);
      in.push_back(stats->bytes_in);
    }
    EXPECT_EQ(in, out);
    EXPECT_GT(out[0], 2 * out[1]);
    EXPECT_GT(out[1], 2 * out[2]);
    EXPECT_EQ(out[2], out[3]);
    EXPECT_TRUE(strategy.leave().ok());
  });
  EXPECT_EQ(job.total().dropped, 0);
}

TEST(CompressedJobs, AreWithoutACodecWhatTheyWere) {
  PsJobOptions none = job_options("none", "sync");
  PsJobOptions plain = none;
  plain.compression = {};
  EXPECT_EQ(run_descents(none, 5, 0.1), run_descents(plain, 5, 0.1));
}

}  // namespace
}  // namespace syncopate::ps
