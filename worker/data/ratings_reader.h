// Reads files in which people rate things, as MovieLens publishes them.
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

// In the order of the file; ids are numbered anew, 0 .. users-1 and 0 .. items-1, in ascending order of the file's. No
// user rates an item twice. What a rating says is checked and not kept: that there is one is all that is learnt.
struct RatingTable {
  std::vector<Rating> ratings;
  int users = 0;
  int items = 0;
};

// By the file's name: "ratings.csv" has the header userId,movieId,rating,timestamp; "u.data" (100K) has tabs and
// "ratings.dat" (1M, 10M) "::" between the same columns, and no header. kNotFound: cannot be read. kDataLoss: what is
// wrong, with its line, what was found and what is expected.
Result<RatingTable> read_ratings(const std::string& path);

// The one such file in `data_dir` or in a folder "ml-..." in it. kNotFound where there is none; kInvalidArgument where
// several folders have one.
Result<std::string> find_ratings(const std::string& data_dir);

}  // namespace syncopate::worker
