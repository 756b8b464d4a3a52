// A host that is lost for good, in each mode: its link is cut while it trains. What becomes of the run stands as a
// table in docs/failures.md.
#include <algorithm>

#include "tests/experiments/hosts/several_hosts.h"

namespace syncopate::experiments {
namespace {

using testing::ContainsRegex;

// Host b is cut off. It has worker 1, or of four workers the last two, and server 1.
struct CutHost {
  const char* name;
  Flags mode;
  const char* slots;
  int workers;
  std::string lost;  // who ends the run, or is reported first; a regular expression of all that follows its state
  std::string then;
};

void PrintTo(const CutHost& cut, std::ostream* out) { *out << cut.name; }
const auto kNameOfCut = [](const auto& cut) { return std::string(cut.param.name); };

constexpr const char* kThree = "a:1,b:1,localhost:1";
constexpr const char* kNeeded = "; (stalled for .*; )?this mode needs every worker";

std::string silence_of(const std::string& name) {
  return fmt::format(
      "{} \\(host {}, pid [0-9]+; [a-z ]+( at step [0-9]+)?, last heard [0-9.]+ s ago\\) has stopped "
      "answering",
      name, kB);
}

class CutOffHost : public SeveralHosts, public testing::WithParamInterface<CutHost> {
 protected:
  void SetUp() override {
    const bool is_of_mpi = std::ranges::count(GetParam().mode, "--launcher=mpirun") > 0;
    if (is_of_mpi && testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
    SeveralHosts::SetUp();
  }
  Program& train_and_cut() {
    Program& program = train(GetParam().slots, GetParam().mode, GetParam().workers);
    hosts_->cut("b");
    return program;
  }
};

class HostThatARunNeeds : public CutOffHost {};

INSTANTIATE_TEST_SUITE_P(
    Under, HostThatARunNeeds,
    testing::Values(CutHost{"Ring", {"--mode=allreduce", "--collective=ring"}, kThree, 3, "worker 1", kNeeded},
                    CutHost{"Hierarchical",
                            {"--mode=allreduce", "--collective=hierarchical"},
                            "a:2,b:2",
                            4,
                            "worker [23]",
                            std::string(", as have all others on its host: worker [23]") + kNeeded},
                    CutHost{"PsAggregated",
                            {"--mode=ps", "--servers=1", "--consistency=sync", "--aggregation=host"},
                            "a:2,b:2",
                            4,
                            "worker [23]",
                            std::string(", as have all others on its host: worker [23]") + kNeeded},
                    CutHost{"OpenMpi",
                            {"--mode=allreduce", "--collective=mpi", "--launcher=mpirun"},
                            "a:1,b:1",
                            2,
                            "worker 1",
                            kNeeded},
                    CutHost{"PsWithAServerThere",
                            {"--mode=ps", "--servers=2"},
                            kThree,
                            3,
                            "server 1",
                            "(, as have all others on its host: worker 1)?"}),
    kNameOfCut);

TEST_P(HostThatARunNeeds, IsNamedInTime) {
  Program& program = train_and_cut();
  ASSERT_TRUE(trains_);
  // Which of the two was heard last is chance; the run goes on without the worker.
  const std::string worker_first = "(" + silence_of("worker 1") + "[^\n]*; 2 workers go on\n)?";
  expect_verdict(program, ExitCode::kTimeout, silence_of(GetParam().lost) + GetParam().then, worker_first);
}

class HostThatARunLivesWithout : public CutOffHost {
 protected:
  // Returns how many worker 0 has made, which is on another host.
  std::int64_t steps() const { return std::ranges::count(program_->column("steps.csv", "worker"), "0"); }
};

INSTANTIATE_TEST_SUITE_P(
    Under, HostThatARunLivesWithout,
    testing::Values(
        CutHost{"PsAsync", {"--mode=ps", "--servers=1"}, kThree, 3, "worker 1", "; 2 workers go on"},
        CutHost{
            "PsSync", {"--mode=ps", "--servers=1", "--consistency=sync"}, kThree, 3, "worker 1", "; 2 workers go on"},
        CutHost{"PsWithStandbys",
                {"--mode=ps", "--servers=2", "--replicas=1"},
                kThree,
                3,
                "server 1",
                "[^\n]*; standby 1 takes its place"},
        CutHost{
            "Elastic", {"--mode=allreduce", "--elastic"}, kThree, 3, "worker 1", "; stalled for .*; 2 workers go on"}),
    kNameOfCut);

TEST_P(HostThatARunLivesWithout, IsNamedAndTheOthersTrainOn) {
  Program& program = train_and_cut();
  ASSERT_TRUE(trains_);
  const auto is_said = [&] { return program.errors().find(" go on") != std::string::npos; };
  ASSERT_TRUE(program.wait_until("the workers' loss is said", is_said));
  const std::int64_t before = steps();
  ASSERT_TRUE(program.wait_until("the others train on", [&] { return steps() > before + 20; }));
  program.signal(SIGINT);
  const ProgramEnd end = program.wait(kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kInterrupted));
  EXPECT_THAT(end.err, ContainsRegex(silence_of(GetParam().lost) + GetParam().then));
  EXPECT_THAT(program.processes(), testing::IsEmpty());
}

// The server cannot be started again where it was.
TEST_F(SeveralHosts, GoOnFromACheckpointOnThoseThatAreLeft) {
  const testing_support::TemporaryFolder folder;
  const Flags mode{"--mode=ps", "--servers=2", "--checkpoint-every=20", "--resume=auto",
                   "--output=" + (folder.path() / "run").string()};
  train(kThree, mode, 3);
  ASSERT_TRUE(trains_);
  ASSERT_TRUE(program_->wait_until("there is a checkpoint",
                                   [&] { return std::filesystem::exists(folder.path() / "run/checkpoints"); }));
  hosts_->cut("b");
  const ProgramEnd end = program_->wait(2 * kDeadline);
  EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kTimeout)) << end.err;
  EXPECT_THAT(end.err, ContainsRegex(silence_of("server 1") + ".*; it is started again, and all go back to "));
  EXPECT_THAT(end.err, ContainsRegex("server 1 \\(host " + kB +
                                     "\\) has not said hello for [0-9.]+ s, started again "
                                     "there; on hosts that are left, --resume=auto goes on from "));

  Program& rest = start("a:2,localhost:1", training(mode, "--steps=2000"));
  const ProgramEnd last = rest.wait();
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.err + last.out, testing::HasSubstr("checkpoints/step-"));
}

}  // namespace
}  // namespace syncopate::experiments
