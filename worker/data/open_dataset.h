// Opens a data set by name: the training part and the test part, checked and ready to be read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "worker/data/dataset.h"
#include "worker/data/own/own_options.h"

namespace syncopate::worker {

struct DatasetPair {
  std::unique_ptr<Dataset> train, test;           // of the same form
  std::unique_ptr<Dataset> validation = nullptr;  // held out of the training set (held_out.h); null: nothing is
  std::vector<std::string> notes = {};            // what a person must know of how own files were read
};

// The names that open_dataset accepts (dataset_names.h shows them in help):
//   digits, digits:TRAIN-TEST   generated from `seed` on first use, below data_dir; 60000-10000 unless given
//   mnist                       IDX files in data_dir/mnist, data_dir/MNIST/raw or data_dir
//   fashion-mnist               IDX files in data_dir/fashion-mnist, data_dir/FashionMNIST/raw or data_dir
//   digits:unit, digits:TRAIN-TEST:unit, mnist:unit, fashion-mnist:unit   the same with pixels from 0 to 1
//   cifar10, cifar10:plain      binary files in data_dir/cifar10, data_dir/cifar-10-batches-bin or data_dir; training
//                               images cropped and flipped as drawn from `seed`, or as they are
//   text, text:CONTEXT          *.txt in data_dir/text or data_dir; a context of 64 characters unless given
//   grammar, grammar:TRAIN-TEST-CONTEXT-VOCABULARY   generated from `seed` as it is read; 60000-10000-64-8 unless given
//   patterns, patterns:TRAIN-TEST-SIDE-CLASSES   generated from `seed` as it is read; 60000-10000-224-1000 unless given
//   a path, as iris.csv, arrays.npz or photographs/: a person's own data (own/open_own.h)
//   ratings, clicks:ROWS, zipf-ratings:TRAIN-TEST-ROWS, zipf-clicks:TRAIN-TEST-ROWS   see recommender_sets.h

// Checks the name without touching a file. kInvalidArgument says what would be right.
Status check_dataset_name(const std::string& name);

// kInvalidArgument: no such name. kNotFound: files that are missing, and where they were looked for. kDataLoss: a file
// with wrong contents. kResourceExhausted: digits could not be written. `seed` is used only by digits, grammar,
// patterns, cifar10, the sets for recommenders, and own data, whose test part it draws. `own` is of own data alone.
Result<DatasetPair> open_dataset(const std::string& name, const std::string& data_dir, std::uint64_t seed,
                                 const OwnOptions& own = {});

// Returns the form of a set's samples, from its name or from the header of its first file: nothing is generated, and no
// data is read, but for own data, which is read to know its classes. Fails as open_dataset does.
Result<SampleForm> sample_form(const std::string& name, const std::string& data_dir, const OwnOptions& own = {});

}  // namespace syncopate::worker
