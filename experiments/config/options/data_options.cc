#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "worker/data/dataset_names.h"
#include "worker/data/grammar.h"
#include "worker/data/own/open_own.h"
#include "worker/data/patterns.h"
#include "worker/data/text_form.h"

namespace syncopate::experiments {

using option_kinds::choice;
using option_kinds::number;
using option_kinds::on_or_off;
using option_kinds::only;
using option_kinds::text;

namespace {

using C = RunRequest;
using Traits = worker::DatasetTraits;

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
                   .of_model = true,
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

// A known set, or a path.
OptionSpec dataset_option(const std::string& group) {
  OptionSpec option = text(
      {.group = group,
       .name = "dataset",
       .of_model = true,
       .placeholder = "NAME",
       .sentence = fmt::format(
           "What is learnt; {} are generated, the others are read from --data-dir: text is its *.txt files, byte by "
           "byte, ratings are MovieLens's files, clicks Criteo's train.txt. A path is data of your own: a table, "
           "NumPy's arrays, IDX files, or a folder of images, which ends in a slash.",
           list_text(worker::dataset_names([](const Traits& set) { return set.is_generated; }), "and"))},
      &C::dataset, "data set", worker::dataset_names([](const Traits&) { return true; }));
  option.range += fmt::format("; or {}", worker::kOwnFormats);
  option.set = [option, known = option.set](RunRequest& request, const std::string& value) -> Status {
    if (!worker::is_own_data(value)) {
      const Status status = known(request, value);
      if (status.ok()) return status;
      return option_kinds::misspelt(option, value, "data set",
                                    worker::dataset_names([](const Traits&) { return true; }));
    }
    if (const Status status = worker::check_own_name(value); !status.ok()) return status.in("--dataset=" + value);
    request.dataset = value;
    return {};
  };
  return option;
}

void add_own_options(const std::string& group, std::vector<OptionSpec>& table) {
  using worker::Normalisation;
  using worker::Task;
  table.push_back(
      only(text({.group = group,
                 .name = "target",
                 .of_model = true,
                 .placeholder = "NAME",
                 .sentence = "What is to be predicted of your own data: a column of a table, an array of an "
                             ".npz, or the file of the labels.",
                 .range = "a column, an array or a file",
                 .usual = "the last column; the array y, target or labels"},
                &C::target, "target"),
           conditions::kOwnData));
  table.push_back(only(text({.group = group,
                             .name = "ignore",
                             .of_model = true,
                             .placeholder = "NAMES",
                             .sentence = "Columns of a table, between commas, that nothing is learnt from.",
                             .range = "columns of the table",
                             .usual = "none"},
                            &C::ignore, "columns"),
                       conditions::kOwnData));
  table.push_back(only(choice({.group = group,
                               .name = "task",
                               .of_model = true,
                               .placeholder = "WHAT",
                               .sentence = "What the target is; auto: classes if it has texts or whole numbers, else "
                                           "regression, by the mean squared error; with more than 100 whole numbers "
                                           "it must be said."},
                              &C::task, "task", {Task::kAuto, Task::kClasses, Task::kRegression}),
                       conditions::kOwnData));
  table.push_back(only(text({.group = group,
                             .name = "test-data",
                             .of_model = true,
                             .placeholder = "PATH",
                             .sentence = "The test part of your own data, a file or folder of the same kind.",
                             .range = "a file or a folder",
                             .usual = "as the files have it, else --test-fraction"},
                            &C::test_data, "test data"),
                       conditions::kOwnData));
  table.push_back(only(number({.group = group,
                               .name = "test-fraction",
                               .of_model = true,
                               .placeholder = "FRACTION",
                               .sentence = "Part of your own samples, drawn by --data-seed, that is the test part.",
                               .unit = "fraction"},
                              &C::test_fraction, "test part", 0.001, 0.9),
                       conditions::kDrawnTest));
  table.push_back(only(
      choice({.group = group,
              .name = "normalise",
              .of_model = true,
              .placeholder = "HOW",
              .sentence = "How values of your own data are scaled, by feature or by channel, as the training part "
                          "has them; standard: mean 0, deviation 1, targets of regression too; minmax: 0 to 1."},
             &C::normalise, "normalisation", {Normalisation::kStandard, Normalisation::kMinMax, Normalisation::kNone}),
      conditions::kOwnData));
  table.push_back(only(number({.group = group,
                               .name = "image-size",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "Both sides to which images of a folder are scaled, or that those of "
                                           "patterns have.",
                               .unit = "pixels",
                               .usual = fmt::format("as they are, which must be the same of all; {} of patterns",
                                                    worker::kUsualPatternSide)},
                              &C::image_size, "side of an image", 1, worker::kLargestPatternSide),
                       conditions::kSizedImages));
}

}  // namespace

void add_data_options(std::vector<OptionSpec>& table) {
  const std::string group = "Model and data";
  table.push_back(only(dataset_option(group), conditions::kLearns));
  add_own_options(group, table);
  table.push_back(text({.group = group,
                        .name = "data-dir",
                        .of_model = true,
                        .placeholder = "DIR",
                        .sentence = "Where the files of the data set lie, and where digits are kept once generated.",
                        .range = "a directory"},
                       &C::data_dir, "data directory"));
  table.push_back(only(number({.group = group,
                               .name = "train-samples",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "Size of the generated training set.",
                               .unit = "samples"},
                              &C::train_samples, "training samples", std::int64_t{1}, std::int64_t{10000000}),
                       conditions::kGeneratedData));
  table.push_back(only(number({.group = group,
                               .name = "test-samples",
                               .of_model = true,
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
                   .of_model = true,
                   .placeholder = "N",
                   .sentence = "Length of a sample of a text: each character is predicted from those before "
                               "it in the sample.",
                   .unit = "characters"},
                  &C::context, "context", 1, worker::kLongestContext),
           conditions::kTexts));
  table.push_back(only(number({.group = group,
                               .name = "vocabulary",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "How many characters grammar has, two for each kind of bracket; GPT-2 has "
                                           "50257 tokens and a --context of 1024.",
                               .unit = "characters"},
                              &C::vocabulary, "vocabulary", 2, worker::kLargestVocabulary),
                       conditions::kGrammar));
  table.push_back(only(number({.group = group,
                               .name = "classes",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "How many classes patterns has.",
                               .unit = "classes"},
                              &C::classes, "classes", 2, worker::kMostPatternClasses),
                       conditions::kPatterns));
  table.push_back(only(on_or_off({.group = group,
                                  .name = "augment",
                                  .of_model = true,
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
