// ResultsFolder: the right to write results in a folder. Whatever leaves results takes its folder by this class, so
// that two never write in one: first it is locked, then it is looked at.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/os/file_descriptor.h"
#include "common/status.h"

namespace syncopate::experiments {

// The file that is locked, below the folder. It is there as long as the folder is taken, and stays if its owner is
// killed.
inline constexpr std::string_view kFolderLock = ".lock";

// Return what a folder holds, without its lock; nothing if there is no such folder.
std::vector<std::string> names_in(const std::string& folder);

// Fails with invalid argument if the folder holds files, or is none.
Status check_holds_nothing(const std::string& folder);

class ResultsFolder {
 public:
  // Takes `folder` for as long as this object lives, and creates it and its parents if need be. `check` says whether
  // what the folder holds may be there; it is called before anything is created, and again when nobody else can write
  // there. Fails as `check` does, with invalid argument if somebody has the folder, and with resource exhausted if it
  // cannot be written.
  static Result<ResultsFolder> take(const std::string& folder, const std::function<Status()>& check);

  ResultsFolder(ResultsFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
  ResultsFolder& operator=(ResultsFolder&&) = delete;
  ~ResultsFolder();

 private:
  ResultsFolder(std::string path, FileDescriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;  // of the lock; empty: moved away
  FileDescriptor lock_;
};

// A folder for results whose name nobody has given. It is removed again if nothing has been written there.
class NewFolder {
 public:
  // Creates `wanted`, or "WANTED-02", "WANTED-03" and so on if that exists: no two get the same, and names sort by time
  // as `wanted` does. Fails with resource exhausted if none can be created.
  static Result<NewFolder> create(const std::string& wanted);

  NewFolder(NewFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  NewFolder& operator=(NewFolder&&) = delete;
  ~NewFolder();

  const std::string& path() const { return path_; }

 private:
  explicit NewFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved away
};

}  // namespace syncopate::experiments
