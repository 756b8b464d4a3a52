// What pages and comments name is there: files, folders, functions and types.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

// Others' names, which no source of ours has.
const std::set<std::string> kOfOthers{"make_or_restore_model",      // Keras
                                      "rmem_max", "shmem_enabled",  // Linux
                                      "ReadWriteMany",              // Kubernetes
                                      "ReduceLROnPlateau"};         // PyTorch

// Folders that builds and runs make, and one of a user's home.
const std::set<std::string> kMade{"build", "results", "data", "syncopate"};

bool is_source(const fs::path& path) {
  static const std::set<std::string> kinds{".cc",  ".h",    ".cu", ".py", ".proto", ".cmake",
                                           ".txt", ".toml", ".js", ".sh", ".json",  ""};
  return kinds.contains(path.extension().string());
}

// The repository: its files and folders.
struct Tree {
  std::set<std::string> files;    // from the root, "ps/server/chunk.cc"
  std::set<std::string> places;   // the same, also without their endings, and folders; and the ends of all these paths
  std::set<std::string> folders;  // the names of folders, "server"
};

void add_place(std::string path, std::set<std::string>& places) {
  places.insert(path);
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/')) {
    path.erase(0, slash + 1);
    places.insert(path);
  }
}

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void add_words(const std::string& text, std::set<std::string>& words) {
  for (auto begin = text.begin(); begin != text.end();) {
    const auto end = std::find_if_not(begin, text.end(), is_in_word);
    if (end != begin) words.emplace(begin, end);
    begin = end == text.end() ? end : end + 1;
  }
}

Tree tree_of(const fs::path& root) {
  Tree tree;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path path = entry->path().lexically_relative(root);
    const std::string first = path.begin()->string(), name = path.filename().string();
    const bool is_made = kMade.contains(first) && first != "results";
    if (is_made || name.starts_with(".") || name == "__pycache__") {
      entry.disable_recursion_pending();
      continue;
    }
    add_place(path.string(), tree.places);
    if (entry->is_directory()) {
      tree.folders.insert(name);
      continue;
    }
    tree.files.insert(path.string());
    add_place((path.parent_path() / name.substr(0, name.find('.'))).string(), tree.places);
  }
  return tree;
}

const Tree& tree() {
  static const Tree all = tree_of(source_directory());
  return all;
}

// Every word of the sources.
const std::set<std::string>& words_of_sources() {
  static const std::set<std::string> all = [] {
    std::set<std::string> words;
    for (const std::string& file : tree().files) {
      if (is_source(file)) add_words(text_of(fs::path(source_directory()) / file), words);
    }
    return words;
  }();
  return all;
}

// Whether a path is there: from the root, from the folder in which it is named, or as the end of another.
bool is_there(std::string path, const fs::path& beside) {
  if (const std::size_t star = path.find('*'); star != std::string::npos) path.resize(star);
  while (path.ends_with('/') || path.ends_with('.')) path.pop_back();
  return tree().places.contains(path) || tree().places.contains((beside / path).lexically_normal().string());
}

// Why what is named between two backticks is not there; empty if it is, or is none of these names.
std::string what_lacks(const std::string& named, const fs::path& beside) {
  static const std::regex path("[a-z0-9_]+(/[a-z0-9_.*]+)+/?"), function("[a-z0-9]+(_[a-z0-9]+)+"),
      type("[A-Z][A-Za-z]*[a-z][A-Z][A-Za-z]*(::[A-Za-z_]+)*");
  if (std::regex_match(named, path)) {
    const std::string first = named.substr(0, named.find('/'));
    if (kMade.contains(first) || !tree().folders.contains(first) || is_there(named, beside)) return "";
    return "no such file or folder";
  }
  const std::string name = named.ends_with("()") ? named.substr(0, named.size() - 2) : named;
  if ((!std::regex_match(name, function) && !std::regex_match(name, type)) || kOfOthers.contains(name) ||
      is_there(name, beside))
    return "";
  std::set<std::string> parts;
  add_words(name, parts);
  return std::ranges::includes(words_of_sources(), parts) ? "" : "no source has this name";
}

// The text between backticks of a page, without its blocks of code.
std::vector<std::string> names_in(const std::string& page) {
  std::vector<std::string> names;
  bool in_block = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) in_block = !in_block;
    if (in_block) continue;
    for (std::size_t begin = line.find('`'); begin != std::string::npos;) {
      const std::size_t end = line.find('`', begin + 1);
      if (end == std::string::npos) break;
      names.push_back(line.substr(begin + 1, end - begin - 1));
      begin = line.find('`', end + 1);
    }
  }
  return names;
}

TEST(Names, OfPagesAreOfWhatIsThere) {
  std::vector<std::string> wrong;
  std::size_t seen = 0;
  for (const std::string& file : tree().files) {
    if (!file.ends_with(".md")) continue;
    for (const std::string& name : names_in(text_of(fs::path(source_directory()) / file))) {
      ++seen;
      const std::string why = what_lacks(name, fs::path(file).parent_path());
      if (!why.empty()) wrong.push_back(fmt::format("{}: {}: {}", file, name, why));
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_GT(seen, 3000u);
  // What is not there is seen.
  EXPECT_EQ(what_lacks("ps/server/no_such_file", "docs"), "no such file or folder");
  EXPECT_EQ(what_lacks("client/introduction", "ps"), "no such file or folder");
  EXPECT_EQ(what_lacks("client/join_request", "ps"), "");
  EXPECT_EQ(what_lacks(std::string("survives_worker") + "_loss", "docs"), "no source has this name");
  EXPECT_EQ(what_lacks(std::string("No") + "SuchTypeAnywhere", "docs"), "no source has this name");
  EXPECT_EQ(what_lacks("ShardMap::hash", "docs"), "");
  EXPECT_EQ(what_lacks("samples/s", "docs"), "") << "a unit";
}

// Comments name our files from the root; names alone may be of others' sources.
TEST(Names, OfFilesInCommentsAreOfWhatIsThere) {
  const std::regex path("(^|[^A-Za-z0-9_/.])([a-z_]+(/[a-z0-9_]+)+(\\.(h|cc|md|py|proto))?)(?![A-Za-z0-9_/])");
  const std::set<std::string> quoted{"library/kernel"};  // a heading of setpriority(2)
  const std::set<std::string> rooms{"common",     "worker",  "ps",          "allreduce", "simulation",
                                    "prediction", "library", "experiments", "tests",     "python"};
  std::vector<std::string> wrong;
  std::size_t seen = 0;
  for (const std::string& file : tree().files) {
    if (!file.ends_with(".cc") && !file.ends_with(".h") && !file.ends_with(".cu")) continue;
    for (const std::string& line : lines_of(text_of(fs::path(source_directory()) / file))) {
      const std::size_t comment = line.find("//");
      if (comment == std::string::npos) continue;
      const std::string text = line.substr(comment + 2);
      for (std::sregex_iterator found(text.begin(), text.end(), path), end; found != end; ++found) {
        const std::string named = (*found)[2];
        if (!rooms.contains(named.substr(0, named.find('/'))) || quoted.contains(named)) continue;
        ++seen;
        if (!is_there(named, fs::path(file).parent_path())) wrong.push_back(fmt::format("{}: {}", file, named));
      }
    }
  }
  EXPECT_THAT(wrong, IsEmpty());
  EXPECT_GT(seen, 50u);
}

}  // namespace
}  // namespace syncopate::testing_support
