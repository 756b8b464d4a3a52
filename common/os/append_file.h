// AppendFile: a text file that grows during a run. Lines collect in memory and reach the disk when flush() is called,
// so that adding a line never waits. Used by one thread.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate {

class AppendFile {
 public:
  // Creates the file, or empties it. Fails with resource exhausted, the path and the system's reason.
  static Result<AppendFile> create(std::string path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  ~AppendFile();  // does not flush

  void add(std::string_view text) { waiting_ += text; }
  // Writes the collected text to the file. After a failure (full disk) the text that could not be written is kept.
  Status flush();

 private:
  AppendFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
  std::string waiting_;
};

}  // namespace syncopate
