#include "experiments/cluster/simulated/phantom.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "common/codec/codec.h"

namespace syncopate::experiments {
namespace {

using prediction::ModelProfile;

ModelProfile resnet50() { return *prediction::built_in_profile("resnet50"); }

ResolvedRun ring_of(int workers, std::int64_t bucket_bytes) {
  ResolvedRun config;
  config.mode = Mode::kAllreduce;
  config.workers = workers;
  config.bucket_bytes = bucket_bytes;
  return config;
}

TEST(APhantom, HasAsManyBytesAsTheModelAtEveryScale) {
  const ModelProfile profile = resnet50();
  for (const std::int64_t scale : {1, 2, 16, 64}) {
    const Phantom phantom = make_phantom(profile, scale);
    std::int64_t elements = 0;
    for (const TensorSpec& tensor : phantom.layout.tensors()) {
      EXPECT_EQ(tensor.range.size() % kAlignment, 0u) << tensor.name << " would be padded";
      elements += static_cast<std::int64_t>(tensor.range.size());
    }
    EXPECT_EQ(static_cast<std::size_t>(elements), phantom.layout.size());
    EXPECT_LE(std::abs(elements * scale - profile.parameters()), scale * static_cast<std::int64_t>(kAlignment));
  }
}

TEST(APhantom, TakesTheTimeOfTheStepAThirdOfItForward) {
  const Phantom phantom = make_phantom(resnet50(), 64);
  const ComputeTimes times = phantom_times(resnet50(), std::chrono::milliseconds(90), 64);
  EXPECT_EQ(times.forward.size(), phantom.layout.tensors().size());
  EXPECT_EQ(times.backward.size(), phantom.layout.tensors().size());
  EXPECT_NEAR(seconds(times.forward_pass()), 0.030, 1e-6);
  EXPECT_NEAR(seconds(times.step()), 0.090, 1e-6);
}

TEST(APhantom, GivesATensorItsPartByItsFlops) {
  const ModelProfile profile = *prediction::read_profile(
      R"({"model": "two", "source": "a test", "input": [1], "other_forward_flops": 0, "tensors": [
        {"name": "first", "shape": [1600], "forward_flops": 3},
        {"name": "second", "shape": [3200], "forward_flops": 1}]})");
  const ComputeTimes times = phantom_times(profile, std::chrono::milliseconds(12), 1);
  EXPECT_THAT(times.forward, testing::ElementsAre(std::chrono::milliseconds(3), std::chrono::milliseconds(1)));
  EXPECT_THAT(times.backward, testing::ElementsAre(std::chrono::milliseconds(6), std::chrono::milliseconds(2)));
}

TEST(APhantom, IsOneUnitWhereTheWholeModelIsSmaller) {
  const ModelProfile profile = *prediction::read_profile(
      R"({"model": "tiny", "source": "a test", "input": [1], "other_forward_flops": 0, "tensors": [
        {"name": "weight", "shape": [3], "forward_flops": 3}, {"name": "bias", "shape": [1], "forward_flops": 0}]})");
  EXPECT_EQ(make_phantom(profile, 64).layout.size(), kAlignment);
}

// Parts of a bucket are whole cache lines: 1 KiB cannot become 16 bytes.
TEST(TheScale, KeepsTheSizeOfPieces) {
  EXPECT_EQ(scale_for(resnet50(), ring_of(8, 100 << 20)), 64);
  EXPECT_EQ(scale_for(resnet50(), ring_of(1024, 1 << 20)), 1);
  const std::int64_t between = scale_for(resnet50(), ring_of(64, 1 << 20));
  EXPECT_GT(between, 1);
  EXPECT_LT(between, 64);
}

// A chunk of int8 has a scale; what the last bits of top-k and of sign have is rounded up for each piece. Buckets are
// not quite of the size that is asked for.
TEST(TheScale, KeepsWhatCodecsMakeOfPieces) {
  for (const int workers : {8, 64, 256}) {
    ResolvedRun config = ring_of(workers, 25 << 20);
    for (const std::string codec : {"fp16", "int8", "topk:0.01", "randomk:0.1", "sign"}) {
      config.compress = *parse_codec(codec);
      const std::int64_t scale = scale_for(resnet50(), config);
      const auto encoded_piece = [&](std::int64_t at) {
        const Codec of_all(codec_of(config), tensor_ranges(make_phantom(resnet50(), at).layout));
        const auto elements = static_cast<std::size_t>((25 << 20) / 4 / workers / at);
        return static_cast<double>(at) * static_cast<double>(of_all.encoded_size(elements));
      };
      EXPECT_NEAR(encoded_piece(scale) / encoded_piece(1), 1, 0.03)
          << codec << " of " << workers << " at scale " << scale;
      EXPECT_GE(scale, workers <= 8 ? 2 : 1) << codec;
    }
  }
}

// Small tensors become one with their neighbours at a larger scale, which moves those behind them to other shards.
TEST(TheScale, KeepsWhatTheLargestShardOfWholeTensorsHas) {
  for (const std::string name : {"vgg16", "resnet50", "inception3"}) {
    const ModelProfile profile = *prediction::built_in_profile(name);
    ParamLayout layout;
    for (const prediction::TensorProfile& tensor : profile.tensors) layout.add(tensor.name, tensor.shape);
    for (const ps::ShardingPolicy policy : {ps::ShardingPolicy::kTensor, ps::ShardingPolicy::kWhole}) {
      for (const int servers : {2, 4, 8}) {
        ResolvedRun config;
        config.mode = Mode::kPs;
        config.servers = servers;
        config.sharding = policy;
        const std::int64_t scale = scale_for(profile, config);
        const Phantom phantom = make_phantom(profile, scale);
        const auto largest = [&](const ParamLayout& of) {
          return static_cast<double>(
              std::ranges::max(ps::loads_of(ps::shard_map(of, shards_of(config), sharding_of(config))).bytes));
        };
        EXPECT_NEAR(static_cast<double>(scale) * largest(phantom.layout) / largest(layout), 1, 0.02)
            << name << ", " << name_of(policy) << " over " << servers << " servers at scale " << scale;
      }
    }
  }
}

TEST(TheScale, IsOneWhereBucketsAreTriedInBytes) {
  ResolvedRun config = ring_of(8, 0);
  config.bucket_bytes.reset();
  EXPECT_EQ(scale_for(resnet50(), config), 1);
}

TEST(ScaledDown, DividesEverySizeInBytes) {
  ResolvedRun config = ring_of(8, 64 << 10);
  config.chunk_bytes = 6400;
  config.segment_bytes = 512;
  const ResolvedRun scaled = scaled_down(config, 64);
  EXPECT_EQ(scaled.bucket_bytes, 1024);
  EXPECT_EQ(scaled.chunk_bytes, 100);
  EXPECT_EQ(scaled.segment_bytes, 64) << "a cache line is the least";
}

}  // namespace
}  // namespace syncopate::experiments
