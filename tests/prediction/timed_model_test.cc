#include "prediction/timed_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

ModelProfile two_tensors() {
  ModelProfile profile{.model = "two"};
  profile.tensors = {{.name = "first", .shape = {10}, .parameters = 10, .forward_flops = 3},
                     {.name = "second", .shape = {30}, .parameters = 30, .forward_flops = 1}};
  return profile;
}

TEST(TimedModel, SharesAStepByFlopsAThirdOfItForward) {
  const TimedModel model = timed_model(two_tensors(), 12);
  EXPECT_THAT(model.bytes, ElementsAre(40, 120));
  EXPECT_THAT(model.forward, ElementsAre(DoubleEq(3), DoubleEq(1)));
  EXPECT_THAT(model.backward, ElementsAre(DoubleEq(6), DoubleEq(2)));
}

TEST(TimedModel, SharesAStepAsMeasuredWhereThereAreTimes) {
  ModelProfile profile = two_tensors();
  profile.batch_size = 8;
  profile.tensors[0].forward_seconds = 0.1;
  profile.tensors[0].backward_seconds = 0.5;
  profile.tensors[1].backward_seconds = 0.4;
  const TimedModel model = timed_model(profile, 2);  // twice as long as measured
  EXPECT_THAT(model.forward, ElementsAre(DoubleEq(0.2), DoubleEq(0)));
  EXPECT_THAT(model.backward, ElementsAre(DoubleEq(1), DoubleEq(0.8)));
}

}  // namespace
}  // namespace syncopate::prediction
