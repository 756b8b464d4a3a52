// Clicks on advertisements in the format of Criteo's data sets: one sample per line, with tabs between a label (1:
// clicked), 13 whole numbers and 26 categories of up to 8 hexadecimal digits. A missing field is empty.
//
// Values: log(x + 1) of the 13 numbers; 0 if one is missing or below 0. Ids: one row per category, chosen by a hash of
// the feature's number and the category; a missing one is a category, too. The last tenth of the lines is the test set.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "worker/data/dataset.h"
#include "worker/data/open_dataset.h"

namespace syncopate::worker {

inline constexpr int kClickNumbers = 13;
inline constexpr int kClickCategories = 26;

// Returns the form of clicks whose categories are hashed to `rows` rows.
SampleForm form_of_clicks(std::int64_t rows);

// Maps the file, checks every line, and keeps where each begins. Lines are parsed again when they are read, and the
// processes of a host share the file's pages. kNotFound: the file cannot be read. kDataLoss: a line is wrong; the
// message has its number, what was found and what is expected.
Result<DatasetPair> open_clicks(const std::string& path, std::int64_t rows);

}  // namespace syncopate::worker
