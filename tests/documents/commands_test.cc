// Every command that a page prints does what the page says: it is run as it is printed, from an empty folder, and what
// it prints is held against what the page shows, line by line, but for the figures.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "tests/support/build_paths.h"
#include "tests/support/documented_commands.h"
#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

namespace fs = std::filesystem;

// What a user reads, beside docs/. Pages of results/reference say how their figures were measured, which takes hours.
constexpr const char* kPages[] = {"README.md",           "SECURITY.md",           "ps/README.md",
                                  "allreduce/README.md", "experiments/README.md", "results/README.md",
                                  "worker/README.md",    "common/README.md"};
constexpr int kSeconds = 800;

struct Documented {
  std::string page;
  DocumentedBlock block;
};

void PrintTo(const Documented& documented, std::ostream* out) {
  *out << documented.page << ", line " << documented.block.line;
}

std::vector<Documented> all_documented() {
  std::vector<std::string> pages(std::begin(kPages), std::end(kPages));
  for (const auto& entry : fs::directory_iterator(fs::path(source_directory()) / "docs")) {
    pages.push_back("docs/" + entry.path().filename().string());
  }
  std::ranges::sort(pages);
  std::vector<Documented> all;
  for (const std::string& page : pages) {
    for (DocumentedBlock& block : documented_blocks(text_of(fs::path(source_directory()) / page))) {
      all.push_back({page, std::move(block)});
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Documented>& info) {
  std::string name = fmt::format("{}_line_{}", info.param.page, info.param.block.line);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
}

constexpr const char* kNeedsSets = "scikit-learn";

// Whether the script of docs/own_data.md has written the sets that its commands read: it needs scikit-learn.
bool writes_sets(const fs::path& folder) {
  const std::string script = fs::path(source_directory()) / "docs/own_data/scikit_learn_sets.py";
  const std::string command =
      fmt::format("cd '{}' && python3 -c 'import sklearn, pandas' 2> /dev/null && python3 -W ignore '{}' > sets.txt",
                  folder.string(), script);
  return std::system(command.c_str()) == 0;
}

class Page : public testing::TestWithParam<Documented> {};

TEST_P(Page, PrintsCommandsThatDoWhatItShows) {
  const DocumentedBlock& block = GetParam().block;
  const TemporaryFolder folder;
  const bool has_data = block.needs == kNeedsSets && writes_sets(folder.path());
  if (!block.needs.empty() && !has_data) GTEST_SKIP() << "needs " << block.needs;
  fs::create_directories(shared_data_dir());
  fs::create_symlink(syncopate_program(), folder.path() / "run_experiment");
  fs::create_symlink(shared_data_dir(), folder.path() / "data");
  // Root, who is often alone in a container, has to tell Open MPI twice.
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(name, "1", 0);
  std::vector<std::string> printed;
  for (const std::string& command : block.commands) {
    const fs::path output = folder.path() / "output.txt";
    const std::string limited =
        fmt::format("cd '{}' && timeout --kill-after=20 {} {} > '{}' 2>&1", folder.path().string(),
                    static_cast<int>(kSeconds * kSlowness), command, output.string());
    const int ended = std::system(limited.c_str());
    ASSERT_TRUE(WIFEXITED(ended));
    EXPECT_EQ(WEXITSTATUS(ended), 0) << command << "\n" << text_of(output);
    printed = lines_of(text_of(output));
  }
  EXPECT_EQ(first_line_missing(block.prints, printed), "") << "in what was printed:\n"
                                                           << [&] {
                                                                std::string text;
                                                                for (const std::string& line : printed)
                                                                  text += line + "\n";
                                                                return text;
                                                              }();
}

INSTANTIATE_TEST_SUITE_P(Documents, Page, testing::ValuesIn(all_documented()), name_of);

bool is_answered_at_once(const std::string& command) {
  return command.starts_with("predict ") || command.starts_with("advise ");
}

// The cells of the README's table of questions that are options, but for those that name what is not here.
std::vector<std::string> first_commands() {
  std::vector<std::string> commands;
  bool is_of_table = false;
  for (const std::string& line : lines_of(text_of(fs::path(source_directory()) / "README.md"))) {
    is_of_table = line.starts_with("| question | begin with |") || (is_of_table && line.starts_with("|"));
    if (!is_of_table) continue;
    const std::size_t begin = line.find('|', 1), end = line.find('|', begin + 1);
    const std::string cell = line.substr(begin, end - begin);
    for (std::size_t open = cell.find('`'); open != std::string::npos;) {
      const std::size_t close = cell.find('`', open + 1);
      commands.push_back(cell.substr(open + 1, close - open - 1));
      open = cell.find('`', close + 1);
    }
  }
  std::erase_if(commands, [](const std::string& command) {
    const auto names = [&](const char* what) { return command.find(what) != std::string::npos; };
    return (!command.starts_with("--") && !command.starts_with("compare ") && !is_answered_at_once(command)) ||
           names("--help") || names("node1") || names("--device=") || names("results/RUN") || names("train.py");
  });
  return commands;
}

TEST(Readme, BeginsWithCommandsThatAreTakenAsTheyAreTyped) {
  const TemporaryFolder folder;
  const std::vector<std::string> commands = first_commands();
  EXPECT_GE(commands.size(), 20u);
  for (const std::string& command : commands) {
    const std::string tried =
        fmt::format("cd '{}' && '{}' {} {} > output.txt 2>&1", folder.path().string(), syncopate_program(), command,
                    is_answered_at_once(command) ? "" : "--dry-run");
    EXPECT_EQ(std::system(tried.c_str()), 0) << command << "\n" << text_of(folder.path() / "output.txt");
  }
}

TEST(DocumentedCommands, AreFoundWithWhatTheyPrintAndNeed) {
  const std::vector<DocumentedBlock> blocks = documented_blocks(
      "Text\n```\n./run_experiment --mode=ps \\\n    --servers=2  # two\n./run_experiment\n```\n<!-- prints -->\n"
      "```\nepoch 1/3\n```\n\n<!-- needs: hosts -->\n```\n./run_experiment --hosts=a\n```\n```\nls\n```\n");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0].line, 3);
  EXPECT_EQ(blocks[0].commands,
            (std::vector<std::string>{"./run_experiment --mode=ps     --servers=2 ", "./run_experiment"}));
  EXPECT_EQ(blocks[0].prints, std::vector<std::string>{"epoch 1/3"});
  EXPECT_EQ(blocks[1].needs, "hosts");
}

