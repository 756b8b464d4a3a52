#include "library/value_proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>

#include "common/transport/inproc_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/test_keys.h"

namespace syncopate::library {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::run_ranks;
using testing_support::soon;
using testing_support::test_keys;
using Values = Result<std::vector<std::string>>;

TEST(ValueProof, HoldsForOneValueAtOnePlaceOfOneJob) {
  const std::string text = with_proof(test_keys(), "0/2 main", "127.0.0.1:4711");
  EXPECT_EQ(proven(test_keys(), "0/2 main", text), "127.0.0.1:4711");
  EXPECT_FALSE(proven(test_keys(), "1/2 main", text));
  EXPECT_FALSE(proven(*RunKeys::make(), "0/2 main", text));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(proven(test_keys(), "0/2 main", changed)) << changed;
    EXPECT_FALSE(proven(test_keys(), "0/2 main", text.substr(0, at))) << at;
  }
  EXPECT_EQ(proven(test_keys(), "", with_proof(test_keys(), "", "")), "");
}

TEST(ValueProof, TellsPlaceAndValueApart) {
  EXPECT_NE(with_proof(test_keys(), "a", "bc").substr(2), with_proof(test_keys(), "ab", "c").substr(1));
  EXPECT_NE(place_in("main", 1, 12), place_in("main", 11, 2));
}

// A store to which others write: a change comes between what is published and what is read.
class OpenRendezvous final : public Rendezvous {
 public:
  Values exchange(const std::string& group, int rank, int size, const std::string& value, TimePoint deadline) override {
    Values values = inner_.exchange(group, rank, size, value, deadline);
    if (values.ok() && intruder) intruder(group, *values);
    return values;
  }
  std::function<void(const std::string& group, std::vector<std::string>& values)> intruder;

 private:
  InProcRendezvous inner_;
};

// What two members get of each other.
std::vector<Values> exchanged(OpenRendezvous& open, const std::string& group = "main") {
  std::vector<Values> got(2, Status::internal("nothing"));
  run_ranks(2, [&](int rank) {
    ProvenRendezvous proving(open, test_keys());
    got[static_cast<std::size_t>(rank)] = proving.exchange(group, rank, 2, rank == 0 ? "a" : "b", soon());
  });
  return got;
}

TEST(ProvenRendezvous, GivesWhatMembersHaveSaid) {
  OpenRendezvous open;
  for (const Values& values : exchanged(open)) {
    ASSERT_TRUE(values.ok()) << values.status().message();
    EXPECT_THAT(*values, ElementsAre("a", "b"));
  }
}

TEST(ProvenRendezvous, BelievesNothingThatAnIntruderHasWritten) {
  const std::string foreign = with_proof(*RunKeys::make(), place_in("main", 1, 2), "b");
  const std::string moved = with_proof(test_keys(), place_in("main", 0, 2), "a");
  const std::string of_another_group = with_proof(test_keys(), place_in("other", 1, 2), "b");
  for (const std::string& written : {std::string("127.0.0.1:9"), std::string(), foreign, moved, of_another_group}) {
    OpenRendezvous open;
    open.intruder = [&](const std::string&, std::vector<std::string>& values) { values[1] = written; };
    for (const Values& values : exchanged(open)) {
      EXPECT_EQ(values.status().code(), Code::kDataLoss);
      EXPECT_THAT(values.status().message(), HasSubstr("the value of member 1 for 'main' does not prove to be of this "
                                                       "job: another process, most likely an intruder"));
    }
  }
}

}  // namespace
}  // namespace syncopate::library
