// A folder of a test's own, removed with it, and ways to put data files in it.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace syncopate::worker {

using Bytes = std::vector<std::uint8_t>;

class ScratchFolder {
 public:
  ScratchFolder() : path_(testing::TempDir() + "syncopate-data-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no scratch folder");
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

  // Both return the path, and make the folders above it.
  std::string write(const std::string& name, const Bytes& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    return path(name);
  }
  std::string write_gz(const std::string& name, const Bytes& content) const {
    const gzFile file = ::gzopen(path(name).c_str(), "wb");
    ::gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    ::gzclose(file);
    return path(name);
  }

  static Bytes read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

// Big-endian words, as IDX headers have them, followed by `body`.
inline Bytes idx(const std::vector<std::uint32_t>& words, const Bytes& body) {
  Bytes bytes;
  for (const std::uint32_t word : words) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

// Three images of 2x3 pixels 0, 1, 2 .. 17, and their labels 7, 0, 9.
inline Bytes three_images() {
  Bytes pixels(18);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  return idx({0x803, 3, 2, 3}, pixels);
}
inline Bytes three_labels() { return idx({0x801, 3}, {7, 0, 9}); }

}  // namespace syncopate::worker