TEST(DocumentedCommands, HaveShapesWithoutFigures) {
  EXPECT_EQ(shape_of("  training time     1.0 s"), "training time # time");
  EXPECT_EQ(shape_of("  training time     980 ms"), "training time # time");
  EXPECT_EQ(shape_of("server 0  538.69 kB  3 chunks"), "server # # bytes # chunks");
  EXPECT_EQ(shape_of("ps:sync  0.90x [0.81, 1.01]  no difference shown"), shape_of("ps:sync  0.8x [0.81, 0.9] slower"));
  EXPECT_NE(shape_of("epoch 1/3  loss 0.2"), shape_of("epoch 1/3  accuracy 0.2"));
}

TEST(DocumentedCommands, AreMissedWhereALineDoesNotCome) {
  const std::vector<std::string> printed = {"epoch 1/3", "  wait  3 ms", "end"};
  EXPECT_EQ(first_line_missing({"epoch 2/3", "...", "end"}, printed), "");
  EXPECT_EQ(first_line_missing({"  wait ...", "end"}, printed), "");
  EXPECT_EQ(first_line_missing({"end", "epoch 1/3"}, printed), "epoch 1/3");
  EXPECT_EQ(first_line_missing({"  data  3 ms"}, printed), "  data  3 ms");
}

}  // namespace
}  // namespace syncopate::testing_support
