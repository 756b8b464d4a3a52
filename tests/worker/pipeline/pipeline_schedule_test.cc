// The schedules of all stages of a pipeline, carried out together in unit times.
#include "worker/pipeline/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::worker {
namespace {

struct Carried {
  double makespan = 0;
  std::vector<double> busy;                 // by stage
  std::vector<std::vector<int>> in_flight;  // the most, by stage and chunk
  std::vector<int> in_flight_together;      // the same of all chunks of a stage
};

struct PassTimes {
  double forward = 1, backward = 1, weights = 0;  // through a chunk

  double of(PipelinePass pass) const {
    return pass == PipelinePass::kForward ? forward : pass == PipelinePass::kBackward ? backward : weights;
  }
};

std::vector<std::vector<PipelineAction>> actions_of(PipelinePlace pipeline) {
  std::vector<std::vector<PipelineAction>> actions;
  for (pipeline.stage = 0; pipeline.stage < pipeline.stages; ++pipeline.stage) {
    actions.push_back(pipeline_actions(pipeline));
  }
  return actions;
}

PipelinePlace at(PipelinePlace pipeline, int stage) {
  pipeline.stage = stage;
  return pipeline;
}

// Returns none if the stages wait for each other for ever. A message takes no time; messages between two stages are
// read in the order in which they are sent.
std::optional<Carried> carry_out(const PipelinePlace& pipeline, const PassTimes& times) {
  const auto stages = static_cast<std::size_t>(pipeline.stages);
  const int numbers = pipeline.stages * pipeline.chunks;
  const bool splits = splits_backward(pipeline.schedule);
  const std::vector<std::vector<PipelineAction>> actions = actions_of(pipeline);
  std::map<std::array<int, 3>, double> ends;  // by pass, number of the chunk and microbatch
  const auto end_of = [&](PipelinePass pass, int number, int microbatch) {
    const auto found = ends.find({static_cast<int>(pass), number, microbatch});
    return found == ends.end() ? -1.0 : found->second;
  };
  const std::vector<int> none(static_cast<std::size_t>(pipeline.chunks));
  Carried carried{.busy = std::vector<double>(stages),
                  .in_flight = std::vector<std::vector<int>>(stages, none),
                  .in_flight_together = std::vector<int>(stages)};
  std::vector<std::vector<int>> flying = carried.in_flight;
  std::vector<std::size_t> next(stages);
  std::vector<double> free(stages);
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t s = 0; s < stages; ++s) {
      if (next[s] == actions[s].size()) continue;
      const auto [pass, microbatch, chunk] = actions[s][next[s]];
      const int number = at(pipeline, static_cast<int>(s)).number_of(chunk);
      double ready = 0;
      if (pass == PipelinePass::kForward && number > 0) ready = end_of(pass, number - 1, microbatch);
      if (pass == PipelinePass::kBackward) {
        if (number + 1 < numbers) ready = end_of(pass, number + 1, microbatch);
        if (end_of(PipelinePass::kForward, number, microbatch) < 0) ready = -1;
      }
      if (pass == PipelinePass::kWeights && end_of(PipelinePass::kBackward, number, microbatch) < 0) ready = -1;
      if (ready < 0) continue;
      free[s] = std::max(free[s], ready) + times.of(pass);
      ends[{static_cast<int>(pass), number, microbatch}] = free[s];
      carried.busy[s] += times.of(pass);
      int& flies = flying[s][static_cast<std::size_t>(chunk)];
      if (pass == PipelinePass::kForward) ++flies;
      if (pass == (splits ? PipelinePass::kWeights : PipelinePass::kBackward)) --flies;
      int& most = carried.in_flight[s][static_cast<std::size_t>(chunk)];
      most = std::max(most, flies);
      int together = 0;
      for (const int each : flying[s]) together += each;
      carried.in_flight_together[s] = std::max(carried.in_flight_together[s], together);
      ++next[s];
      moves = true;
    }
  }
  for (std::size_t s = 0; s < stages; ++s) {
    if (next[s] != actions[s].size() || flying[s] != none) return std::nullopt;
  }
  carried.makespan = *std::ranges::max_element(free);
  return carried;
}

