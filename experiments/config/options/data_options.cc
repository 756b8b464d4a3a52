#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "worker/data/text_form.h"

namespace syncopate::experiments {

using option_kinds::choice;
using option_kinds::number;
using option_kinds::on_or_off;
using option_kinds::only;
using option_kinds::text;

void add_data_options(std::vector<OptionSpec>& table) {
  using C = RunRequest;
  const std::string group = "Model and data";
  table.push_back(only(
      text({.group = group,
            .name = "dataset",
            .placeholder = "NAME",
            .sentence = "What is learnt; digits, grammar, zipf-ratings and zipf-clicks are generated, the others are "
                        "read from --data-dir: text is its *.txt files, byte by byte, ratings are MovieLens's files, "
                        "clicks Criteo's train.txt."},
           &C::dataset, "data set",
           {"digits", "mnist", "fashion-mnist", "cifar10", "text", "grammar", "ratings", "clicks", "zipf-ratings",
            "zipf-clicks"}),
      conditions::kLearns));
  table.push_back(text({.group = group,
                        .name = "data-dir",
                        .placeholder = "DIR",
                        .sentence = "Where the files of the data set lie, and where digits are kept once generated.",
                        .range = "a directory"},
                       &C::data_dir, "data directory"));
  table.push_back(only(number({.group = group,
                               .name = "train-samples",
                               .placeholder = "N",
                               .sentence = "Size of the generated training set.",
                               .unit = "samples"},
                              &C::train_samples, "training samples", std::int64_t{1}, std::int64_t{10000000}),
                       conditions::kGeneratedData));
  table.push_back(only(number({.group = group,
                               .name = "test-samples",
                               .placeholder = "N",
                               .sentence = "Size of the generated test set.",
                               .unit = "samples"},
                              &C::test_samples, "test samples", std::int64_t{1}, std::int64_t{10000000}),
                       conditions::kGeneratedData));
  table.push_back(
      only(number({.group = group,
                   .name = "context",
                   .placeholder = "N",
                   .sentence = "Length of a sample of a text: each character is predicted from those before "
                               "it in the sample.",
                   .unit = "characters"},
                  &C::context, "context", 1, worker::kLongestContext),
           conditions::kTexts));
  table.push_back(only(on_or_off({.group = group,
                                  .name = "augment",
                                  .placeholder = "HOW",
                                  .sentence = "Whether training images are shown as crops of 32x32 out of 40x40, half "
                                              "of them mirrored, drawn anew in each epoch (He et al. 2016)."},
                                 &C::augment, "augmentation"),
                       conditions::kCrops));
  table.push_back(only(
      choice(
          {.group = group,
           .name = "shard",
           .placeholder = "HOW",
           .sentence = "Which training samples a worker has; random: each epoch shuffles all samples and deals them "
                       "out to all workers; labels: sorted by label and cut into a part for each worker, which trains "
                       "its own part alone, all of it, however slow it is (McMahan et al. 2017)."},
          &C::shard, "shard", {DataShard::kRandom, DataShard::kLabels}),
      conditions::kLabelledParts));
}

}  // namespace syncopate::experiments
