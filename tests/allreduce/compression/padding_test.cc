// Sums of small tensors, step by step, against plain ones: no codec counts the padding behind them.
#include <gtest/gtest.h>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/compression/compressed_reduction.h"
#include "common/random.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"
#include "tests/support/plain_codec.h"

namespace syncopate::allreduce {
namespace {

using testing_support::is_padding;
using testing_support::kSmallTensorsElements;
using testing_support::layout_of_small_tensors;
using testing_support::PlainSender;

constexpr int kRanks = 2, kSteps = 4;

std::vector<float> gradients_of(const ParamLayout& layout, int rank, int step) {
  Random random(static_cast<std::uint64_t>(rank) + 1, static_cast<std::uint64_t>(step));
  std::vector<float> gradients(layout.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!is_padding(layout, i)) gradients[i] = static_cast<float>(random.normal());
  }
  return gradients;
}

using Sums = std::vector<std::vector<float>>;  // by step

Sums sums_of(const CodecConfig& codec, const std::string& wire) {
  const ParamLayout layout = layout_of_small_tensors();
  const SteadyClock clock;
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Collective>> collectives;
  if (wire == "direct") {
    collectives = testing_support::connect_direct(kRanks);
  } else {
    transports = testing_support::connect_group(wire, kRanks);
    for (const auto& transport : transports) collectives.push_back(make_schedule_collective(*transport));
  }
  std::vector<Sums> sums(kRanks);
  testing_support::run_ranks(kRanks, [&](int rank) {
    Collective& collective = *collectives[static_cast<std::size_t>(rank)];
    const auto made = make_compressed_reduction(codec, layout, 7, collective, clock);
    ASSERT_TRUE(made.ok()) << made.status().message();
    for (int step = 0; step < kSteps; ++step) {
      std::vector<float> gradients = gradients_of(layout, rank, step);
      ASSERT_TRUE(
          (*made)->reduce({0, layout.size()}, gradients, {.number = step}, testing_support::soon()).status().ok());
      sums[static_cast<std::size_t>(rank)].push_back(gradients);
    }
    EXPECT_TRUE(collective.barrier(testing_support::soon()).ok());
  });
  EXPECT_EQ(sums[1], sums[0]);
  return sums[0];
}

// Whether every rank gets what every other sends.
bool is_gathered(const CodecConfig& codec) {
  return codec.kind == CodecKind::kTopK || codec.kind == CodecKind::kTopK2Bit;
}

Sums plain_sums_of(const CodecConfig& codec) {
  const ParamLayout layout = layout_of_small_tensors();
  std::vector<PlainSender> senders(kRanks, {codec, layout});
  PlainSender owners(codec, layout);
  // Rank 0 owns three of the arena's five aligned units, and so the tensors of 1, 3 and 10 elements.
  const std::vector<Range> parts =
      is_gathered(codec) ? std::vector<Range>{{0, 80}} : std::vector<Range>{{0, 48}, {48, 80}};
  Sums sums;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> sum(layout.size());
    for (const Range& part : parts) {
      for (int rank = 0; rank < kRanks; ++rank) {
        const std::vector<float> sent =
            senders[static_cast<std::size_t>(rank)].send(part, gradients_of(layout, rank, step));
        for (std::size_t i = 0; i < sent.size(); ++i) sum[part.begin + i] += sent[i];
      }
      if (!is_gathered(codec)) std::ranges::copy(owners.send(part, sum), sum.begin() + part.begin);
    }
    sums.push_back(sum);
  }
  return sums;
}

class PaddingOnWires : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  const CodecConfig codec_ = *parse_codec(std::get<0>(GetParam()));
  const std::string wire_ = std::get<1>(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Allreduce, PaddingOnWires,
                         testing::Combine(testing::Values("fp16", "bf16", "int8", "topk:0.25", "topk2bit:0.25", "sign",
                                                          "randomk:0.25", "powersgd:2"),
                                          testing::Values("inproc", "direct")),
                         [](const auto& tested) {
                           const std::string codec = std::get<0>(tested.param);
                           return codec.substr(0, codec.find(':')) + "_" + std::get<1>(tested.param);
                         });

TEST_P(PaddingOnWires, ChangesNoSum) {
  const ParamLayout layout = layout_of_small_tensors();
  const Sums sums = sums_of(codec_, wire_);
  const bool is_drawn = codec_.kind == CodecKind::kRandomK, is_whole = codec_.kind == CodecKind::kPowerSgd;
  const Sums expected = is_drawn || is_whole ? Sums(kSteps) : plain_sums_of(codec_);
  std::vector<float> kept(layout.size());  // of all ranks
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<float>& sum = sums[static_cast<std::size_t>(step)];
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::vector<float> gradients = gradients_of(layout, rank, step);
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] += gradients[i];
    }
    std::size_t sent = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if (is_padding(layout, i)) {
        EXPECT_EQ(sum[i], 0) << step << " " << i;
        continue;
      }
      if (is_drawn || is_whole) {
        if (is_whole || sum[i] != 0) {
          EXPECT_NEAR(sum[i], kept[i], 1e-5) << step << " " << i;
          kept[i] = 0;
          ++sent;
        }
      } else {
        EXPECT_NEAR(sum[i], expected[static_cast<std::size_t>(step)][i], 1e-5) << step << " " << i;
      }
    }
    if (is_drawn) EXPECT_EQ(sent, (kSmallTensorsElements + 3) / 4) << step;
  }
}

}  // namespace
}  // namespace syncopate::allreduce
