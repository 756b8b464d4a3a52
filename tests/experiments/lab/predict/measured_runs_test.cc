#include "experiments/lab/predict/measured_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/lab/predict/prediction_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class MeasuredTable : public testing::Test {
 protected:
  std::string table(const std::string& text) {
    const std::string path = (folder_.path() / "runs.csv").string();
    std::ofstream(path) << text;
    return path;
  }
  Result<MeasuredRuns> read(const std::string& text, const GivenOptions& more = {}) {
    GivenOptions given = {{"servers", "2"}, {"sharding", "even"}, {"bucket-bytes", "25000000"}};
    for (const auto& [name, value] : more) given[name] = value;
    return read_measured_runs(table(text), given);
  }
  std::string refusal(const std::string& text) { return read(text).status().message(); }
  Result<std::string> predicted(const std::string& text, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", "--profile=resnet50", "--shape=25gbit+50us",
                                      "--measured=" + table(text)};
    words.insert(words.end(), more.begin(), more.end());
    return prediction_text(words);
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(MeasuredTable, HasEachWayAndSizeOnceWithTheMedianOfItsRepeats) {
  const Result<MeasuredRuns> read = this->read(
      "mode,workers,samples_per_second,batch_size,servers\n"
      "allreduce:ring,1,220,64,\nallreduce:tree,4,800,64,\nallreduce:tree,4,860,64,\nallreduce:tree,4,820,64,\n"
      "ps:sync,4,700,64,each\nps:sync,8,1400,64,3\nps:sync,16,2800,64,\nps:async,8,1500,64,2\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(read->runs, SizeIs(5));
  EXPECT_EQ(read->runs[1].plan.exchange, prediction::Exchange::kTree);
  EXPECT_EQ(read->runs[1].samples_per_second, 820);
  EXPECT_TRUE(read->runs[2].plan.colocated);
  EXPECT_EQ(read->runs[2].plan.servers, 4);
  EXPECT_EQ(read->runs[3].plan.servers, 3);
  EXPECT_EQ(read->runs[4].plan.servers, 2);
  EXPECT_EQ(read->job.batch_size, 64);
  EXPECT_EQ(read->job.samples_per_second_alone, 220);
  EXPECT_THAT(read->left_out, testing::ElementsAre("ps:async with 8 workers: no form describes it"));
}

// One worker with a server on another host exchanges as others do.
TEST_F(MeasuredTable, TellsAWorkerThatIsAloneFromOneWithAServer) {
  const Result<MeasuredRuns> read =
      this->read("mode,workers,samples_per_second,batch_size\nallreduce,1,213,64\nps:sync,1,34,64\nps:sync,4,60,64\n");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->runs, SizeIs(3));
  EXPECT_EQ(read->job.samples_per_second_alone, 213);
}

