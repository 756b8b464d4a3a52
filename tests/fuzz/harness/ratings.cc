// Ratings in their three forms.
#include <algorithm>
#include <array>

#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"
#include "worker/data/ratings_reader.h"

namespace syncopate::fuzz {
namespace {

constexpr std::array<const char*, 3> kNames = {"ratings.csv", "ratings.dat", "u.data"};

const Harness ratings("ratings", [](Bytes bytes) {
  Input input(bytes);
  const char* const name = kNames[input.below(kNames.size())];
  const Result<worker::RatingTable> table = worker::read_ratings(scratch_file(name, input.rest()));
  if (!table.ok()) return;
  require(std::ranges::all_of(table->ratings,
                              [&](const worker::Rating& rating) {
                                return rating.user >= 0 && rating.user < table->users && rating.item >= 0 &&
                                       rating.item < table->items && rating.time >= 0;
                              }),
          "users and items are numbered from 0");
});

}  // namespace
}  // namespace syncopate::fuzz
