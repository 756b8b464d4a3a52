#include "experiments/cluster/process/wire_measurement.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(WireMeasurement, KnowsEveryWireOfThisMachine) {
  for (const TransportKind kind :
       {TransportKind::kShm, TransportKind::kIpc, TransportKind::kTcp, TransportKind::kSockets}) {
    const Result<allreduce::LinkModel> link = measure_wire(kind, 1, std::chrono::seconds(60));
    ASSERT_TRUE(link.ok()) << name_of(kind) << ": " << link.status().message();
    EXPECT_GT(link->latency + link->seconds_per_byte, 0) << name_of(kind);
    EXPECT_GT(link->reduce_seconds_per_byte, 0) << name_of(kind);
  }
}

TEST(WireMeasurement, EndsAtItsLimit) { EXPECT_FALSE(measure_wire(TransportKind::kTcp, 1, Duration::zero()).ok()); }

TEST(AMeasuredLink, CarriesLongMessagesAsFastAsTheyWere) {
  const allreduce::LinkModel measured{.latency = 38.123456e-6, .seconds_per_byte = 1 / 1.23456789e9};
  const LinkShape between = link_between_hosts(measured), inside = link_inside_a_host(measured);
  EXPECT_NEAR(between.payload_bytes_per_second(), 1.23456789e9, 1e6);
  EXPECT_NEAR(static_cast<double>(inside.bits_per_second) / 8, 1.23456789e9, 1e6);
  EXPECT_EQ(between.delay, Duration(38120));
  EXPECT_EQ(*LinkShape::parse(between.to_string()), between);
}

TEST(AMeasuredLink, StaysWithinWhatALinkMayBe) {
  for (const double seconds_per_byte : {0.0, 1e-15, 1.0}) {
    const LinkShape link = link_between_hosts({.latency = 0, .seconds_per_byte = seconds_per_byte});
    EXPECT_EQ(LinkShape::parse(link.to_string()).ok(), true) << link.to_string();
  }
}

}  // namespace
}  // namespace syncopate::experiments