TEST_F(MeasuredTable, MayHaveBlanksAroundCommasAndLinesBehindIt) {
  const Result<MeasuredRuns> read =
      this->read("workers , samples_per_second\r\n1 , 219\r\n4,\t801\r\n\r\n", {{"batch-size", "64"}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(read->runs, SizeIs(2));
}

TEST_F(MeasuredTable, TakesStepsInPlaceOfRates) {
  const Result<MeasuredRuns> read = this->read("workers,step_ms\n8,320\n", {{"batch-size", "64"}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_NEAR(read->runs.front().samples_per_second, 1600, 1e-9);
}

TEST_F(MeasuredTable, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(refusal("hosts,rate\n1,2\n"),
              AllOf(HasSubstr("its first line must name the columns workers, and"), HasSubstr("it is \"hosts,rate\"")));
  EXPECT_THAT(refusal("workers,samples_per_second\n"), HasSubstr("has no row below its first line"));
  EXPECT_THAT(refusal("workers,samples_per_second\n4,fast\n"),
              HasSubstr("runs.csv: line 2: samples_per_second: fast: must be a number above 0"));
  EXPECT_THAT(refusal("workers,samples_per_second\n4,1\n0,1\n"), HasSubstr("line 3: workers: 0: must be 1 to 65536"));
  EXPECT_THAT(refusal("workers,samples_per_second\n4,nan\n"), HasSubstr("must be a number above 0"));
  EXPECT_THAT(refusal("workers,step_ms\n4,1\n"), HasSubstr("add --batch-size"));
  EXPECT_THAT(refusal("workers,samples_per_second\n1,220\n"), HasSubstr("has no run of several workers"));
  EXPECT_THAT(refusal("mode,workers,samples_per_second\nps:async,4,220\n"),
              HasSubstr("a form describes; ps:async with 4 workers: no form describes it"));
  EXPECT_THAT(refusal("workers,samples_per_second,batch_size\n4,800,32\n4,800,64\n"),
              HasSubstr("must be of one job; there are batch_size 32 and batch_size 64"));
  EXPECT_THAT(read_measured_runs("/no/such.csv", {}).status().message(), HasSubstr("--measured: /no/such.csv"));
}

TEST_F(MeasuredTable, IsCarriedToOtherSizesWithIntervals) {
  const Result<std::string> text =
      predicted("workers,samples_per_second,batch_size\n1,219,64\n4,800,64\n8,1560,64\n", {"--workers=16,32"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("Fitted to what was measured; nominally: 0.2922 s a step of 64 samples alone"),
                           HasSubstr("ring allreduce, fitted to 1, 4 and 8 workers: a step alone takes "),
                           HasSubstr(" to "), HasSubstr("reproduce fitted-sizes"), Not(HasSubstr("beware"))));
}

// Words follow figures: a table that no form comes to, sizes far beyond it, and a link that no run has crossed.
TEST_F(MeasuredTable, WarnsWhereItSaysLittle) {
  EXPECT_THAT(*predicted("workers,samples_per_second,batch_size\n1,219,64\n4,1200,64\n8,1300,64\n", {"--workers=16"}),
              AllOf(HasSubstr("beware: the form of ring allreduce does not come to what was measured"),
                    HasSubstr("4 workers have 1,200")));
  EXPECT_THAT(*predicted("workers,samples_per_second,batch_size\n1,219,64\n4,800,64\n", {"--workers=64"}),
              HasSubstr("beware: 64 workers are 16 times as many as ring allreduce was measured with"));
  EXPECT_THAT(*predicted("workers,samples_per_second,batch_size\n1,219,64\n4,800,64\n",
                         {"--workers=16", "--workers-per-host=8"}),
              HasSubstr("no run of ring allreduce crossed from host to host"));
}

TEST_F(MeasuredTable, IsRefusedBesideWhatContradictsIt) {
  const std::string sizes = "workers,samples_per_second,batch_size\n1,219,64\n4,800,64\n";
  EXPECT_THAT(predicted(sizes, {"--workers=8", "--batch-size=32"}).status().message(),
              HasSubstr("--batch-size=32: what was measured has 64 samples a step"));
  EXPECT_THAT(predicted(sizes, {"--workers=8", "--simulate=fifo"}).status().message(),
              HasSubstr("--simulate and --measured"));
  EXPECT_EQ(predicted("workers,samples_per_second\n1,219\n4,800\n", {"--workers=8"}).status().message(),
            "--batch-size is missing: the samples of a worker's step, of which what was measured does not tell");
  EXPECT_THAT(prediction_text({"study", "x", "--to=workers="}).status().message(),
              HasSubstr("--to=workers=: must be --to=workers=64,256"));
  EXPECT_THAT(prediction_text({"study", "--to=workers=8"}).status().message(),
              HasSubstr("needs the folder of a study"));
  EXPECT_THAT(prediction_text({"study", "x", "--to=servers=8"}).status().message(),
              HasSubstr("--to=servers=8: must be --to=workers=64,256"));
}

TEST_F(MeasuredTable, LeavesAPageAndFigures) {
  const std::string output = (folder_.path() / "out").string();
  const Result<std::string> text =
      predicted("workers,samples_per_second,batch_size\n1,219,64\n4,800,64\n", {"--workers=8", "--output=" + output});
  ASSERT_TRUE(text.ok()) << text.status().message();
  const auto json = nlohmann::json::parse(testing_support::text_of(output + "/prediction.json"));
  EXPECT_EQ(json["fits"][0]["measured_workers"], nlohmann::json({1, 4}));
  EXPECT_THAT(json["rows"], SizeIs(3));
  const auto& asked = json["rows"][2];
  EXPECT_TRUE(asked["measured_samples_per_second"].is_null());
  EXPECT_LT(asked["samples_per_second_low"], asked["samples_per_second"]);
  EXPECT_LT(asked["samples_per_second"], asked["samples_per_second_high"]);
  EXPECT_THAT(testing_support::text_of(output + "/prediction.csv"), HasSubstr("samples_per_second_low"));
  EXPECT_THAT(testing_support::text_of(output + "/report.html"), HasSubstr("Rings: what was measured."));
}

}  // namespace
}  // namespace syncopate::experiments
