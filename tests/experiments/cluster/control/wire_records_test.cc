#include "experiments/cluster/control/wire_records.h"

#include <gtest/gtest.h>

namespace syncopate::experiments::wire_records {
namespace {

TEST(WireRecords, HaveEveryKindOfCheckpointReport) {
  using Kind = CheckpointReport::Kind;
  for (const Kind kind : {Kind::kWritten, Kind::kBusy, Kind::kPassed, Kind::kFailed, Kind::kNothing}) {
    const CheckpointReport report{
        .kind = kind, .membership_epoch = 3, .step = 40, .part = {.writer = "shard-1"}, .reason = "disk full"};
    const CheckpointReport read = from_wire(to_wire("shard-1", report));
    EXPECT_EQ(read.kind, kind) << read.reason;
    EXPECT_EQ(read.membership_epoch, 3);
    EXPECT_EQ(read.step, 40);
  }
}

TEST(WireRecords, TakeAnUnknownKindOfCheckpointReportForAFailure) {
  control::CheckpointReport wire = to_wire("shard-1", CheckpointReport{});
  for (const int kind : {-1, 5, 1000}) {
    wire.set_kind(kind);
    EXPECT_EQ(from_wire(wire).kind, CheckpointReport::Kind::kFailed) << kind;
  }
}

}  // namespace
}  // namespace syncopate::experiments::wire_records
