#include "common/transport/patient_transport.h"

#include <gtest/gtest.h>

#include <vector>

namespace syncopate {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

// Nothing ever comes: each wait lasts until its deadline, by a clock that stands still otherwise.
class SilentWire final : public Transport {
 public:
  explicit SilentWire(ManualClock& clock, std::vector<TimePoint>& deadlines) : clock_(clock), deadlines_(deadlines) {}

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
    return Status::deadline_exceeded("no message");
  }

  ManualClock& clock_;
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
  PatientTransport transport_{std::make_unique<SilentWire>(clock_, deadlines_), patience_, clock_};
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

// Stopped between two waits of one operation, and past its deadline when it wakes.
TEST_F(PatientTransportTest, HasPatienceWhereItDidNotRunBetweenTwoWaitsOfOneCall) {
  const TimePoint deadline = clock_.now() + 10s;
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  clock_.advance(60s);
  const TimePoint woken = clock_.now();
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), woken + 10s);
}

TEST_F(PatientTransportTest, DoesNotProlongALook) {
  patience_->excuse(clock_.now() + 60s);
  const TimePoint deadline = clock_.now() + 50ms;
  EXPECT_EQ(transport_.receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), deadline);
  EXPECT_EQ(transport_.receive(TimePoint{}).status().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(deadlines_.size(), 2u);
}

TEST_F(PatientTransportTest, ConcernsSendsToo) {
  patience_->excuse(clock_.now() + 60s);
  const TimePoint deadline = clock_.now() + 10s;
  EXPECT_EQ(transport_.send(1, "", {}, nullptr, deadline).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(clock_.now(), deadline + 60s);
}

}  // namespace
}  // namespace syncopate
