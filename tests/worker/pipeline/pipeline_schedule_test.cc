// The schedules of all stages of a pipeline, carried out together in unit times.
#include "worker/pipeline/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace syncopate::worker {
namespace {

constexpr PipelineSchedule kSchedules[] = {PipelineSchedule::kGpipe, PipelineSchedule::kOneForwardOneBackward};

struct Carried {
  double makespan = 0;
  std::vector<double> busy;    // by stage
  std::vector<int> in_flight;  // the most, by stage
};

// Returns none if the stages wait for each other for ever. A message takes no time; messages between two stages are
// read in the order in which they are sent.
std::optional<Carried> carry_out(PipelineSchedule schedule, int stages, int microbatches, double forward,
                                 double backward) {
  using Ends = std::vector<std::vector<double>>;
  const auto none = std::vector<double>(static_cast<std::size_t>(microbatches), -1.0);
  Ends forward_ends(static_cast<std::size_t>(stages), none), backward_ends = forward_ends;
  std::vector<std::vector<PipelineAction>> actions;
  for (int stage = 0; stage < stages; ++stage) {
    actions.push_back(pipeline_actions({schedule, stages, stage, microbatches}));
  }
  std::vector<std::size_t> next(static_cast<std::size_t>(stages));
  std::vector<double> free(static_cast<std::size_t>(stages));
  Carried carried{.busy = std::vector<double>(static_cast<std::size_t>(stages)),
                  .in_flight = std::vector<int>(static_cast<std::size_t>(stages))};
  std::vector<int> flying(static_cast<std::size_t>(stages));
  for (bool moves = true; moves;) {
    moves = false;
    for (int stage = 0; stage < stages; ++stage) {
      const auto s = static_cast<std::size_t>(stage);
      if (next[s] == actions[s].size()) continue;
      const PipelineAction action = actions[s][next[s]];
      const auto m = static_cast<std::size_t>(action.microbatch);
      const bool is_end = action.is_forward ? stage == 0 : stage == stages - 1;
      const double ready = is_end ? 0 : action.is_forward ? forward_ends[s - 1][m] : backward_ends[s + 1][m];
      if (ready < 0 || (!action.is_forward && forward_ends[s][m] < 0)) continue;
      const double takes = action.is_forward ? forward : backward;
      free[s] = std::max(free[s], ready) + takes;
      (action.is_forward ? forward_ends : backward_ends)[s][m] = free[s];
      carried.busy[s] += takes;
      flying[s] += action.is_forward ? 1 : -1;
      carried.in_flight[s] = std::max(carried.in_flight[s], flying[s]);
      ++next[s];
      moves = true;
    }
  }
  for (std::size_t s = 0; s < next.size(); ++s) {
    if (next[s] != actions[s].size() || flying[s] != 0) return std::nullopt;
  }
  carried.makespan = *std::ranges::max_element(free);
  return carried;
}

template <typename Check>
void for_all(const Check& check) {
  for (const PipelineSchedule schedule : kSchedules) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (int microbatches = 1; microbatches <= 12; ++microbatches) {
        SCOPED_TRACE(std::string(name_of(schedule)) + ", S = " + std::to_string(stages) +
                     ", M = " + std::to_string(microbatches));
        check(schedule, stages, microbatches);
      }
    }
  }
}

TEST(PipelineSchedule, TakesEachMicrobatchOnceForwardAndThenOnceBackward) {
  for_all([](PipelineSchedule schedule, int stages, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::map<int, std::vector<bool>> passes;
      for (const PipelineAction& action : pipeline_actions({schedule, stages, stage, microbatches})) {
        passes[action.microbatch].push_back(action.is_forward);
      }
      ASSERT_EQ(passes.size(), static_cast<std::size_t>(microbatches));
      for (const auto& [microbatch, order] : passes) {
        EXPECT_THAT(order, testing::ElementsAre(true, false)) << microbatch;
        EXPECT_GE(microbatch, 0);
        EXPECT_LT(microbatch, microbatches);
      }
    }
  });
}

TEST(PipelineSchedule, BeginsWithForwardAndEndsWithBackward) {
  for_all([](PipelineSchedule schedule, int stages, int microbatches) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto actions = pipeline_actions({schedule, stages, stage, microbatches});
      EXPECT_TRUE(actions.front().is_forward);
      EXPECT_FALSE(actions.back().is_forward);
    }
  });
}

// So that messages between them need no names.
TEST(PipelineSchedule, HasOneOrderOfEachPassOnAllStages) {
  for_all([](PipelineSchedule schedule, int stages, int microbatches) {
    const auto order = [&](int stage, bool is_forward) {
      std::vector<int> microbatch;
      for (const PipelineAction& action : pipeline_actions({schedule, stages, stage, microbatches})) {
        if (action.is_forward == is_forward) microbatch.push_back(action.microbatch);
      }
      return microbatch;
    };
    for (int stage = 1; stage < stages; ++stage) {
      EXPECT_EQ(order(stage, true), order(0, true));
      EXPECT_EQ(order(stage, false), order(0, false));
    }
  });
}

TEST(PipelineSchedule, TakesAsLongAsItsFormulaSays) {
  for_all([](PipelineSchedule schedule, int stages, int microbatches) {
    for (const auto& [forward, backward] : {std::pair{1.0, 1.0}, {1.0, 2.0}}) {
      const std::optional<Carried> carried = carry_out(schedule, stages, microbatches, forward, backward);
      ASSERT_TRUE(carried) << "the stages wait for each other";
      EXPECT_DOUBLE_EQ(carried->makespan, (microbatches + stages - 1) * (forward + backward));
      for (const double busy : carried->busy) {
        EXPECT_NEAR(1 - busy / carried->makespan, (stages - 1.0) / (microbatches + stages - 1), 1e-9);
      }
    }
  });
}

TEST(PipelineSchedule, HasAsManyMicrobatchesInFlightAsItSays) {
  for_all([](PipelineSchedule schedule, int stages, int microbatches) {
    const std::optional<Carried> carried = carry_out(schedule, stages, microbatches, 1, 2);
    ASSERT_TRUE(carried);
    for (int stage = 0; stage < stages; ++stage) {
      const bool is_gpipe = schedule == PipelineSchedule::kGpipe;
      EXPECT_EQ(carried->in_flight[static_cast<std::size_t>(stage)],
                is_gpipe ? microbatches : std::min(microbatches, stages - stage));
      EXPECT_EQ(carried->in_flight[static_cast<std::size_t>(stage)],
                most_in_flight({schedule, stages, stage, microbatches}));
    }
  });
}

TEST(PipelineSchedule, IsAsThePapersDrawIt) {
  const auto text = [](const PipelinePlace& place) {
    std::string text;
    for (const PipelineAction& action : pipeline_actions(place)) {
      text += (action.is_forward ? "F" : "B") + std::to_string(action.microbatch) + " ";
    }
    return text;
  };
  EXPECT_EQ(text({PipelineSchedule::kGpipe, 4, 1, 3}), "F0 F1 F2 B2 B1 B0 ");
  EXPECT_EQ(text({PipelineSchedule::kOneForwardOneBackward, 3, 0, 4}), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(text({PipelineSchedule::kOneForwardOneBackward, 3, 2, 4}), "F0 B0 F1 B1 F2 B2 F3 B3 ");
}

}  // namespace
}  // namespace syncopate::worker
