#include "experiments/lab/run/data_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunRequest two_workers(const std::string& dataset) {
  RunRequest request;
  request.mode = Mode::kAllreduce;
  request.workers = 2;
  request.batch_size = 32;
  request.dataset = dataset;
  request.model = "softmax";
  return request;
}

TEST(LeftOut, SaysWhichSamplesOfOwnDataFillNoBatchAndWhatTrainsThem) {
  RunRequest request = two_workers("iris.csv");
  EXPECT_EQ(left_out_text(resolved(request), 100),
            "36 of 100 training samples (36 %) are left out of each epoch, others in each: they fill no batch of 32 on "
            "each of 2 workers; --drop-last=off trains them in a smaller one");
  EXPECT_EQ(left_out_text(resolved(request), 128), "");
  request.shuffle = worker::Shuffle::kShard;
  EXPECT_THAT(left_out_text(resolved(request), 100), HasSubstr("; a smaller --batch-size leaves fewer out"))
      << "--drop-last=off is refused there";
  request.shuffle = worker::Shuffle::kOff;
  EXPECT_THAT(left_out_text(resolved(request), 100), HasSubstr("the same in each"));
  request.drop_last = false;
  EXPECT_EQ(left_out_text(resolved(request), 100), "");
}

TEST(LeftOut, IsSaidOfKnownSetsWhereItIsMore) {
  const ResolvedRun run = resolved(two_workers("digits"));
  EXPECT_THAT(left_out_text(run, 100), HasSubstr("36 of 100"));
  EXPECT_EQ(left_out_text(run, 60000), "") << "32 of 60,000";
}

TEST(DataFacts, QuoteClassesWhoseNamesHaveCommasAndTellOfNamesThatAreNumbers) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() / "table.csv";
  std::ofstream(path) << "0,1,kind\n1,2,\"red, dark\"\n3,4,blue\n1,2,\"red, dark\"\n3,4,blue\n1,2,\"a \"\"b\"\"\"\n"
                      << "1,2,\"a \"\"b\"\"\"\n";
  const Result<DataFacts> facts = data_facts_of(resolved(two_workers(path)));
  ASSERT_TRUE(facts.ok()) << facts.status().message();
  EXPECT_THAT(facts->description, HasSubstr("3 classes: \"a \"\"b\"\"\", blue, \"red, dark\""));
  EXPECT_THAT(facts->notes, ElementsAre(HasSubstr("taken for the names of the columns, though 2 of 3 are numbers")));
}

}  // namespace
}  // namespace syncopate::experiments
