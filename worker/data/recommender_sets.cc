#include "worker/data/recommender_sets.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "worker/data/clicks_reader.h"
#include "worker/data/ratings_dataset.h"
#include "worker/data/ratings_reader.h"
#include "worker/data/text_lines.h"
#include "worker/data/zipf_sets.h"

namespace syncopate::worker {
namespace {

constexpr std::string_view kClicks = "clicks:", kZipfRatings = "zipf-ratings:", kZipfClicks = "zipf-clicks:";

// The numbers behind a name's colon, `count` of them; nothing where they are none.
std::optional<std::vector<std::int64_t>> parse_counts(const std::string& name, std::size_t count) {
  std::vector<std::string_view> texts(count);
  if (split(std::string_view(name).substr(name.find(':') + 1), "-", texts) != count) return {};
  std::vector<std::int64_t> counts;
  for (const std::string_view text : texts) {
    const std::optional<std::int64_t> number = parse_number<std::int64_t>(text);
    if (!number || *number < 1 || *number > kMostTableRows) return {};
    counts.push_back(*number);
  }
  return counts;
}

Result<std::vector<std::int64_t>> counts_of(const std::string& name) {
  const bool is_file = name.starts_with(kClicks);
  const std::optional<std::vector<std::int64_t>> counts = parse_counts(name, is_file ? 1 : 3);
  if (counts) return *counts;
  return Status::invalid_argument(fmt::format("dataset '{}': must be {}{} with {} of 1 to {}", name,
                                              name.substr(0, name.find(':') + 1), is_file ? "ROWS" : "TRAIN-TEST-ROWS",
                                              is_file ? "a count" : "counts", kMostTableRows));
}

Result<std::string> find_clicks(const std::string& data_dir) {
  for (const std::string& folder : {data_dir + "/criteo", data_dir}) {
    for (const char* name : {"train.txt", "train.txt.gz"}) {
      std::error_code ignored;  // what cannot be looked at is reported as missing
      std::string path = folder + "/" + name;
      if (std::filesystem::exists(path, ignored)) return path;
    }
  }
  return Status::not_found(fmt::format("clicks: found no train.txt (plain or .gz) in {0}/criteo or {0}", data_dir));
}

Result<RatingTable> read_ratings_below(const std::string& data_dir) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, find_ratings(data_dir));
  return read_ratings(path);
}

}  // namespace

bool is_recommender_set(const std::string& name) {
  return name == "ratings" || name.starts_with(kClicks) || name.starts_with(kZipfRatings) ||
         name.starts_with(kZipfClicks);
}

Status check_recommender_set(const std::string& name) {
  return name == "ratings" ? Status() : counts_of(name).status();
}

Result<DatasetPair> open_recommender_set(const std::string& name, const std::string& data_dir, std::uint64_t seed) {
  if (name == "ratings") {
    SYNCOPATE_ASSIGN_OR_RETURN(const RatingTable table, read_ratings_below(data_dir));
    return make_ratings(table, seed);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> counts, counts_of(name));
  if (name.starts_with(kClicks)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, find_clicks(data_dir));
    return open_clicks(path, counts.front());
  }
  const ZipfCounts sizes{.rows = counts[2], .train = counts[0], .test = counts[1]};
  return name.starts_with(kZipfRatings) ? make_zipf_ratings(sizes, seed) : make_zipf_clicks(sizes, seed);
}

Result<SampleForm> recommender_form(const std::string& name, const std::string& data_dir) {
  if (name == "ratings") {  // how many users and items there are, the whole file says
    SYNCOPATE_ASSIGN_OR_RETURN(const RatingTable table, read_ratings_below(data_dir));
    return form_of_ratings(table.users, table.items);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::int64_t> counts, counts_of(name));
  const std::int64_t rows = counts.back();
  return name.starts_with(kZipfRatings) ? form_of_ratings(rows, rows) : form_of_clicks(rows);
}

}  // namespace syncopate::worker
