#include "library/presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace syncopate::library {
namespace {

using testing::HasSubstr;

TEST(Presence, ComesBackFromItsText) {
  const Presence own{.host = "node1",
                     .kernel = "boot/1/2",
                     .pid = 4711,
                     .secret_at = "@name",
                     .run_id = "run",
                     .address = "10.0.0.7",
                     .meets_at = "10.0.0.1"};
  const Result<Presence> read = Presence::parse(own.to_text());
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->to_text(), own.to_text());
  EXPECT_EQ(read->pid, 4711);
  EXPECT_EQ(read->meets_at, "10.0.0.1");
}

TEST(Presence, IsRefusedWhereItMakesNoSense) {
  for (const char* text : {"", "|", "host|kernel|pid|a|b|c|d", "host|kernel|1|a|b|c", "host|kernel|1|a|b|c|d|e",
                           "host|kernel|99999999999999999999|a|b|c|d"}) {
    EXPECT_EQ(Presence::parse(text).status().code(), Code::kDataLoss) << text;
  }
}

TEST(Presence, ShowsNoEscapeSequencesOfOthers) {
  const Result<Presence> read = Presence::parse("a\x1b[2J|kernel|1|at|run|\x1b|here");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->host.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->address.find('\x1b'), std::string::npos);
}

TEST(Presence, HasTheAddressOfTheWayToWhereRanksMeet) {
  const Result<Presence> own = Presence::of_this_process("127.0.0.1", "");
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->address, "127.0.0.1");
  EXPECT_TRUE(is_loopback(own->address));
  EXPECT_EQ(own->pid, getpid());
  EXPECT_THAT(Presence::of_this_process("127.0.0.1", "192.0.2.1").status().message(),
              HasSubstr("192.0.2.1: must be an address of this host"));
  EXPECT_EQ(Presence::of_this_process("no such host", "").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace syncopate::library
