#include "common/transport/run_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

TEST(RunKeys, AreOthersForEachRun) {
  const Result<RunKeys> one = RunKeys::make(), other = RunKeys::make();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->listener.secret_key, other->listener.secret_key);
  EXPECT_NE(one->connector.secret_key, other->connector.secret_key);
  EXPECT_NE(one->listener.public_key, one->connector.public_key);
}

TEST(RunKeys, ComeBackFromTheirText) {
  const Result<RunKeys> keys = RunKeys::make();
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->to_text().find('\n'), std::string::npos);
  const Result<RunKeys> again = RunKeys::parse(keys->to_text());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->listener.public_key, keys->listener.public_key);
  EXPECT_EQ(again->listener.secret_key, keys->listener.secret_key);
  EXPECT_EQ(again->connector.public_key, keys->connector.public_key);
  EXPECT_EQ(again->connector.secret_key, keys->connector.secret_key);
}

TEST(RunKeys, AreNotMadeOfAnythingElseNorIsThatShown) {
  const std::string text = RunKeys::make()->to_text();
  for (const std::string& wrong : {std::string(), text.substr(1), text + "0", std::string(160, ' ')}) {
    const Result<RunKeys> keys = RunKeys::parse(wrong);
    EXPECT_EQ(keys.status().code(), Code::kDataLoss);
    EXPECT_EQ(keys.status().message(), "what came are not the keys of a run");
  }
}

}  // namespace
}  // namespace syncopate
