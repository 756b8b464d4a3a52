#include "experiments/cluster/tasks/task_command.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

std::string whole() {
  return to_bytes({.environment = {{"A", "1"}, {"B", "x=y"}},
                   .on_gpu = true,
                   .arguments = {"--role=worker", "--rank=1"},
                   .input = SecretText("secret\n")});
}

TEST(TaskCommand, ComesBackAsItWas) {
  const Result<TaskCommand> command = parse_task_command(whole());
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->environment, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "x=y"}}));
  EXPECT_TRUE(command->on_gpu);
  EXPECT_EQ(command->arguments, (std::vector<std::string>{"--role=worker", "--rank=1"}));
  EXPECT_EQ(command->input.view(), "secret\n");
}

TEST(TaskCommand, StartsProcessesOfARunAlone) {
  for (const std::string first : {"--guard", "sh", "--probe", ""}) {
    EXPECT_EQ(parse_task_command(to_bytes({.arguments = {first}})).status().code(), Code::kDataLoss) << first;
  }
}

TEST(TaskCommand, RefusesAnyPartOfOneThatLacksItsInput) {
  const std::string bytes = whole().substr(0, whole().size() - 7);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_task_command(std::string_view(bytes).substr(0, size)).status().code(), Code::kDataLoss) << size;
  }
}

TEST(TaskCommand, RefusesAVariableWithoutAName) {
  EXPECT_EQ(parse_task_command(std::string("=x\0\0cpu\0--role=worker\0\0", 24)).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace syncopate::experiments
