#include "experiments/cluster/host/git_commit.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns the directory that a .git file points to ("gitdir: PATH"), or the .git directory itself.
fs::path git_directory(const fs::path& dot_git) {
  constexpr std::string_view kPointer = "gitdir: ";
  std::error_code ignored;
  if (fs::is_directory(dot_git, ignored)) return dot_git;
  const std::string line = first_line(dot_git);
  if (!line.starts_with(kPointer)) return {};
  return dot_git.parent_path() / line.substr(kPointer.size());
}

std::string packed_reference(const fs::path& packed_refs, const std::string& reference) {
  std::ifstream file(packed_refs);
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with(" " + reference)) return line.substr(0, line.find(' '));
  }
  return {};
}

std::string checked(const std::string& commit) {
  const bool is_commit =
      commit.size() >= 40 && std::ranges::all_of(commit, [](unsigned char c) { return std::isxdigit(c) != 0; });
  return is_commit ? commit : std::string();
}

}  // namespace

std::string git_commit_of(const fs::path& inside) {
  std::error_code ignored;
  fs::path folder = inside;
  while (!fs::exists(folder / ".git", ignored)) {
    if (folder == folder.parent_path()) return {};
    folder = folder.parent_path();
  }
  const fs::path git = git_directory(folder / ".git");
  constexpr std::string_view kReference = "ref: ";
  const std::string head = first_line(git / "HEAD");
  if (!head.starts_with(kReference)) return checked(head);
  const std::string reference = head.substr(kReference.size());
  // A linked work tree has its own HEAD, and shares references with the main one.
  const std::string common = first_line(git / "commondir");
  const fs::path shared = common.empty() ? git : git / common;
  const std::string loose = checked(first_line(shared / reference));
  return loose.empty() ? checked(packed_reference(shared / "packed-refs", reference)) : loose;
}

}  // namespace syncopate::experiments
