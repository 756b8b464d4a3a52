// The doctor, on hosts that the test makes and harms.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/network_hosts_fixture.h"
#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr int kWell = 0, kWrong = 7;

class DoctorOnHosts : public testing_support::NetworkHostsTest {
 protected:
  ProgramEnd examine(const std::string& hosts) {
    Program program({"doctor", "--hosts=" + hosts, hosts_->remote_shell(), "--timeout=4",
                     "--output=" + (folder_.path() / "doctor.json").string()},
                    hosts_->on("home"));
    const ProgramEnd end = program.wait();
    std::istringstream lines(end.out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("JSON")) EXPECT_LE(line.size(), 82u) << line;  // a sign or two has more bytes than columns
    }
    return end;
  }
  nlohmann::json written() const { return nlohmann::json::parse(text_of(folder_.path() / "doctor.json")); }

  static std::string all() { return NetworkHosts::slots("localhost:1,a:1,b:1"); }

  TemporaryFolder folder_;
};

TEST_F(DoctorOnHosts, FindsAllWellAndMeasuresEachPair) {
  const ProgramEnd end = examine(all());
  EXPECT_EQ(end.exit_code, kWell) << end.out << end.err;
  EXPECT_THAT(end.out, HasSubstr("all is well"));
  const nlohmann::json json = written();
  ASSERT_THAT(json["hosts"], SizeIs(3));
  ASSERT_THAT(json["pairs"], SizeIs(3));
  for (const auto& pair : json["pairs"]) {
    EXPECT_GT(pair["bytes_per_second_there"].get<double>(), 1e6);
    EXPECT_GT(pair["bytes_per_second_back"].get<double>(), 1e6);
    EXPECT_GT(pair["latency_us"].get<double>(), 1);
  }
  for (const auto& host : json["hosts"]) {
    EXPECT_EQ(host["limits"]["mtu"], 1500);
    // One machine has one clock.
    EXPECT_LE(std::abs(host["clock_ms"].get<double>()), host["clock_within_ms"].get<double>() + 0.01);
  }
}

TEST_F(DoctorOnHosts, MeasuresWhatALinkCarries) {
  if (!hosts_->limit("a", "20mbit")) GTEST_SKIP() << "tc has no token bucket filter here";
  examine(NetworkHosts::slots("a:1,b:1"));
  const double rate = written()["pairs"][0]["bytes_per_second_there"];
  EXPECT_LT(8 * rate, 20e6);
  EXPECT_GT(8 * rate, 10e6);
}

TEST_F(DoctorOnHosts, NamesAHostThatCannotBeReachedAndExaminesTheOthers) {
  const ProgramEnd end = examine(NetworkHosts::slots("a:1,b:1") + ",10.77.0.9:1");
  EXPECT_EQ(end.exit_code, kWrong);
  EXPECT_THAT(end.out, ContainsRegex("wrong: host 10.77.0.9: cannot be examined: the remote shell ended with exit "
                                     "code[ \n]+255: no route to 10.77.0.9"));
  EXPECT_THAT(end.out, HasSubstr("\n1 wrong\n"));
  EXPECT_THAT(written()["pairs"], SizeIs(1));
}

TEST_F(DoctorOnHosts, NamesALinkThatIsBroken) {
  hosts_->cut("b");  // the shell into the namespace does not need it
  const ProgramEnd end = examine(NetworkHosts::slots("a:1,b:1"));
  EXPECT_EQ(end.exit_code, kWrong);
  EXPECT_THAT(end.out, HasSubstr("wrong: 10.77.0.2 and 10.77.0.3: cannot reach each other"));
  EXPECT_THAT(end.out, HasSubstr("fix: "));
}

TEST_F(DoctorOnHosts, NamesAnMtuThatTheOthersDoNotHave) {
  hosts_->set_mtu("b", 9000);
  const ProgramEnd end = examine(all());
  EXPECT_EQ(end.exit_code, kWrong);
  EXPECT_THAT(end.out, ContainsRegex("wrong: host 10.77.0.3: net has an MTU of 9000, and the other hosts' is 1500"));
}

TEST_F(DoctorOnHosts, RefusesWhatItDoesNotTake) {
  const ProgramEnd end = run_program({"doctor", "--host=a"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("did you mean --hosts?"));
}

}  // namespace
}  // namespace syncopate::testing_support
