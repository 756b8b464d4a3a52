#include "prediction/reproduction/validated_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prediction/reproduction/reproduction.h"

namespace syncopate::prediction {
namespace {

using testing::ElementsAre;

TEST(ValidatedError, IsTheLargestOfTheTablesThatMeasuredTheExchange) {
  const Reproduction piz_daint = *reproduce("piz-daint");
  const Reproduction mxnet = *reproduce("mxnet");
  const std::optional<ValidatedError> servers = validated_error(Exchange::kServers);
  ASSERT_TRUE(servers.has_value());
  EXPECT_THAT(servers->tables, ElementsAre("piz-daint", "mxnet"));
  EXPECT_EQ(servers->median, std::max(piz_daint.median_error(), mxnet.median_error()));
  EXPECT_EQ(servers->worst, std::max(piz_daint.worst_error(), mxnet.worst_error()));
}

TEST(ValidatedError, IsNoneWhereNobodyMeasured) {
  EXPECT_THAT(validated_error(Exchange::kRing).value().tables, ElementsAre("nccl-links", "dlperf-bert", "horovod"));
  for (const Exchange exchange : {Exchange::kTree, Exchange::kHalvingDoubling, Exchange::kByteps}) {
    EXPECT_FALSE(validated_error(exchange).has_value());
  }
}

}  // namespace
}  // namespace syncopate::prediction
