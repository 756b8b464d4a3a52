#include "experiments/config/variable_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

std::string variables_refusal(const std::string& text, const std::string& prefix = "") {
  return parse_variables(text, prefix).status().message();
}

TEST(VariableList, HasNamesAndValues) {
  EXPECT_THAT(*parse_variables("A=1,B_2=two words,C=,D=x=y"),
              ElementsAre(Pair("A", "1"), Pair("B_2", "two words"), Pair("C", ""), Pair("D", "x=y")));
}

TEST(VariableList, TakesACommaBehindABackslash) {
  const Result<VariableList> variables = parse_variables(R"(A=1\,2,B=C:\\x)");
  EXPECT_THAT(*variables, ElementsAre(Pair("A", "1,2"), Pair("B", R"(C:\x)")));
  EXPECT_EQ(to_text(*variables), R"(A=1\,2,B=C:\\x)");
  EXPECT_EQ(parse_variables("A=1\\")->front().second, "1\\");
}

TEST(VariableList, SaysWhatIsWrong) {
  EXPECT_THAT(variables_refusal("A=1,2"), StartsWith("'2' must be a name of letters, digits and underscores"));
  for (const char* name : {"", "=1", "1A=1", "A B=1", "A-B=1", "A=1,,B=2"}) {
    EXPECT_THAT(variables_refusal(name), HasSubstr("must be a name")) << name;
  }
  EXPECT_EQ(variables_refusal("A"), "A lacks its value, as in A=1");
  EXPECT_EQ(variables_refusal("A=1,A=2"), "A is given twice; once is enough");
  EXPECT_THAT(variables_refusal("A=1\n2"), HasSubstr("line break"));
}

TEST(VariableList, TakesNamesOfAPrefixAlone) {
  EXPECT_THAT(*parse_variables("NCCL_ALGO=Ring", "NCCL_"), ElementsAre(Pair("NCCL_ALGO", "Ring")));
  for (const char* name : {"PATH=/bin", "NCCL_=1", "nccl_algo=Ring"}) {
    EXPECT_THAT(variables_refusal(name, "NCCL_"), HasSubstr("begins with NCCL_")) << name;
  }
}

TEST(VariableList, GivesANameAloneTheValueThatItHasHere) {
  const Variables here{{"A", "1,2"}, {"EMPTY", ""}};
  EXPECT_EQ(*with_values_of(here, "A,B=2,EMPTY"), R"(A=1\,2,B=2,EMPTY=)");
  EXPECT_EQ(with_values_of(here, "B").status().message(), "B is not set here; set it, or give B=VALUE");
}

TEST(VariableList, ReplacesWhatThereIs) {
  VariableList variables{{"A", "1"}, {"B", "2"}};
  set_variables(variables, {{"B", "3"}, {"C", "4"}});
  EXPECT_THAT(variables, ElementsAre(Pair("A", "1"), Pair("B", "3"), Pair("C", "4")));
}

TEST(PassThrough, IsReadFromTheLine) {
  const Result<CommandLine> line = parse({"--mode=allreduce", "--launcher=mpirun", "--mpi-options=--mca btl 'self,tcp'",
                                          "--environment=A=1,B=2", "--environment=C=3"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.mpi_options, "--mca btl 'self,tcp'");
  EXPECT_EQ(to_text(line->config.environment), "A=1,B=2,C=3");
}

TEST(PassThrough, IsRefusedWhereItHasNoEffect) {
  EXPECT_THAT(refusal({"--mode=allreduce", "--mpi-options=-v"}),
              HasSubstr("has an effect only with --launcher=mpirun"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--nccl-options=NCCL_ALGO=Ring"}),
              HasSubstr("has an effect only with --mode=allreduce and --collective=nccl"));
  EXPECT_THAT(refusal({"--cluster=simulated", "--compute=5ms", "--environment=A=1"}), HasSubstr("has an effect only"));
}

TEST(PassThrough, IsRefusedWhereItCannotBeRead) {
  EXPECT_THAT(refusal({"--environment=A"}), StartsWith("--environment=A: A is not set here"));
  EXPECT_THAT(refusal({"--environment=1=2"}), StartsWith("--environment=1=2: '1' must be a name"));
  EXPECT_THAT(refusal({"--nccl-options=ALGO=Ring"}), HasSubstr("begins with NCCL_"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--launcher=mpirun", "--mpi-options=-n 2 : -n 3"}), HasSubstr("colon"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--launcher=mpirun", "--mpi-options='"}), StartsWith("--mpi-options='"));
}

}  // namespace
}  // namespace syncopate::experiments
