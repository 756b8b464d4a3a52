// TextLines: the lines of a text in memory, one by one and numbered, for readers of tables that report the line of an
// error.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"

namespace syncopate::worker {

inline std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns data loss, "PATH: line LINE: what".
inline Status wrong_line(const std::string& path, std::int64_t line, const std::string& what) {
  return Status::data_loss("line " + std::to_string(line) + ": " + what).in(path);
}

// The longest line of a table, in bytes. A longer one is not read to its end.
inline constexpr std::size_t kLongestLine = 1 << 16;
// The most characters of a wrong field that an error shows.
inline constexpr std::size_t kLongestShown = 80;

class TextLines {
 public:
  // The text must outlive this object.
  explicit TextLines(std::string_view text) : text_(text) {}

  // Moves to the next line. Returns false at the end. A line ends with "\n" or "\r\n"; the last one may end with the
  // text.
  bool next() {
    begin_ = end_;
    if (begin_ >= text_.size()) return false;
    const std::string_view rest = text_.substr(begin_, kLongestLine + 1);
    const std::size_t newline = rest.find('\n');
    is_too_long_ = newline == std::string_view::npos && rest.size() > kLongestLine;
    end_ = begin_ + (newline == std::string_view::npos ? rest.size() : newline + 1);
    line_ = rest.substr(0, newline);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }

  std::string_view line() const { return line_; }
  // The line has more than kLongestLine bytes: line() is only its beginning, and next() must not be called again.
  bool is_too_long() const { return is_too_long_; }
  // Nothing but empty lines is left, this one included: files may end with some.
  bool is_blank_to_the_end() const { return text_.find_first_not_of("\r\n", begin_) == std::string_view::npos; }
  std::int64_t number() const { return number_; }  // of the line, from 1
  std::size_t position() const { return begin_; }  // of the line in the text

 private:
  std::string_view text_, line_;
  std::size_t begin_ = 0, end_ = 0;
  std::int64_t number_ = 0;
  bool is_too_long_ = false;
};

// Cuts `line` at each `separator` into `columns`. Returns the number of columns, which may be more than were written.
inline std::size_t split(std::string_view line, std::string_view separator, std::span<std::string_view> columns) {
  for (std::size_t count = 0;; ++count) {
    const std::size_t end = line.find(separator);
    if (count < columns.size()) columns[count] = line.substr(0, end);
    if (end == std::string_view::npos) return count + 1;
    line.remove_prefix(end + separator.size());
  }
}

// Parses the whole of `text` as a number, in base 10 unless `base` is given. Returns nothing if it is not a number.
template <typename Number, typename... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base...);
  if (error != std::errc() || rest != end) return {};
  return number;
}

}  // namespace syncopate::worker
