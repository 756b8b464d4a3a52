#include "experiments/lab/report/results_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common/os/whole_file.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

struct OpenedLock {
  FileDescriptor file;
  bool is_new = false;
};

OpenedLock open_lock(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  OpenedLock lock{FileDescriptor(::open(path.c_str(), kFlags | O_EXCL, 0666)), true};
  if (!lock.file.open() && errno == EEXIST) lock = {FileDescriptor(::open(path.c_str(), kFlags, 0666)), false};
  return lock;
}

// Whoever had it before may have removed it meanwhile.
bool is_still_there(const FileDescriptor& file, const std::string& path) {
  struct stat mine {
  }, there{};
  return ::fstat(file.get(), &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev &&
         mine.st_ino == there.st_ino;
}

bool has_no_locks(int error) { return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP; }

Status is_taken(const std::string& folder, const char* how) {
  return Status::invalid_argument(fmt::format("--output={}: {}; wait for it, or name another directory", folder, how));
}

}  // namespace

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name != kFolderLock) names.push_back(std::move(name));
  }
  return names;
}

Status check_holds_nothing(const std::string& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) {
    return Status::invalid_argument(fmt::format("--output={}: is no directory; name another", folder));
  }
  if (names_in(folder).empty()) return {};
  return Status::invalid_argument(
      fmt::format("--output={}: holds files already; name another directory, or remove it", folder));
}

Result<ResultsFolder> ResultsFolder::take(const std::string& folder, const std::function<Status()>& check) {
  SYNCOPATE_RETURN_IF_ERROR(check());
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  const std::string path = fmt::format("{}/{}", folder, kFolderLock);
  while (true) {
    OpenedLock lock = open_lock(path);
    if (!lock.file.open()) {
      return Status::resource_exhausted(fmt::format("{}: cannot be written ({})", path, strerror(errno)));
    }
    if (flock(lock.file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (!has_no_locks(errno)) return is_taken(folder, "another run is writing there");
      // In a file system without locks it is had by who has created it.
      if (!lock.is_new) {
        return is_taken(folder, "another run is writing there, or was killed and has left its .lock to be removed");
      }
    }
    if (!is_still_there(lock.file, path)) continue;
    ResultsFolder taken(path, std::move(lock.file));
    SYNCOPATE_RETURN_IF_ERROR(check());
    return taken;
  }
}

ResultsFolder::~ResultsFolder() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<NewFolder> NewFolder::create(const std::string& wanted) {
  const fs::path parent = fs::path(wanted).parent_path();
  if (!parent.empty()) SYNCOPATE_RETURN_IF_ERROR(make_folder(parent.string()));
  std::string path = wanted;
  for (int number = 2; ::mkdir(path.c_str(), 0777) != 0; ++number) {
    if (errno != EEXIST) {
      return Status::resource_exhausted(fmt::format("{}: cannot be created ({})", path, strerror(errno)));
    }
    path = fmt::format("{}-{:02}", wanted, number);
  }
  return NewFolder(path);
}

NewFolder::~NewFolder() {
  if (!path_.empty()) ::rmdir(path_.c_str());
}

}  // namespace syncopate::experiments
