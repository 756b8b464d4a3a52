// --fault where processes are on other hosts: what stands beside them there signals them.
#include <algorithm>
#include <string>

#include "tests/experiments/hosts/several_hosts.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;

class FaultsOnOtherHosts : public SeveralHosts {
 protected:
  static constexpr int kSteps = 600;
  static constexpr int kLongTimeoutSeconds = 30 * testing_support::kSlowness;

  ProgramEnd run_with(const std::string& fault, const Flags& mode, int timeout_seconds = kLongTimeoutSeconds) {
    return start("a:1,b:1,localhost:1",
                 training(mode + Flags{"--fault=" + fault}, fmt::format("--steps={}", kSteps), timeout_seconds))
        .wait();
  }
  nlohmann::json fault() const {
    const nlohmann::json faults = program_->summary()["faults"];
    return faults.is_array() && !faults.empty() ? faults[0] : nlohmann::json::object();
  }
  std::int64_t steps_of(const std::string& worker) const {
    return std::ranges::count(program_->column("steps.csv", "worker"), worker);
  }
};

const Flags kPs{"--mode=ps", "--servers=1", "--work=quota"};

TEST_F(FaultsOnOtherHosts, KillBeforeTheStepThatIsNamed) {
  const ProgramEnd end = run_with("kill:worker1@step123", kPs);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(fault().value("outcome", ""), "killed worker 1 (host " + kB + ")");
  EXPECT_EQ(steps_of("1"), 123) << "steps 0 to 122";
  EXPECT_THAT(end.err,
              ContainsRegex("worker 1 \\(host " + kB + ", .* was killed by signal 9 \\(Killed\\); 2 workers go on"));
}

TEST_F(FaultsOnOtherHosts, StopForAMomentThatIsSatOut) {
  const ProgramEnd end = run_with("stop:server0@step100+300ms", kPs);
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(fault().value("outcome", ""), "stopped server 0 (host " + kA + ") for 0.3 s");
  // Orders need some time to reach another host: a step may end before the first, and the second may come sooner.
  double longest_us = 0;
  for (const std::string& total : program_->column("steps.csv", "total_us")) {
    longest_us = std::max(longest_us, std::stod(total));
  }
  EXPECT_GE(longest_us, 0.1e6);
  for (const char* worker : {"0", "1", "2"}) EXPECT_EQ(steps_of(worker), kSteps);
}

TEST_F(FaultsOnOtherHosts, StopForGoodIsASilenceAndNothingIsLeft) {
  const ProgramEnd end = run_with("stop:worker0@step100+3600s", {"--mode=allreduce"}, kTimeoutSeconds);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kTimeout)) << end.err;
  EXPECT_THAT(end.err, ContainsRegex("worker 0 \\(host " + kA + ", .* has stopped answering"));
  EXPECT_THAT(program_->processes(), testing::IsEmpty());
}

TEST_F(FaultsOnOtherHosts, CutLinksToo) {
  const ProgramEnd end = run_with("cut:worker1@step100+300ms", {"--mode=allreduce", "--collective=ring"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(fault().value("outcome", ""), HasSubstr("cut the links of worker 1 for 0.3 s"));
  EXPECT_GE(fault().value("seconds_to_all_steps", 0.0), 0.3);
}

TEST_F(FaultsOnOtherHosts, KillAStandbyThatIsThenStartedAgain) {
  const ProgramEnd end =
      run_with("kill:standby0@step100", kPs + Flags{"--replicas=1", "--respawn=0.1", "--straggler=all:+1"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("killed standby 0 (host " + kB + ")"));
  EXPECT_THAT(end.err, HasSubstr("standby 0 is back"));
}

}  // namespace
}  // namespace syncopate::experiments