// With every schedule: those that are interleaved with 1 to 3 chunks.
template <typename Check>
void for_all(const Check& check) {
  for (const PipelineSchedule schedule : {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward,
                                          PipelineSchedule::kInterleaved, PipelineSchedule::kZeroBubble}) {
    const bool is_interleaved = schedule == PipelineSchedule::kInterleaved;
    for (int chunks = 1; chunks <= (is_interleaved ? 3 : 1); ++chunks) {
      for (int stages = 1; stages <= 6; ++stages) {
        for (int microbatches = 1; microbatches <= 12; ++microbatches) {
          if (is_interleaved && microbatches % stages != 0) continue;
          SCOPED_TRACE(std::string(name_of(schedule)) + ", S = " + std::to_string(stages) +
                       ", M = " + std::to_string(microbatches) + ", V = " + std::to_string(chunks));
          check(PipelinePlace{.schedule = schedule, .stages = stages, .microbatches = microbatches, .chunks = chunks});
        }
      }
    }
  }
}

TEST(PipelineSchedule, TakesEachMicrobatchOnceThroughEachPassOfEachChunk) {
  for_all([](const PipelinePlace& pipeline) {
    std::vector<PipelinePass> all{PipelinePass::kForward, PipelinePass::kBackward};
    if (splits_backward(pipeline.schedule)) all.push_back(PipelinePass::kWeights);
    for (const std::vector<PipelineAction>& actions : actions_of(pipeline)) {
      std::map<std::pair<int, int>, std::vector<PipelinePass>> passes;
      for (const PipelineAction& action : actions) passes[{action.chunk, action.microbatch}].push_back(action.pass);
      ASSERT_EQ(passes.size(), static_cast<std::size_t>(pipeline.microbatches * pipeline.chunks));
      for (const auto& [which, order] : passes) {
        EXPECT_EQ(order, all) << which.first << " " << which.second;
        EXPECT_GE(which.second, 0);
        EXPECT_LT(which.second, pipeline.microbatches);
      }
    }
  });
}

TEST(PipelineSchedule, BeginsWithForwardAndEndsWithAnotherPass) {
  for_all([](const PipelinePlace& pipeline) {
    for (const std::vector<PipelineAction>& actions : actions_of(pipeline)) {
      EXPECT_EQ(actions.front().pass, PipelinePass::kForward);
      EXPECT_NE(actions.back().pass, PipelinePass::kForward);
    }
  });
}

// So that messages between them need no names: what one stage sends another in the order in which that reads it.
TEST(PipelineSchedule, HasOneOrderOfEachPassOnNeighbours) {
  for_all([](const PipelinePlace& pipeline) {
    const std::vector<std::vector<PipelineAction>> actions = actions_of(pipeline);
    const int last = pipeline.stages * pipeline.chunks - 1;
    // The messages of a pass that a stage sends, or reads, by the lower number of the two chunks, and microbatch.
    const auto messages = [&](int stage, PipelinePass pass, bool sends) {
      std::vector<std::pair<int, int>> cuts;
      for (const PipelineAction& action : actions[static_cast<std::size_t>(stage)]) {
        const int number = at(pipeline, stage).number_of(action.chunk);
        const bool goes_on = (pass == PipelinePass::kForward) == sends;
        if (action.pass == pass && number != (goes_on ? last : 0)) {
          cuts.emplace_back(goes_on ? number : number - 1, action.microbatch);
        }
      }
      return cuts;
    };
    for (int stage = 0; stage < pipeline.stages && pipeline.stages > 1; ++stage) {
      const int behind = at(pipeline, stage).behind();
      EXPECT_EQ(messages(stage, PipelinePass::kForward, true), messages(behind, PipelinePass::kForward, false));
      EXPECT_EQ(messages(behind, PipelinePass::kBackward, true), messages(stage, PipelinePass::kBackward, false));
    }
  });
}

TEST(PipelineSchedule, TakesAsLongAsItsFormulaSays) {
  for_all([](const PipelinePlace& pipeline) {
    const int S = pipeline.stages, M = pipeline.microbatches, V = pipeline.chunks;
    const bool splits = splits_backward(pipeline.schedule);
    for (const auto& [f, b, w] : {std::array{1.0, 1.0, 0.0}, {1.0, 2.0, 1.0}, {2.0, 3.0, 1.0}}) {
      const PassTimes times{.forward = f / V, .backward = (splits ? b - w : b) / V, .weights = w / V};
      const std::optional<Carried> carried = carry_out(pipeline, times);
      ASSERT_TRUE(carried) << "the stages wait for each other";
      // While a stage has fewer gradients of weights left than stages before it, it waits for so many more.
      const double hidden = splits ? w * (std::min(M, S) - 1) : 0;
      const double bubble = (S - 1) * (f + b - (splits ? w : 0)) / V - hidden;
      EXPECT_NEAR(carried->makespan, M * (f + b) + bubble, 1e-9);
      for (const double busy : carried->busy) EXPECT_NEAR(carried->makespan - busy, bubble, 1e-9);
    }
  });
}

