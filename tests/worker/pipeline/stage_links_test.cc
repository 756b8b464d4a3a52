#include "worker/pipeline/stage_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/cluster.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Links : public testing::Test {
 protected:
  // As StageLinks writes it.
  void send_raw(std::uint32_t kind, std::uint32_t number, std::span<const float> values) {
    const std::uint32_t header[] = {kind, number};
    const std::string_view bytes(reinterpret_cast<const char*>(header), sizeof(header));
    ASSERT_TRUE(transports_[0]->send(1, bytes, std::as_bytes(values), nullptr, testing_support::soon()).ok());
  }

  const SteadyClock clock_;
  std::vector<std::unique_ptr<Transport>> transports_ = testing_support::connect_group("inproc", 2);
  StageLinks first_{*transports_[0], {.workers = {4, 6}}, clock_},
      second_{*transports_[1], {.workers = {4, 6}}, clock_};
  std::vector<float> got_ = std::vector<float>(2);
};

TEST_F(Links, KeepsWhatComesBeforeItIsAskedFor) {
  std::vector<float> values{1, 2};
  ASSERT_TRUE(first_.send(1, StageMessage::kActivations, values).ok());
  values = {3, 4};
  ASSERT_TRUE(first_.send(1, StageMessage::kActivations, values).ok());
  values = {5, 6};
  ASSERT_TRUE(first_.send(1, StageMessage::kSharedWeights, values).ok());
  ASSERT_TRUE(second_.receive(0, StageMessage::kSharedWeights, got_).ok());
  EXPECT_THAT(got_, ElementsAre(5, 6));
  ASSERT_TRUE(second_.receive(0, StageMessage::kActivations, got_).ok());
  EXPECT_THAT(got_, ElementsAre(1, 2));
  ASSERT_TRUE(second_.receive(0, StageMessage::kActivations, got_).ok());
  EXPECT_THAT(got_, ElementsAre(3, 4));
  EXPECT_EQ(second_.costs().take().bytes_in, 24);
  EXPECT_EQ(first_.costs().take().bytes_out, 24);
  EXPECT_EQ(first_.costs().take().bytes_out, 0) << "they have been taken";
}

TEST_F(Links, DropsWhatComesAgainAndWhatIsNone) {
  const std::vector<float> values{1, 2}, others{3, 4};
  send_raw(0, 0, values);
  send_raw(0, 0, values);
  send_raw(99, 0, values);
  ASSERT_TRUE(transports_[0]->send(1, "short", {}, nullptr, testing_support::soon()).ok());
  send_raw(0, 1, others);
  ASSERT_TRUE(second_.receive(0, StageMessage::kActivations, got_).ok());
  ASSERT_TRUE(second_.receive(0, StageMessage::kActivations, got_).ok());
  EXPECT_THAT(got_, ElementsAre(3, 4));
  EXPECT_EQ(second_.dropped(), 3);
}

TEST_F(Links, FailsWhereAMessageIsMissingOrOfAnotherSize) {
  const std::vector<float> values{1, 2};
  send_raw(1, 1, values);
  const Status lost = second_.receive(0, StageMessage::kGradient, got_);
  EXPECT_EQ(lost.code(), Code::kDataLoss);
  EXPECT_THAT(lost.message(), HasSubstr("message 1 of the gradient of activations of worker 4 (stage 0) came where "
                                        "number 0 was due"));
  EXPECT_EQ(second_.send(0, StageMessage::kGradient, got_).message(), lost.message()) << "nothing is tried again";
  ASSERT_TRUE(first_.status().ok());
  StageLinks other(*transports_[1], {.workers = {4, 6}}, clock_);
  send_raw(1, 0, std::span(values).first(1));
  EXPECT_THAT(other.receive(0, StageMessage::kGradient, got_).message(), HasSubstr("4 bytes came where 8 were due"));
}

TEST_F(Links, CountsWaitsOfBothPasses) {
  StageLinks impatient(*transports_[1], {.workers = {4, 6}, .timeout = std::chrono::milliseconds(5)}, clock_);
  impatient.costs().begin_forward(1);
  EXPECT_FALSE(impatient.receive(0, StageMessage::kActivations, got_).ok());
  const SyncStats costs = impatient.costs().take();
  EXPECT_GE(costs.forward_wait, std::chrono::milliseconds(5));
  EXPECT_EQ(costs.exposed_wait, costs.forward_wait);
  EXPECT_EQ(costs.backward_wait, Duration::zero());
  StageLinks later(*transports_[1], {.workers = {4, 6}, .timeout = std::chrono::milliseconds(5)}, clock_);
  later.costs().begin_forward(1);
  later.costs().begin_backward();
  EXPECT_FALSE(later.receive(0, StageMessage::kGradient, got_).ok());
  EXPECT_GE(later.costs().take().backward_wait, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace syncopate::worker
