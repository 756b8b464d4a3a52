#include "experiments/cluster/control/control_traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/transport/link_shape.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""s;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ControlTraffic, IsNoticedAboveAHundredthOfAGigabitInEitherDirection) {
  ControlTraffic traffic;
  traffic.in = {12'000'000, 0, 0, 500'000};
  traffic.out = {0, 0, 0, 12'500'000};
  EXPECT_THAT(notice_of(traffic, 10s), IsEmpty()) << "each way it is just as much as may be";
  traffic.in[0] += 1'000'000;
  EXPECT_EQ(notice_of(traffic, 10s),
            "the coordinator takes 1.35 MB/s from processes on other hosts, more than 1 % of a link of 1 Gb/s (1.25 "
            "MB/s); 96 % are records of steps: longer steps (--batch-size) or fewer workers make fewer of them");
  traffic.out[1] = 20'000'000;
  EXPECT_THAT(notice_of(traffic, 10s), HasSubstr("sends 3.25 MB/s to processes on other hosts"));
  EXPECT_THAT(notice_of(traffic, 10s), HasSubstr("62 % are batches that workers ask for: --work=quota"));
}

TEST(ControlTraffic, CountsWhatIsOnTheWireByItsMatter) {
  control::ToCoordinator steps, request, trace, heartbeat;
  steps.mutable_steps();
  request.mutable_batch_request();
  trace.mutable_trace();
  heartbeat.mutable_heartbeat();
  ControlTraffic traffic;
  for (const control::ToCoordinator* message : {&steps, &request, &trace, &heartbeat, &heartbeat}) {
    traffic.add_in(matter_of(*message), 100);
  }
  const auto one = static_cast<std::int64_t>(bytes_on_wire(100));
  EXPECT_THAT(traffic.in, testing::ElementsAre(one, one, one, 2 * one));
  control::FromCoordinator lease, alive;
  lease.mutable_batch_lease();
  alive.mutable_alive();
  traffic.add_out(matter_of(lease), 5000);
  traffic.add_out(matter_of(alive), 5000);
  const auto long_one = static_cast<std::int64_t>(bytes_on_wire(5000));
  EXPECT_THAT(traffic.out, testing::ElementsAre(0, long_one, 0, long_one));
}

TEST(TrafficWatch, NoticesOnceWhatIsMuchSinceTrainingBegan) {
  const TimePoint begin{100s};
  ControlTraffic traffic;
  traffic.in[3] = 500'000'000;  // before
  TrafficWatch watch;
  EXPECT_THAT(watch.take_notice(traffic, begin), IsEmpty()) << "training has not begun";
  watch.begin(traffic, begin);
  watch.begin({}, begin);
  EXPECT_THAT(watch.take_notice(traffic, begin + 10s), IsEmpty());
  traffic.in[0] += 20'000'000;
  EXPECT_THAT(watch.take_notice(traffic, begin + 1s), IsEmpty()) << "too soon to say";
  EXPECT_THAT(watch.take_notice(traffic, begin + 10s), HasSubstr("takes 2.00 MB/s"));
  EXPECT_THAT(watch.take_notice(traffic, begin + 11s), IsEmpty()) << "it has been said";
}

TEST(ControlTraffic, IsNothingInNoTime) { EXPECT_THAT(notice_of({}, Duration::zero()), IsEmpty()); }

}  // namespace
}  // namespace syncopate::experiments