TEST(PipelineSchedule, HasAsManyMicrobatchesInFlightAsItSays) {
  for_all([](const PipelinePlace& pipeline) {
    const int S = pipeline.stages, M = pipeline.microbatches, V = pipeline.chunks;
    const std::optional<Carried> carried = carry_out(pipeline, {.forward = 1, .backward = 2, .weights = 1});
    ASSERT_TRUE(carried);
    for (int stage = 0; stage < S; ++stage) {
      const std::map<PipelineSchedule, int> most{
          {PipelineSchedule::kGpipe, M},
          {PipelineSchedule::kOneForwardOneBackward, S - stage},
          {PipelineSchedule::kInterleaved, 2 * (S - stage - 1) + (V - 1) * S + 1},
          {PipelineSchedule::kZeroBubble, S}};
      const auto s = static_cast<std::size_t>(stage);
      EXPECT_EQ(carried->in_flight_together[s], std::min(M * V, most.at(pipeline.schedule)));
      for (int chunk = 0; chunk < V; ++chunk) {
        EXPECT_EQ(carried->in_flight[s][static_cast<std::size_t>(chunk)], most_in_flight(at(pipeline, stage), chunk));
      }
    }
  });
}

// So that each has a slot of its own, by its number modulo the slots.
TEST(PipelineSchedule, HasMicrobatchesInFlightThatFollowEachOther) {
  for_all([](const PipelinePlace& pipeline) {
    for (int stage = 0; stage < pipeline.stages; ++stage) {
      std::map<std::pair<int, int>, bool> taken;  // by chunk and slot
      for (const PipelineAction& action : pipeline_actions(at(pipeline, stage))) {
        const int slots = most_in_flight(at(pipeline, stage), action.chunk);
        bool& is_taken = taken[{action.chunk, action.microbatch % slots}];
        if (action.pass == PipelinePass::kForward) EXPECT_FALSE(std::exchange(is_taken, true));
        const bool is_last =
            action.pass == (splits_backward(pipeline.schedule) ? PipelinePass::kWeights : PipelinePass::kBackward);
        if (is_last) EXPECT_TRUE(std::exchange(is_taken, false));
      }
    }
  });
}

TEST(PipelineSchedule, HasAVersionOfItsWeightsForEachBatchInFlightWhereTheyAreStashed) {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int stage = 0; stage < stages; ++stage) {
      const PipelinePlace place{PipelineSchedule::kPipedream, stages, stage, 1};
      EXPECT_EQ(place.lag(), stages - stage - 1);
      EXPECT_EQ(most_in_flight(place), stages - stage);
      const auto passes = [&](std::int64_t step, bool is_last) {
        std::string text;
        for (const PipelineAction& action : stashing_actions(place, step, is_last)) {
          text += "FB"[static_cast<int>(action.pass)] + std::to_string(action.microbatch) + " ";
        }
        return text;
      };
      for (int step = 0; step < 8; ++step) {
        const int batch = step - place.lag();
        const std::string forward = "F" + std::to_string(step) + " ";
        EXPECT_EQ(passes(step, false), batch < 0 ? forward : forward + "B" + std::to_string(batch) + " ");
        std::string all = forward;
        for (int left = std::max(0, batch); left <= step; ++left) all += "B" + std::to_string(left) + " ";
        EXPECT_EQ(passes(step, true), all);
      }
    }
  }
}

TEST(PipelineSchedule, IsAsThePapersDrawIt) {
  const auto text = [](const PipelinePlace& place) {
    std::string text;
    for (const PipelineAction& action : pipeline_actions(place)) {
      text += "FBW"[static_cast<int>(action.pass)] + std::to_string(action.microbatch);
      text += std::string(static_cast<std::size_t>(action.chunk), '\'') + " ";
    }
    return text;
  };
  EXPECT_EQ(text({PipelineSchedule::kGpipe, 4, 1, 3}), "F0 F1 F2 B2 B1 B0 ");
  EXPECT_EQ(text({PipelineSchedule::kOneForwardOneBackward, 3, 0, 4}), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(text({PipelineSchedule::kOneForwardOneBackward, 3, 2, 4}), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_EQ(text({PipelineSchedule::kInterleaved, 2, 0, 4, 2}),
            "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3 ");
  EXPECT_EQ(text({PipelineSchedule::kInterleaved, 2, 1, 4, 2}),
            "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3 ");
  EXPECT_EQ(text({PipelineSchedule::kZeroBubble, 3, 0, 4}), "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 ");
  EXPECT_EQ(text({PipelineSchedule::kZeroBubble, 3, 2, 4}), "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 ");
}

}  // namespace
}  // namespace syncopate::worker
