// What is passed on to processes and to mpirun.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::text_of;

TEST(PassThroughOf, AnEnvironmentComesToAllProcessesAndIntoTheRecord) {
  setenv("PASSED_BY_NAME", "what, else", 1);
  Program program(training({"--mode=ps", "--environment=PASSED_ON=two words,PASSED_BY_NAME,OMP_NUM_THREADS=2"}));
  unsetenv("PASSED_BY_NAME");
  ASSERT_TRUE(program.wait_until_training(2));
  for (const auto& [role, rank] : {std::pair("worker", 1), std::pair("server", 0)}) {
    const std::string environment = text_of(fmt::format("/proc/{}/environ", program.process(role, rank)));
    EXPECT_THAT(environment, HasSubstr("PASSED_ON=two words"));
    EXPECT_THAT(environment, HasSubstr("PASSED_BY_NAME=what, else"));
    EXPECT_THAT(environment, HasSubstr("OMP_NUM_THREADS=2")) << "in place of ours";
    EXPECT_THAT(environment, testing::Not(HasSubstr("OMP_NUM_THREADS=1")));
  }
  EXPECT_THAT(text_of(program.output() / "config.toml"),
              HasSubstr(R"(environment = "PASSED_ON=two words,PASSED_BY_NAME=what\\, else,OMP_NUM_THREADS=2")"));
}

TEST(PassThroughOf, OptionsComeToMpirun) {
  Program program(
      training({"--mode=allreduce", "--launcher=mpirun", "--mpi-options=--tag-output --mca btl 'self,tcp'"}));
  ASSERT_TRUE(program.wait_until_training(2));
  std::string command;
  for (const auto& process : program.processes()) {
    const std::string words = text_of(fmt::format("/proc/{}/cmdline", process.pid));
    if (words.starts_with(std::string("mpirun") + '\0')) command = words;
  }
  for (char& c : command) c = c == '\0' ? ' ' : c;
  EXPECT_THAT(command, HasSubstr(" --tag-output --mca btl self,tcp -n 1 "));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace
}  // namespace syncopate::experiments
