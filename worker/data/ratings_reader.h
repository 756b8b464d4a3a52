// Reads files of ratings by users of items, as MovieLens publishes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

struct Rating {
  int user = 0;
  int item = 0;
  std::int64_t time = 0;  // seconds since 1970
};

// Ratings in the order of the file. Ids are renumbered 0 .. users-1 and 0 .. items-1, in ascending order of the file's
// ids. No user rates an item twice. The value of a rating is checked but not kept: only its existence is learnt.
struct RatingTable {
  std::vector<Rating> ratings;
  int users = 0;
  int items = 0;
};

// The format depends on the file's name: "ratings.csv" has the header userId,movieId,rating,timestamp; "u.data" (100K)
// has tabs and "ratings.dat" (1M, 10M) has "::" between the same columns, and no header. kNotFound: the file cannot be
// read. A byte order mark, double quotes around columns and empty lines at the end are left out. kDataLoss: a line is
// wrong; the message has its number, what was found and what is expected.
Result<RatingTable> read_ratings(const std::string& path);

// Returns the one such file in `data_dir` or in a folder "ml-..." in it. kNotFound if there is none; kInvalidArgument
// if several folders have one.
Result<std::string> find_ratings(const std::string& data_dir);

}  // namespace syncopate::worker
