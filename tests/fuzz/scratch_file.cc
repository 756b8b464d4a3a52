#include "tests/fuzz/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/os/file_descriptor.h"

namespace syncopate::fuzz {
namespace {

class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "syncopate-fuzz-XXXXXX").string();
    require(mkdtemp(path_.data()) != nullptr, "a folder for scratch files can be made");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

const std::string& scratch_folder() {
  static const Folder folder;
  return folder.path();
}

std::string scratch_file(const std::string& name, Bytes bytes) {
  const std::string path = scratch_folder() + "/" + name;
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  require(file.open() && write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "a scratch file can be written");
  return path;
}

}  // namespace syncopate::fuzz
