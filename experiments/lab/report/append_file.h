// A text file that grows while the run goes on. Lines gather in memory and reach the disk when flush() is called, so
// that adding one never waits. One thread.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::experiments {

class AppendFile {
 public:
  // Creates the file, or empties it. Fails with resource exhausted, path and the system's reason.
  static Result<AppendFile> create(std::string path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();  // does not flush

  void add(std::string_view text) { waiting_ += text; }
  // What has gathered goes to the file. On failure (full disk) what could not be written stays gathered.
  Status flush();

 private:
  AppendFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
  std::string waiting_;
};

}  // namespace syncopate::experiments
