#include "experiments/cluster/control/answer_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

TimePoint in_time() { return SteadyClock().now() + std::chrono::seconds(20); }
TimePoint now() { return SteadyClock().now(); }

ToCoordinator question(const std::string& kind, std::int64_t number = 0) {
  ToCoordinator message;
  if (kind == "group") message.mutable_publish()->set_group("data");
  if (kind == "epoch") message.mutable_epoch_question()->set_epoch(number);
  if (kind == "step") message.mutable_step_announcement()->set_step(number);
  if (kind == "batches") message.mutable_batch_request()->set_number(number);
  if (kind == "leave") message.mutable_leave_question();
  if (kind == "finish") message.mutable_finish_question();
  return message;
}

FromCoordinator answer(const std::string& kind, std::int64_t number = 0) {
  FromCoordinator message;
  if (kind == "group") message.mutable_members()->set_group("data");
  if (kind == "epoch") message.mutable_epoch_answer()->set_epoch(number);
  if (kind == "step") message.mutable_step_answer()->set_step(number);
  if (kind == "batches") message.mutable_batch_lease()->set_number(number);
  if (kind == "leave") message.mutable_leave_answer();
  if (kind == "finish") message.mutable_finish_answer();
  return message;
}

constexpr const char* kKinds[] = {"group", "epoch", "step", "batches", "leave", "finish"};

class AnswerBoardTest : public testing::Test {
 protected:
  std::future<Code> waiting_for(const ToCoordinator& asked) {
    return std::async(std::launch::async, [this, asked] { return board_.wait_for(asked, in_time()).status().code(); });
  }

  AnswerBoard board_{Role::kWorker, 1};
};

TEST_F(AnswerBoardTest, GivesAnAnswerThatIsTakenOnce) {
  EXPECT_FALSE(board_.take(question("batches", 1)));
  board_.put(answer("batches", 1));
  EXPECT_FALSE(board_.take(question("batches", 2)));
  EXPECT_TRUE(board_.take(question("batches", 1)));
  EXPECT_FALSE(board_.take(question("batches", 1)));
  board_.put(answer("batches", 2));
  board_.stop();
  EXPECT_FALSE(board_.take(question("batches", 2)));
}

TEST_F(AnswerBoardTest, GivesEachQuestionItsOwnAnswer) {
  for (const std::string asked : kKinds) {
    AnswerBoard board(Role::kWorker, 1);
    for (const std::string answered : kKinds) {
      if (answered != asked) board.put(answer(answered));
    }
    EXPECT_EQ(board.wait_for(question(asked), now()).status().code(), Code::kDeadlineExceeded) << asked;
    board.put(answer(asked));
    EXPECT_TRUE(board.wait_for(question(asked), now()).ok()) << asked;
    EXPECT_TRUE(board.wait_for(question(asked), now()).ok()) << asked << ": another thread may have asked it, too";
  }
}

TEST_F(AnswerBoardTest, TellsEpochsAndStepsApartByTheirNumbers) {
  board_.put(answer("epoch", 3));
  board_.put(answer("step", 7));
  EXPECT_FALSE(board_.wait_for(question("epoch", 7), now()).ok());
  EXPECT_FALSE(board_.wait_for(question("step", 3), now()).ok());
  EXPECT_TRUE(board_.wait_for(question("epoch", 3), now()).ok());
  EXPECT_TRUE(board_.wait_for(question("step", 7), now()).ok());
}

TEST_F(AnswerBoardTest, SaysWhatItWaitedForAtTheDeadline) {
  EXPECT_EQ(board_.wait_for(question("step", 7), now()).status().message(),
            "waiting for step 7: not everybody is there");
}

TEST_F(AnswerBoardTest, WaitsOnBehindADeadlineWhereTheCoordinatorDidNotRun) {
  const auto patience = std::make_shared<Patience>();
  patience->set_timeout(std::chrono::milliseconds(300));
  AnswerBoard board(Role::kWorker, 1, patience);
  patience->excuse(now());
  EXPECT_EQ(board.wait_for(question("step", 7), now()).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(now(), patience->until());
  patience->excuse(now());
  EXPECT_EQ(board.join(-1, now()).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(now(), patience->until());
}

TEST_F(AnswerBoardTest, WakesAllWhoWait) {
  std::future<Code> first = waiting_for(question("group")), second = waiting_for(question("group"));
  board_.put(answer("group"));
  EXPECT_EQ(first.get(), Code::kOk);
  EXPECT_EQ(second.get(), Code::kOk);
}

TEST_F(AnswerBoardTest, LeavesOutWhatAnswersNothing) {
  FromCoordinator message;
  message.mutable_alive();
  board_.put(message);
  EXPECT_FALSE(board_.wait_for({}, now()).ok());
}

TEST_F(AnswerBoardTest, EndsQuestionsToAMembershipWhenThereIsANewerOne) {
  ASSERT_TRUE(board_.proclaim({.number = 4, .workers = {0, 1}}));
  ASSERT_TRUE(board_.join(-1, now()).ok());
  board_.put(answer("epoch", 1));
  std::future<Code> group = waiting_for(question("group")), finish = waiting_for(question("finish"));
  ASSERT_TRUE(board_.proclaim({.number = 5, .workers = {0, 1}}));
  EXPECT_EQ(group.get(), Code::kCancelled);
  EXPECT_EQ(board_.wait_for(question("epoch", 1), in_time()).status().code(), Code::kCancelled) << "was forgotten";
  board_.put(answer("finish"));
  EXPECT_EQ(finish.get(), Code::kOk) << "which is of the run";
}

TEST_F(AnswerBoardTest, JoinsTheNewestMembershipThatThisProcessIsPartOf) {
  EXPECT_EQ(board_.joined(), -1);
  ASSERT_TRUE(board_.proclaim({.number = 0, .workers = {0}}));
  EXPECT_FALSE(board_.knows_membership(-1));
  EXPECT_EQ(board_.join(-1, now()).status().message(), "no membership after -1");
  EXPECT_TRUE(board_.is_superseded()) << "it is in none";
  ASSERT_TRUE(board_.proclaim({.number = 1, .workers = {0, 1}}));
  EXPECT_FALSE(board_.proclaim({.number = 1, .workers = {0}})) << "is known";
  EXPECT_TRUE(board_.knows_membership(0));
  EXPECT_FALSE(board_.knows_membership(1));
  const Result<MembershipEpoch> joined = board_.join(0, now());
  ASSERT_TRUE(joined.ok());
  EXPECT_THAT(joined->workers, testing::ElementsAre(0, 1));
  EXPECT_EQ(board_.joined(), 1);
  EXPECT_FALSE(board_.is_superseded());
}

TEST_F(AnswerBoardTest, EndsAllWaitsWhenTheProcessIsToStop) {
  std::future<Code> finish = waiting_for(question("finish"));
  auto joining = std::async(std::launch::async, [this] { return board_.join(-1, in_time()).status().code(); });
  EXPECT_FALSE(board_.is_off());
  EXPECT_TRUE(board_.stop());
  EXPECT_FALSE(board_.stop()) << "was told so before";
  EXPECT_TRUE(board_.is_off());
  EXPECT_EQ(finish.get(), Code::kCancelled);
  EXPECT_EQ(joining.get(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate::experiments
