#include "experiments/lab/predict/advise_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/lab/predict/advice.h"
#include "experiments/lab/predict/prediction_line.h"
#include "experiments/lab/predict/stretch_text.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using prediction::Lead;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string advised(const std::vector<std::string>& words) {
  using testing_support::operator+;
  const Result<std::string> text = prediction_text(std::vector<std::string>{"advise"} + words);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.ok() ? *text : "";
}

TEST(AdviseText, ClaimsNoDifferenceWithinTheErrors) {
  // With a fast link both modes hide their exchange.
  const std::string text =
      advised({"--profile=resnet50", "--workers=8", "--batch-size=64", "--step-time=0.292", "--shape=100gbit"});
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n8 workers\nthe best of each kind"), HasSubstr("- Fastest among synchronous ways"),
                    HasSubstr("no difference that this form could tell."),
                    HasSubstr("or faster they differ by less than 11."), HasSubstr("- Asynchronous workers reach"),
                    HasSubstr("How sure: against published measurements"), Not(HasSubstr("cost"))));
}

TEST(AdviseText, ClaimsADifferenceBeyondThem) {
  // VGG16's whole variables on servers: one of 411 MB keeps one server busy.
  const std::string text = advised({"--profile=vgg16", "--workers=16", "--batch-size=64", "--step-time=0.416",
                                    "--shape=25gbit", "--sharding=whole"});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("Fastest among synchronous ways: ring allreduce"),
            HasSubstr("\n  - 1 to 256 workers, in doublings: the forms cannot tell at 1, allreduce leads from 2 on.\n"),
            HasSubstr(" more: a difference beyond the worst errors of the forms.")));
}

TEST(AdviseText, SaysWhatDoesNotFit) {
  const std::string text = advised({"--profile=gpt2-xl", "--workers=4", "--batch-size=4", "--step-time=2",
                                    "--shape=10gbit", "--memory=24GB", "--servers=8"});
  EXPECT_THAT(text, AllOf(HasSubstr("- Nothing of allreduce fits into memory.\n"),
                          HasSubstr("- Left out for the 24GB of a worker's host"), HasSubstr("adam's state"),
                          HasSubstr("ring allreduce (24.92 GB at the least)")));
  EXPECT_THAT(advised({"--profile=gpt2-xl", "--workers=4", "--batch-size=4", "--step-time=2", "--shape=10gbit",
                       "--memory=10GB", "--servers=8"}),
              AllOf(HasSubstr("- No synchronous way fits into memory.\n"), Not(HasSubstr("the best of each"))));
}

TEST(AdviseText, HasCostsAndAnotherOrderWhereTheCheapestIsWanted) {
  const std::string text = advised({"--profile=resnet50", "--workers=1,4", "--batch-size=64", "--step-time=0.292",
                                    "--shape=10gbit", "--goal=cheapest", "--price-worker=3", "--price-server=2"});
  EXPECT_THAT(text, AllOf(HasSubstr("cost per million samples"), HasSubstr("- Cheapest among synchronous ways"),
                          HasSubstr(" for a million samples"),
                          HasSubstr("- One worker has nobody to agree with: there is nothing to choose.\n")));
}

TEST(AdviseText, TakesItsErrorsFromTheTables) {
  KnownErrors errors = known_errors();
  EXPECT_GT(errors.allreduce.worst, errors.allreduce.median);
  errors.servers = {.median = 0.123, .worst = 0.456, .tables = {"some-table"}};
  EXPECT_THAT(how_sure(errors), HasSubstr("servers: median error up to 12.3 % a table, worst 45.6 % (some-table)"));
}

TEST(StretchText, SaysWhoLeadsWhere) {
  const LeadNames names{"a leads", "b leads"};
  const auto shown = [](double value) { return std::to_string(static_cast<int>(value)) + " m"; };
  EXPECT_EQ(stretch_text({{1, 9, Lead::kFirst}}, names, shown), "a leads throughout");
  EXPECT_EQ(stretch_text({{1, 3, Lead::kFirst}, {3, 5, Lead::kNeither}, {5, 9, Lead::kSecond}}, names, shown),
            "a leads below 3 m, the forms cannot tell from 3 m to 5 m, b leads from 5 m on");
  EXPECT_EQ(whole_stretch_text({{1, 1, Lead::kSecond}, {2, 4, Lead::kNeither}, {5, 9, Lead::kFirst}}, names),
            "b leads at 1, the forms cannot tell from 2 to 4, a leads from 5 on");
}

}  // namespace
}  // namespace syncopate::experiments
