// NewLines: the lines that are appended to a file.
#pragma once

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace syncopate::experiments {

class NewLines {
 public:
  explicit NewLines(std::string path) : path_(std::move(path)) {}

  // Returns the whole lines that are new; at the end of the run also one that is not whole.
  std::vector<std::string> read(bool is_last) {
    std::ifstream file(path_);
    file.seekg(read_to_);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::string> lines;
    for (std::size_t end; (end = text.find('\n')) != std::string::npos || (is_last && !text.empty());) {
      end = std::min(end, text.size());
      lines.push_back(text.substr(0, end));
      const std::size_t taken = std::min(end + 1, text.size());
      read_to_ += static_cast<std::streamoff>(taken);
      text.erase(0, taken);
    }
    return lines;
  }

 private:
  const std::string path_;
  std::streamoff read_to_ = 0;
};

}  // namespace syncopate::experiments
