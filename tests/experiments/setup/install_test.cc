// Whether setup/build.sh installs packages, with stand-ins for the package manager and for sudo.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::text_of;

struct End {
  int exit_code = -1;
  std::string output;
};

class Install : public testing::Test {
 protected:
  Install() {
    fs::permissions(root(), fs::perms::all);
    fs::create_directories(root() / "setup");
    fs::create_directories(root() / "bin");
    fs::create_directories(root() / "build");
    fs::permissions(root() / "build", fs::perms::all);
    fs::copy_file(fs::path(testing_support::source_directory()) / "setup/build.sh", root() / "setup/build.sh");
    std::ofstream(root() / "setup/packages.txt") << "# what is needed\nlibwanted-dev  since it is wanted\n";
    stand_in("dpkg-query", "exit 1");
    stand_in("apt-get", "echo \"apt-get $*\" >>" + calls().string());
    stand_in("sudo", "echo sudo >>" + calls().string() + "; [ \"$1\" != -n ] || shift; exec \"$@\"");
  }

  const fs::path& root() const { return folder_.path(); }
  fs::path calls() const { return root() / "build/calls"; }

  void stand_in(const std::string& name, const std::string& does) const {
    const fs::path path = root() / "bin" / name;
    std::ofstream(path) << "#!/bin/sh\n" << does << "\n";
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  }

  // Installs what is missing as root or as somebody else, with `variables` set ("CI=true").
  End install(bool as_root, const std::string& variables, bool at_a_terminal = false, const std::string& typed = "") {
    const std::string somebody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
    const std::string script = fmt::format("source {}/setup/build.sh; install_packages packages", root().string());
    std::string command = fmt::format("env -u CI -u SYNCOPATE_INSTALL {} PATH={}/bin:$PATH {}bash -c '{}'", variables,
                                      root().string(), as_root ? "" : somebody, script);
    std::ofstream(root() / "command") << command << "\n";
    std::ofstream(root() / "typed") << typed;
    command = "sh " + (root() / "command").string();
    if (at_a_terminal) command = "script --quiet --return --command '" + command + "' /dev/null";
    FILE* output = popen((command + " 2>&1 <" + (root() / "typed").string()).c_str(), "r");
    End end;
    char text[4096];
    for (std::size_t count = 0; (count = fread(text, 1, sizeof(text), output)) > 0;) end.output.append(text, count);
    const int status = pclose(output);
    end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return end;
  }

  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can try both as root and as another user";
  }

  testing_support::TemporaryFolder folder_;
};

constexpr const char* kInstalled = "apt-get update\napt-get install -y --no-install-recommends libwanted-dev\n";

TEST_F(Install, UsesNoSudoUnasked) {
  const End end = install(false, "");
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(text_of(calls()), IsEmpty());
  EXPECT_THAT(end.output,
              HasSubstr("sudo apt-get update && sudo apt-get install -y --no-install-recommends libwanted-dev"));
  EXPECT_THAT(end.output, HasSubstr("SYNCOPATE_INSTALL=yes"));
}

TEST_F(Install, UsesSudoWhereItIsToldTo) {
  for (const char* told : {"SYNCOPATE_INSTALL=yes", "CI=true"}) {
    fs::remove(calls());
    fs::remove(root() / "build/.packages");
    EXPECT_EQ(install(false, told).exit_code, 0) << told;
    EXPECT_EQ(text_of(calls()), std::string("sudo\n") + kInstalled) << told;
  }
}

TEST_F(Install, AsksAtATerminal) {
  End end = install(false, "", true, "n\n");
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, HasSubstr("Install them now with sudo? [y/N]"));
  EXPECT_THAT(text_of(calls()), IsEmpty());
  end = install(false, "", true, "\n");
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(text_of(calls()), IsEmpty());
  end = install(false, "", true, "y\n");
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_EQ(text_of(calls()), std::string("sudo\n") + kInstalled);
}

TEST_F(Install, AsksRootAtATerminalToo) {
  const End end = install(true, "", true, "n\n");
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, HasSubstr("Install them now? [y/N]"));
  EXPECT_THAT(text_of(calls()), IsEmpty());
}

TEST_F(Install, SaysWhatItInstallsForRootWhereNobodyCanBeAsked) {
  const End end = install(true, "");
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("Installing them: apt-get install -y --no-install-recommends libwanted-dev"));
  EXPECT_EQ(text_of(calls()), kInstalled);
}

TEST_F(Install, TakesNoForAnAnswer) {
  for (const bool as_root : {false, true}) {
    EXPECT_EQ(install(as_root, "SYNCOPATE_INSTALL=no CI=true").exit_code, 2);
    EXPECT_THAT(text_of(calls()), IsEmpty());
  }
}

}  // namespace
}  // namespace syncopate
