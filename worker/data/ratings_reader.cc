#include "worker/data/ratings_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <tuple>

#include "common/text/printable_text.h"
#include "worker/data/file_bytes.h"
#include "worker/data/own/csv_fields.h"
#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "userId,movieId,rating,timestamp";
constexpr std::size_t kRatingColumns = 4;
constexpr std::size_t kMostRatings = std::numeric_limits<int>::max() / 8;

struct FileKind {
  const char* name;
  std::string_view separator;
  bool header;
};
constexpr std::array<FileKind, 3> kFileKinds = {
    {{"ratings.csv", ",", true}, {"ratings.dat", "::", false}, {"u.data", "\t", false}}};

// A line as it stands in the file.
struct RawRating {
  std::int64_t user = 0, item = 0, time = 0, line = 0;
};

// Numbers have no quotes within.
std::string_view without_quotes(std::string_view column) {
  const bool is_quoted = column.size() >= 2 && column.starts_with('"') && column.ends_with('"');
  return is_quoted ? column.substr(1, column.size() - 2) : column;
}

Result<RawRating> parse(const std::string& path, const TextLines& lines, std::string_view separator) {
  std::array<std::string_view, kRatingColumns> columns;
  const std::size_t found = split(lines.line(), separator, columns);
  const auto bad = [&](const char* name, std::string_view text, const char* expected) {
    return wrong_line(path, lines.number(),
                      fmt::format("{} '{}', expected {}", name, printable(text, kLongestShown), expected));
  };
  if (lines.is_too_long()) return wrong_line(path, lines.number(), fmt::format("longer than {} bytes", kLongestLine));
  if (found != kRatingColumns) {
    return wrong_line(path, lines.number(), fmt::format("{} columns, expected {}: {}", found, kRatingColumns, kHeader));
  }
  std::ranges::transform(columns, columns.begin(), without_quotes);
  RawRating rating{.line = lines.number()};
  constexpr const char* kId = "a whole number of 0 or more";
  for (auto [name, text, value] :
       {std::tuple{"userId", columns[0], &rating.user}, std::tuple{"movieId", columns[1], &rating.item},
        std::tuple{"timestamp", columns[3], &rating.time}}) {
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(text);
    if (!number || *number < 0) return bad(name, text, kId);
    *value = *number;
  }
  if (!parse_number<double>(columns[2])) return bad("rating", columns[2], "a number");
  return rating;
}

// The different values of a member, ascending.
std::vector<std::int64_t> ids_of(const std::vector<RawRating>& ratings, std::int64_t RawRating::*member) {
  std::vector<std::int64_t> ids;
  ids.reserve(ratings.size());
  for (const RawRating& rating : ratings) ids.push_back(rating.*member);
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

int number_of(const std::vector<std::int64_t>& ids, std::int64_t id) {
  return static_cast<int>(std::ranges::lower_bound(ids, id) - ids.begin());
}

Status check_rated_once(const std::string& path, std::vector<RawRating> ratings) {
  const auto pair_and_line = [](const RawRating& rating) { return std::tuple(rating.user, rating.item, rating.line); };
  std::ranges::sort(ratings, {}, pair_and_line);
  const auto twice = std::ranges::adjacent_find(
      ratings, [](const RawRating& a, const RawRating& b) { return a.user == b.user && a.item == b.item; });
  if (twice == ratings.end()) return {};
  return wrong_line(
      path, std::next(twice)->line,
      fmt::format("user {} rates item {} again after line {}, expected once", twice->user, twice->item, twice->line));
}

Result<std::vector<RawRating>> read_raw(const std::string& path, const FileKind& kind) {
  SYNCOPATE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::open(path));
  TextLines lines(without_byte_order_mark(text_of(file.bytes())));
  if (kind.header) {
    lines.next();
    std::string header(lines.line());
    std::erase(header, '"');
    if (header != kHeader) {
      return wrong_line(path, 1,
                        fmt::format("header '{}', expected '{}'", printable(lines.line(), kLongestShown), kHeader));
    }
  }
  std::vector<RawRating> ratings;
  while (lines.next() && !lines.is_blank_to_the_end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const RawRating rating, parse(path, lines, kind.separator));
    ratings.push_back(rating);
    if (ratings.size() > kMostRatings) {
      return Status::data_loss(fmt::format("{}: more than {} ratings", path, kMostRatings));
    }
  }
  if (ratings.empty()) return Status::data_loss(fmt::format("{}: holds no ratings, expected at least 1", path));
  return ratings;
}

}  // namespace

Result<RatingTable> read_ratings(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto kind = std::ranges::find_if(kFileKinds, [&](const FileKind& known) { return name == known.name; });
  if (kind == kFileKinds.end()) return Status::invalid_argument(path + ": not a name of a file of ratings");
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<RawRating> raw, read_raw(path, *kind));
  SYNCOPATE_RETURN_IF_ERROR(check_rated_once(path, raw));
  const std::vector<std::int64_t> users = ids_of(raw, &RawRating::user), items = ids_of(raw, &RawRating::item);
  RatingTable table{.ratings = {}, .users = static_cast<int>(users.size()), .items = static_cast<int>(items.size())};
  table.ratings.reserve(raw.size());
  for (const RawRating& rating : raw) {
    table.ratings.push_back({number_of(users, rating.user), number_of(items, rating.item), rating.time});
  }
  return table;
}

Result<std::string> find_ratings(const std::string& data_dir) {
  std::error_code ignored;  // what cannot be looked at is reported as missing
  std::vector<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(data_dir, ignored)) {
    if (entry.path().filename().string().starts_with("ml-")) folders.push_back(entry.path().string());
  }
  std::ranges::sort(folders);
  folders.insert(folders.begin(), data_dir);
  std::vector<std::string> found;
  for (const std::string& folder : folders) {
    for (const FileKind& kind : kFileKinds) {
      const std::string path = folder + "/" + kind.name;
      if (fs::exists(path, ignored)) found.push_back(path);
    }
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return Status::not_found(
        fmt::format("ratings: found none of ratings.csv, ratings.dat, u.data in {0} or {0}/ml-*", data_dir));
  }
  return Status::invalid_argument(
      fmt::format("ratings: found {}, expected one; name its folder in --data-dir", fmt::join(found, " and ")));
}

}  // namespace syncopate::worker
