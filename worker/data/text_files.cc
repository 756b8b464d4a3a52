#include "worker/data/text_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "worker/data/file_bytes.h"
#include "worker/data/text_form.h"

namespace syncopate::worker {
namespace {

using Files = std::shared_ptr<const std::vector<FileBytes>>;

// The windows of one part of each file.
class TextPart final : public Dataset {
 public:
  // `parts` are of the files' bytes.
  TextPart(Files files, const std::vector<std::span<const std::uint8_t>>& parts, int context)
      : files_(std::move(files)),
        context_(static_cast<std::size_t>(context)),
        form_(form_of_text(context, kTextCharacters)) {
    for (const std::span<const std::uint8_t> bytes : parts) {
      const std::size_t windows = bytes.empty() ? 0 : (bytes.size() - 1) / context_;
      if (windows == 0) continue;
      size_ += static_cast<std::int64_t>(windows);
      pieces_.push_back({.bytes = bytes, .end = size_});
    }
  }

  std::int64_t size() const override { return size_; }
  const SampleForm& form() const override { return form_; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    const auto piece = std::ranges::upper_bound(pieces_, index, {}, &Piece::end);
    const std::int64_t first = piece == pieces_.begin() ? 0 : std::prev(piece)->end;
    const std::uint8_t* const window = piece->bytes.data() + static_cast<std::size_t>(index - first) * context_;
    std::copy_n(window, context_, to.ids.begin());
    std::copy_n(window + 1, context_, to.labels.begin());
  }

 private:
  struct Piece {
    std::span<const std::uint8_t> bytes;
    std::int64_t end;  // samples in it and before it
  };

  Files files_;  // holds the bytes
  std::size_t context_;
  SampleForm form_;
  std::vector<Piece> pieces_;
  std::int64_t size_ = 0;
};

// Sorted, so that samples have the same numbers everywhere. A folder that cannot be read has none.
std::vector<std::string> text_files_in(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

Result<std::vector<std::string>> find_text_files(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    std::vector<std::string> paths = text_files_in(folder);
    if (!paths.empty()) return paths;
  }
  return Status::not_found(fmt::format("text: found no *.txt in {}", fmt::join(folders, ", ")));
}

}  // namespace

Result<TextParts> open_text(const std::vector<std::string>& folders, int context) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, find_text_files(folders));
  auto files = std::make_shared<std::vector<FileBytes>>();
  std::vector<std::span<const std::uint8_t>> train, test;
  for (const std::string& path : paths) {
    std::error_code ignored;  // FileBytes says what is wrong with a file that cannot be looked at
    if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
      return Status::not_found(fmt::format("{}: is not a regular file", path));  // to open a pipe would wait
    }
    SYNCOPATE_ASSIGN_OR_RETURN(FileBytes file, FileBytes::open(path));
    files->push_back(std::move(file));
  }
  std::size_t bytes = 0;
  for (const FileBytes& file : *files) {
    const std::size_t test_size = file.bytes().size() / 10;
    train.push_back(file.bytes().first(file.bytes().size() - test_size));
    test.push_back(file.bytes().last(test_size));
    bytes += file.bytes().size();
  }
  TextParts parts{std::make_unique<TextPart>(files, train, context), std::make_unique<TextPart>(files, test, context)};
  if (parts.first->size() == 0 || parts.second->size() == 0) {
    return Status::data_loss(
        fmt::format("text: {} in {}, {} bytes together, are too short for --context={}: the last tenth of "
                    "one file at least must hold {} bytes",
                    paths.size() == 1 ? "the one *.txt" : fmt::format("the {} *.txt", paths.size()),
                    std::filesystem::path(paths.front()).parent_path().string(), bytes, context, context + 1));
  }
  return parts;
}

}  // namespace syncopate::worker
