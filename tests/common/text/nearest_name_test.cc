#include "common/text/nearest_name.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

const std::vector<std::string> kNames = {"mnist", "gpt", "learning-rate", "batch-size", "workers"};

TEST(NearestName, ForgivesALetterOrTwo) {
  EXPECT_EQ(nearest_name("minst", kNames), "mnist");
  EXPECT_EQ(nearest_name("MNIST", kNames), "mnist");
  EXPECT_EQ(nearest_name("mist", kNames), "mnist");
  EXPECT_EQ(nearest_name("wrokesr", kNames), "workers");
  EXPECT_EQ(nearest_name("mxxst", kNames), "mnist");
  EXPECT_EQ(nearest_name("mxxxt", kNames), "");
}

TEST(NearestName, TakesNeighboursThatAreExchangedForOneMistake) {
  EXPECT_EQ(nearest_name("gtp", kNames), "gpt");
  EXPECT_EQ(nearest_name("tpg", kNames), "") << "two mistakes in three letters";
}

TEST(NearestName, KnowsShortForms) {
  EXPECT_EQ(nearest_name("lr", kNames), "learning-rate");
  EXPECT_EQ(nearest_name("batch", kNames), "batch-size");
  EXPECT_EQ(nearest_name("num-workers", kNames), "workers");
  EXPECT_EQ(nearest_name("", kNames), "");
}

TEST(NearestName, IsSaidOfAnEntry) {
  EXPECT_EQ(unknown_entry("worker", kNames), "worker: no such option; did you mean workers?");
  EXPECT_EQ(unknown_entry("colour", kNames), "colour: no such option; --help lists all");
}

}  // namespace
}  // namespace syncopate
