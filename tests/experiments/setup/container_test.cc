// What can be said of the container image without building it. tests/container/run builds it and runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing_support::lines_of;
using testing_support::text_of;

fs::path in_tree(const std::string& path) { return fs::path(testing_support::source_directory()) / path; }

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  for (int c = 0; pipe != nullptr && (c = fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  if (pipe != nullptr) pclose(pipe);
  return text;
}

TEST(TheContainerfile, CopiesWhatIsThereAndIsSentToItsBuild) {
  std::set<std::string> sent;
  for (const std::string& line : lines_of(text_of(in_tree(".containerignore")))) {
    if (line.starts_with("!")) sent.insert(line.substr(1));
  }
  int copied = 0;
  for (const std::string& line : lines_of(text_of(in_tree("Containerfile")))) {
    std::vector<std::string> words = words_of(line);
    if (words.size() < 3 || words[0] != "COPY" || words[1].starts_with("--from")) continue;
    for (std::size_t i = 1; i + 1 < words.size(); ++i, ++copied) {
      EXPECT_TRUE(fs::exists(in_tree(words[i]))) << line;
      EXPECT_TRUE(sent.contains(words[i].substr(0, words[i].find('/')))) << ".containerignore keeps it back: " << line;
    }
  }
  EXPECT_GT(copied, 10);
}

TEST(TheContainerfile, EndsWithAUserOfTheNumberThatManifestsName) {
  const std::string text = text_of(in_tree("Containerfile"));
  EXPECT_THAT(text, testing::HasSubstr("--uid 10001"));
  EXPECT_THAT(text, testing::HasSubstr("\nUSER 10001:10001\n"));
  EXPECT_THAT(text, testing::HasSubstr("\nHEALTHCHECK "));
}

TEST(TheImagesPackages, HaveEveryLibraryThatTheProgramIsLinkedWith) {
  if (std::system("dpkg -S /bin/sh >/dev/null 2>&1 && command -v readelf >/dev/null") != 0) {
    GTEST_SKIP() << "this is no Debian, or has no readelf: apt-get install binutils";
  }
  std::set<std::string> listed = {"libc6", "libgcc-s1"};  // every image of Debian's has them
  for (const std::string& line : lines_of(text_of(in_tree("setup/container/packages.txt")))) {
    if (!line.empty() && !line.starts_with("#")) listed.insert(words_of(line).front());
  }
  const std::string& program = testing_support::syncopate_program();
  std::set<std::string> needed;
  for (const std::string& line : lines_of(output_of("readelf -d '" + program + "'"))) {
    const std::size_t begin = line.find('['), end = line.find(']');
    if (line.find("(NEEDED)") != std::string::npos) needed.insert(line.substr(begin + 1, end - begin - 1));
  }
  ASSERT_GT(needed.size(), 8u);
  for (const std::string& line : lines_of(output_of("ldd '" + program + "'"))) {
    const std::vector<std::string> words = words_of(line);  // "libzmq.so.5 => /lib/libzmq.so.5 (0x...)"
    if (words.size() < 3 || !needed.contains(words[0])) continue;
    const std::string owner = output_of("dpkg -S \"$(realpath " + words[2] + ")\" 2>/dev/null");
    if (owner.empty()) continue;  // a sanitizer's, or one of this machine's own
    EXPECT_TRUE(listed.contains(owner.substr(0, owner.find(':')))) << words[0] << " is of " << owner;
  }
}

}  // namespace
}  // namespace syncopate::experiments
