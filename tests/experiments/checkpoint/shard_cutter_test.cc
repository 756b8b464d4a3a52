#include "experiments/checkpoint/shard_cutter.h"

#include <deque>

#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

using Kind = CheckpointReport::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::TemporaryFolder;

// A shard that is asked, and answers when the test wants.
class AShard : public testing::Test {
 protected:
  struct Asked {
    std::int64_t version;
    TrainingState memory;
    ShardCutter::StateDone done;
  };

  std::unique_ptr<ShardCutter> cutter(const CheckpointInterval& interval, bool together = true,
                                      std::int64_t period = 1) {
    auto cutter = std::make_unique<ShardCutter>(ShardCutterOptions{.folder = folder_.path(),
                                                                   .writer = "shard-1",
                                                                   .interval = interval,
                                                                   .together = together,
                                                                   .period = period},
                                                forms_, [this](const CheckpointReport& report) {
                                                  const std::lock_guard lock(mutex_);
                                                  reports_.push_back(report);
                                                });
    cutter->begin(0, 0, [this](std::int64_t version, TrainingState memory, ShardCutter::StateDone done) {
      asked_.push_back({version, std::move(memory), std::move(done)});
    });
    return cutter;
  }
  std::vector<std::int64_t> versions() const {
    std::vector<std::int64_t> versions;
    for (const Asked& asked : asked_) versions.push_back(asked.version);
    return versions;
  }
  void answer(std::size_t index) { asked_[index].done(small_shard(1)); }

  TemporaryFolder folder_;
  const StateForms forms_ = small_forms();
  std::mutex mutex_;
  std::vector<CheckpointReport> reports_;
  std::deque<Asked> asked_;
};

TEST_F(AShard, IsAskedForTheNextOfEverySoManyUpdatesAheadOfIt) {
  const auto cutter = this->cutter({.steps = 6}, true, 2);
  EXPECT_THAT(versions(), ElementsAre(3));
  answer(0);
  cutter->finish();
  EXPECT_THAT(versions(), ElementsAre(3, 6));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].kind, Kind::kWritten) << reports_[0].reason;
  EXPECT_EQ(reports_[0].step, 6);
  EXPECT_EQ(reports_[0].part.writer, "shard-1");
  cutter->on_order(0, 12);
  EXPECT_THAT(versions(), SizeIs(2)) << "what is counted is not asked for twice";
}

TEST_F(AShard, IsAskedForWhatIsOrderedBesidesWhatIsCounted) {
  const auto cutter = this->cutter({.steps = 6}, true, 2);
  cutter->on_order(0, 4);
  EXPECT_THAT(versions(), ElementsAre(3, 2));
  answer(1);
  cutter->finish();
  EXPECT_THAT(versions(), SizeIs(2)) << "the next of the count is asked for already";
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].step, 4);
}

TEST_F(AShard, IsAskedForWhatIsOrdered) {
  const auto cutter = this->cutter({.seconds = 1});
  EXPECT_THAT(asked_, IsEmpty());
  cutter->on_order(0, 17);
  cutter->on_order(5, 20);  // of another membership epoch
  EXPECT_THAT(versions(), ElementsAre(17));
}

TEST_F(AShard, ThatMovesAtItsOwnPaceIsAskedForItsStateOfNow) {
  const auto cutter = this->cutter({.steps = 10}, false);
  cutter->on_order(0, 17);
  EXPECT_THAT(versions(), ElementsAre(0));
  answer(0);
  cutter->finish();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].step, 17);
}

TEST_F(AShard, ThatHasPassedTheUpdateIsAskedForTheNextOne) {
  const auto cutter = this->cutter({.steps = 6});
  asked_[0].done(Status::invalid_argument("7 have been made"));
  EXPECT_THAT(versions(), ElementsAre(6, 12));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].kind, Kind::kPassed);
}

TEST_F(AShard, ThatHoldsNothingSaysSoAndIsNotAskedForMore) {
  const auto cutter = this->cutter({.steps = 6});
  asked_[0].done(TrainingState());
  EXPECT_THAT(versions(), ElementsAre(6));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].kind, Kind::kNothing);
}

TEST_F(AShard, IsNotAskedAnyMoreOnceItIsGone) {
  const auto cutter = this->cutter({.steps = 6});
  cutter->end();
  asked_[0].done(Status::cancelled("ended"));
  EXPECT_THAT(versions(), ElementsAre(6));
  EXPECT_THAT(reports_, IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
