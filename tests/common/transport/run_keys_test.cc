#include "common/transport/run_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.h>

#include <array>

namespace syncopate {
namespace {

TEST(RunKeys, AreOthersForEachRunAndPurpose) {
  const Result<RunKeys> one = RunKeys::make(), other = RunKeys::make();
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->derive("data"), one->derive("data"));
  EXPECT_NE(one->derive("data"), one->derive("control"));
  EXPECT_NE(one->derive("data"), other->derive("data"));
}

TEST(RunKeys, FollowFromASecretAndTheNameOfAJob) {
  const SecretText secret("0123456789abcdef0123456789abcdef"), other("0123456789abcdef0123456789abcdeF");
  const auto key = [](const SecretText& text, std::string_view job) { return RunKeys::of_job(text, job)->derive("x"); };
  EXPECT_EQ(key(secret, "job"), key(secret, "job"));
  EXPECT_NE(key(secret, "job"), key(secret, "job 2"));
  EXPECT_NE(key(secret, "job"), key(other, "job"));
}

TEST(RunKeys, GivePairsWhoseHalvesBelongTogether) {
  const RunKeys keys = *RunKeys::make();
  const RunKeys::Pair pair = keys.pair("worker-1");
  std::array<char, 41> public_half{};
  ASSERT_EQ(zmq_curve_public(public_half.data(), pair.secret_key.c_str()), 0);
  EXPECT_EQ(pair.public_key, public_half.data());
  EXPECT_NE(pair.public_key, keys.pair("worker-2").public_key);
}

TEST(RunKeys, ComeBackFromTheirText) {
  const Result<RunKeys> keys = RunKeys::make();
  ASSERT_TRUE(keys.ok());
  EXPECT_EQ(keys->to_text().view().find('\n'), std::string::npos);
  const Result<RunKeys> again = RunKeys::parse(keys->to_text().view());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->derive("data"), keys->derive("data"));
}

TEST(RunKeys, AreNotMadeOfAnythingElseNorIsThatShown) {
  const std::string text(RunKeys::make()->to_text().view());
  for (const std::string& wrong : {std::string(), text.substr(1), text + "0", std::string(64, ' ')}) {
    const Result<RunKeys> keys = RunKeys::parse(wrong);
    EXPECT_EQ(keys.status().code(), Code::kDataLoss);
    EXPECT_EQ(keys.status().message(), "what came is not the secret of a run");
  }
}

}  // namespace
}  // namespace syncopate
