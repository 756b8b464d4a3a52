#include "common/transport/patient_transport.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

// Nothing ever comes: each wait lasts until its deadline, by a clock that stands still otherwise. The process ticks
// meanwhile.
class SilentWire final : public Transport {
 public:
  SilentWire(ManualClock& clock, Patience& patience, std::vector<TimePoint>& deadlines)
      : clock_(clock), patience_(patience), deadlines_(deadlines) {}

  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "silent"; }
  Result<std::span<std::byte>> allocate(std::size_t) override { return std::span<std::byte>(); }
  Status send(int, std::string_view, std::span<const std::byte>, PendingSends*, TimePoint deadline) override {
    return late(deadline);
  }
  Result<Message> receive(TimePoint deadline) override { return late(deadline); }
  Status wait(const PendingSends&, TimePoint deadline) override { return late(deadline); }
  void progress() override {}
  void interrupt() override {}
  TransportCounters counters() const override { return {}; }

 private:
  Status late(TimePoint deadline) {
    deadlines_.push_back(deadline);
    if (deadline > clock_.now()) clock_.advance(deadline - clock_.now());
    patience_.tick(clock_.now());
    return Status::deadline_exceeded("no message");
  }

  ManualClock& clock_;
  Patience& patience_;
  std::vector<TimePoint>& deadlines_;
};

class PatientTransportTest : public testing::Test {
 protected:
  PatientTransportTest() {
    patience_->set_timeout(10s);
    clock_.advance(1000s);
  }

  ManualClock clock_;
  std::vector<TimePoint> deadlines_;
  const std::shared_ptr<Patience> patience_ = std::make_shared<Patience>();
  PatientTransport transport_{std::make_unique<SilentWire>(clock_, *patience_, deadlines_), patience_, clock_};
};

TEST_F(PatientTransportTest, EndsAWaitAtItsDeadlineWithWhatTheWireSays) {
  const TimePoint deadline = clock_.now() + 10s;
  const Result<Message> message = transport_.receive(deadline);
  EXPECT_EQ(message.status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(message.status().message(), "no message");
  EXPECT_EQ(clock_.now(), deadline);
}

TEST_F(PatientTransportTest, WaitsOnWhereSomebodyDidNotRun) {
  const TimePoint deadline = clock_.now() + 10s;
  patience_->excuse(clock_.now() + 60s);
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), deadline + 60s);
  // Another wait, of the same call above, shares the deadline, which has passed.
  patience_->excuse(clock_.now());
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), deadline + 70s);
}

// Stopped after the deadline was set and before the wait for it, with a send in between, which has a deadline of its
// own.
TEST_F(PatientTransportTest, HasPatienceWhereItDidNotRunBeforeTheWait) {
  patience_->tick(clock_.now());
  const TimePoint deadline = clock_.now() + 10s;
  clock_.advance(60s);
  const TimePoint woken = clock_.now();
  EXPECT_EQ(transport_.send(1, "", {}, nullptr, woken + 5s).code(), Code::kDeadlineExceeded);
  EXPECT_GE(clock_.now(), woken + 10s);
  EXPECT_LT(clock_.now(), woken + 11s);
  patience_->excuse(woken + 5s);
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), woken + 15s);
}

TEST_F(PatientTransportTest, DoesNotProlongALook) {
  patience_->excuse(clock_.now() + 60s);
  const TimePoint until = clock_.now() + 50ms;
  EXPECT_EQ(transport_.poll(until).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), until);
  EXPECT_EQ(transport_.poll(TimePoint{}).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(deadlines_.size(), 2u);
}

// A wait of which little is left when it comes to the transport is one like any other.
TEST_F(PatientTransportTest, ProlongsAWaitThatIsNearlyOver) {
  patience_->excuse(clock_.now() + 60s);
  const TimePoint begin = clock_.now();
  EXPECT_EQ(transport_.receive(begin + 50ms).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), begin + 70s);
}

TEST_F(PatientTransportTest, ConcernsSendsToo) {
  patience_->excuse(clock_.now() + 60s);
  const TimePoint deadline = clock_.now() + 10s;
  EXPECT_EQ(transport_.send(1, "", {}, nullptr, deadline).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), deadline + 60s);
}

}  // namespace
}  // namespace syncopate
