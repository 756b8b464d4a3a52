#include "worker/data/clicks_reader.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/random.h"
#include "common/text/printable_text.h"
#include "worker/data/file_bytes.h"
#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

constexpr std::size_t kClickColumns = 1 + kClickNumbers + kClickCategories;
constexpr std::int64_t kFewestLines = 10;
constexpr std::uint64_t kMissing = std::uint64_t{1} << 32;  // no category is so large

using Columns = std::array<std::string_view, kClickColumns>;

std::optional<std::uint64_t> parse_category(std::string_view text) {
  if (text.empty()) return kMissing;
  if (text.size() > 8) return {};
  return parse_number<std::uint32_t>(text, 16);
}

Status check(const std::string& path, const TextLines& lines) {
  if (lines.is_too_long()) return wrong_line(path, lines.number(), fmt::format("longer than {} bytes", kLongestLine));
  Columns columns;
  const std::size_t found = split(lines.line(), "\t", columns);
  if (found != kClickColumns) {
    return wrong_line(path, lines.number(),
                      fmt::format("{} columns, expected {} between tabs: a label, {} whole numbers, {} categories",
                                  found, kClickColumns, kClickNumbers, kClickCategories));
  }
  if (columns[0] != "0" && columns[0] != "1") {
    return wrong_line(path, lines.number(),
                      fmt::format("label '{}', expected 0 or 1", printable(columns[0], kLongestShown)));
  }
  for (int i = 0; i < kClickNumbers; ++i) {
    const std::string_view text = columns[static_cast<std::size_t>(1 + i)];
    if (!text.empty() && !parse_number<std::int64_t>(text)) {
      return wrong_line(
          path, lines.number(),
          fmt::format("number {} '{}', expected a whole number or nothing", i + 1, printable(text, kLongestShown)));
    }
  }
  for (int i = 0; i < kClickCategories; ++i) {
    const std::string_view text = columns[static_cast<std::size_t>(1 + kClickNumbers + i)];
    if (!parse_category(text)) {
      return wrong_line(path, lines.number(),
                        fmt::format("category {} '{}', expected up to 8 hexadecimal digits or nothing", i + 1,
                                    printable(text, kLongestShown)));
    }
  }
  return {};
}

float value_of(std::string_view text) {
  const std::int64_t number = parse_number<std::int64_t>(text).value_or(0);
  return number <= 0 ? 0.0f : static_cast<float>(std::log1p(static_cast<double>(number)));
}

int row_of(std::size_t feature, std::string_view text, std::int64_t rows) {
  Random hash(feature, parse_category(text).value_or(kMissing));
  return static_cast<int>(hash.below(static_cast<std::uint64_t>(rows)));
}

// A file whose lines have been checked.
struct ClickFile {
  FileBytes bytes;
  std::vector<std::size_t> begins;  // of the lines
};

// Lines [first, first + count) of a file.
class Clicks final : public Dataset {
 public:
  Clicks(std::shared_ptr<const ClickFile> file, std::int64_t first, std::int64_t count, std::int64_t rows)
      : file_(std::move(file)), first_(first), count_(count), form_(form_of_clicks(rows)) {}

  std::int64_t size() const override { return count_; }
  const SampleForm& form() const override { return form_; }
  Judgement judgement() const override { return Judgement::kClicks; }

  void read(std::int64_t index, std::int64_t /*epoch*/, const SampleRoom& to) const override {
    TextLines lines(text_of(file_->bytes.bytes()).substr(file_->begins[static_cast<std::size_t>(first_ + index)]));
    lines.next();
    Columns columns;
    split(lines.line(), "\t", columns);
    to.labels[0] = columns[0] == "1" ? 1 : 0;
    for (std::size_t i = 0; i < kClickNumbers; ++i) to.values[i] = value_of(columns[1 + i]);
    for (std::size_t i = 0; i < kClickCategories; ++i) {
      to.ids[i] = row_of(i, columns[1 + kClickNumbers + i], form_.ids[0].range);
    }
  }

 private:
  std::shared_ptr<const ClickFile> file_;
  std::int64_t first_, count_;
  SampleForm form_;
};

}  // namespace

SampleForm form_of_clicks(std::int64_t rows) {
  return {.image = {1, 1, kClickNumbers},
          .classes = 2,
          .ids = {{.name = "category", .columns = kClickCategories, .range = rows}},
          .labels = 1};
}

Result<DatasetPair> open_clicks(const std::string& path, std::int64_t rows) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::open(path));
  auto file = std::make_shared<ClickFile>(ClickFile{std::move(bytes), {}});
  TextLines lines(text_of(file->bytes.bytes()));
  while (lines.next() && !lines.is_blank_to_the_end()) {
    SYNCOPATE_RETURN_IF_ERROR(check(path, lines));
    file->begins.push_back(lines.position());
  }
  const auto count = static_cast<std::int64_t>(file->begins.size());
  if (count < kFewestLines) {
    return Status::data_loss(fmt::format("{}: {} lines, expected {} or more", path, count, kFewestLines));
  }
  const std::int64_t test = count / 10;
  return DatasetPair{std::make_unique<Clicks>(file, 0, count - test, rows),
                     std::make_unique<Clicks>(file, count - test, test, rows)};
}

}  // namespace syncopate::worker
