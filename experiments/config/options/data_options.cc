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

namespace {

using C = RunRequest;

// In which order samples come, how many, and what they and the first weights are.
void add_guide_options(const std::string& group, std::vector<OptionSpec>& table) {
  using worker::PixelScale;
  using worker::Shuffle;
  using worker::WeightInit;
  table.push_back(
      only(choice({.group = group,
                   .name = "shuffle",
                   .placeholder = "HOW",
                   .sentence = "In which order training samples come; global: each epoch permutes all and deals them "
                               "out; shard: a worker has every W-th sample and permutes those; worker: each worker "
                               "permutes all for itself; off: as the set has them."},
                  &C::shuffle, "shuffle", {Shuffle::kGlobal, Shuffle::kShard, Shuffle::kWorker, Shuffle::kOff}),
           conditions::kLearns));
  table.push_back(
      only(on_or_off({.group = group,
                      .name = "drop-last",
                      .placeholder = "HOW",
                      .sentence = "Whether the samples of an epoch that do not fill a batch of all workers are left "
                                  "out; off: they make a smaller last one."},
                     &C::drop_last, "dropping the last batch"),
           conditions::kLearns));
  table.push_back(only(number({.group = group,
                               .name = "prefetch",
                               .placeholder = "N",
                               .sentence = "How many batches a worker's loader prepares ahead, at most.",
                               .unit = "batches"},
                              &C::prefetch, "batches ahead", 1, 1024),
                       conditions::kLearns));
  table.push_back(
      only(choice({.group = group,
                   .name = "pixel-scale",
                   .placeholder = "HOW",
                   .sentence = "What a pixel's byte v becomes; shifted: 2v/255 - 0.3, near zero on average; unit: "
                               "v/255, as Keras's guides have it."},
                  &C::pixel_scale, "pixel scale", {PixelScale::kShifted, PixelScale::kUnit}),
           conditions::kInk));
  table.push_back(
      only(choice({.group = group,
                   .name = "init",
                   .placeholder = "HOW",
                   .sentence = "What weights are drawn from, all uniform; by-layer: he under ReLU, lecun in the last "
                               "layer; he: limit sqrt(6/fan in); glorot: sqrt(6/(fan in + fan out)), as Keras; lecun: "
                               "sqrt(3/fan in)."},
                  &C::init, "initialisation",
                  {WeightInit::kByLayer, WeightInit::kHe, WeightInit::kGlorot, WeightInit::kLeCun}),
           conditions::kImages));
}

}  // namespace

void add_data_options(std::vector<OptionSpec>& table) {
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
                   .name = "validation",
                   .placeholder = "FRACTION",
                   .sentence = "Part of the training set that is held out: its last samples, on which the weights are "
                               "evaluated besides the test set, and by which --target-accuracy then goes.",
                   .unit = "fraction",
                   .usual = "none"},
                  &C::validation, "validation", 0.001, 0.9),
           conditions::kHoldsOut));
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
  add_guide_options(group, table);
}

}  // namespace syncopate::experiments
