#include "experiments/config/remote_shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;

TEST(SplitWords, DoesAsAShellDoes) {
  EXPECT_THAT(*split_words("ssh -o BatchMode=yes"), ElementsAre("ssh", "-o", "BatchMode=yes"));
  EXPECT_THAT(*split_words("  a  'b c'\"d e\" \\'  ''"), ElementsAre("a", "b cd e", "'", ""));
  EXPECT_THAT(*split_words("'a\\b' \"a\\\"b\""), ElementsAre("a\\b", "a\"b"));
  EXPECT_THAT(*split_words(""), ElementsAre());
}

TEST(SplitWords, RefusesAQuoteThatIsNotClosed) {
  EXPECT_EQ(split_words("ssh 'a").status().message(), "a ' is not closed");
}

// What the shell makes of a word.
std::string through_a_shell(const std::string& word) {
  FILE* shell = popen(("printf %s " + quoted(word)).c_str(), "r");
  std::string text;
  for (int c = fgetc(shell); c != EOF; c = fgetc(shell)) text += static_cast<char>(c);
  pclose(shell);
  return text;
}

TEST(Quoted, ComesThroughAShellAsItWas) {
  for (const char* word :
       {"plain", "/a/b-c_d.e=f", "two words", "it's", "$HOME `id` \"x\" \\", "a\nb", "*;&|<>(){}~#"}) {
    EXPECT_EQ(through_a_shell(word), word);
  }
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("/a/b-c_d.e=f"), "/a/b-c_d.e=f");
}

TEST(RemoteCommand, EntersTheDirectoryAndTakesTheShellsPlace) {
  const RemoteShell shell{.words = {"ssh", "-T"}, .program = "/opt/syncopate", .directory = "/home/me/my runs"};
  const std::string command = remote_command(shell, {{"OMP_NUM_THREADS", "1"}}, {shell.program, "--probe"});
  EXPECT_EQ(command, "cd '/home/me/my runs' && exec env OMP_NUM_THREADS=1 /opt/syncopate --probe");
  EXPECT_THAT(through_remote_shell(shell, "node1", command), ElementsAre("ssh", "-T", "node1", command));
}

}  // namespace
}  // namespace syncopate::experiments
