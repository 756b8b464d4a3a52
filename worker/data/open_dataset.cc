#include "worker/data/open_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text/printable_text.h"
#include "worker/data/cifar_reader.h"
#include "worker/data/dataset_names.h"
#include "worker/data/digits.h"
#include "worker/data/digits_cache.h"
#include "worker/data/grammar.h"
#include "worker/data/idx_format.h"
#include "worker/data/idx_reader.h"
#include "worker/data/own/open_own.h"
#include "worker/data/patterns.h"
#include "worker/data/recommender_sets.h"
#include "worker/data/text_files.h"
#include "worker/data/text_form.h"
#include "worker/data/text_lines.h"

namespace syncopate::worker {
namespace {

constexpr std::int64_t kMostDigits = 10'000'000;
constexpr std::string_view kDigitsPrefix = "digits:";

std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMostDigits) return {};
  return count;
}

Result<DigitsCounts> parse_digits(std::string_view name) {
  if (name == "digits") return DigitsCounts();
  const std::string_view counts = name.substr(kDigitsPrefix.size());
  const std::size_t dash = std::min(counts.find('-'), counts.size());
  const auto train = parse_count(counts.substr(0, dash));
  const auto test = parse_count(counts.substr(std::min(dash + 1, counts.size())));
  if (!train || !test) {
    return Status::invalid_argument(
        fmt::format("dataset '{}': must be digits:TRAIN-TEST, two counts of 1 to {}, "
                    "as in digits:60000-10000",
                    name, kMostDigits));
  }
  return DigitsCounts{.train = *train, .test = *test};
}

bool is_digits(std::string_view name) { return name == "digits" || name.starts_with(kDigitsPrefix); }

constexpr std::string_view kTextPrefix = "text:", kGrammarPrefix = "grammar:", kPatternsPrefix = "patterns:";

bool is_text(std::string_view name) { return name == "text" || name.starts_with(kTextPrefix); }
bool is_grammar(std::string_view name) { return name == "grammar" || name.starts_with(kGrammarPrefix); }
bool is_patterns(std::string_view name) { return name == "patterns" || name.starts_with(kPatternsPrefix); }

// The context of "text:64".
Result<int> parse_text(std::string_view name) {
  if (name == "text") return kUsualContext;
  const auto context = parse_count(name.substr(kTextPrefix.size()));
  if (context && *context <= kLongestContext) return static_cast<int>(*context);
  return Status::invalid_argument(
      fmt::format("dataset '{}': must be text:CONTEXT, 1 to {} characters, as in text:64", name, kLongestContext));
}

// The numbers of "60000-10000-64", each from 1 to the limit in its place; nothing if there are others.
template <std::size_t count>
std::optional<std::array<std::int64_t, count>> parse_numbers(std::string_view text,
                                                             const std::array<std::int64_t, count>& limits) {
  std::array<std::string_view, count> parts;
  if (split(text, "-", parts) != count) return {};
  std::array<std::int64_t, count> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = parse_count(parts[i]).value_or(0);
    if (numbers[i] < 1 || numbers[i] > limits[i]) return {};
  }
  return numbers;
}

struct GrammarName {
  GrammarCounts counts{.train = 60000, .test = 10000};
  int context = kUsualContext;
  int vocabulary = kUsualVocabulary;
};

Result<GrammarName> parse_grammar(std::string_view name) {
  if (name == "grammar") return GrammarName();
  const std::string_view text = name.substr(kGrammarPrefix.size());
  const auto numbers = parse_numbers<4>(text, {kMostDigits, kMostDigits, kLongestContext, kLargestVocabulary});
  if (!numbers || (*numbers)[3] < 2) {
    return Status::invalid_argument(
        fmt::format("dataset '{}': must be grammar:TRAIN-TEST-CONTEXT-VOCABULARY, two counts of 1 to {}, 1 to {} "
                    "characters and a vocabulary of 2 to {}, as in grammar:60000-10000-64-8",
                    name, kMostDigits, kLongestContext, kLargestVocabulary));
  }
  const auto [train, test, context, vocabulary] = *numbers;
  return GrammarName{.counts = {.train = train, .test = test},
                     .context = static_cast<int>(context),
                     .vocabulary = static_cast<int>(vocabulary)};
}

Result<PatternSizes> parse_patterns(std::string_view name) {
  if (name == "patterns") return PatternSizes();
  const std::string_view text = name.substr(kPatternsPrefix.size());
  const auto numbers = parse_numbers<4>(text, {kMostDigits, kMostDigits, kLargestPatternSide, kMostPatternClasses});
  if (!numbers || numbers->back() < 2) {
    return Status::invalid_argument(
        fmt::format("dataset '{}': must be patterns:TRAIN-TEST-SIDE-CLASSES, two counts of 1 to {}, 1 to {} pixels and "
                    "2 to {} classes, as in patterns:60000-10000-224-1000",
                    name, kMostDigits, kLargestPatternSide, kMostPatternClasses));
  }
  const auto [train, test, side, classes] = *numbers;
  return PatternSizes{
      .train = train, .test = test, .side = static_cast<int>(side), .classes = static_cast<int>(classes)};
}

// The folders of `folders` (relative to data_dir) that are searched, in order.
std::vector<std::string> below(const std::string& data_dir, std::initializer_list<const char*> folders) {
  std::vector<std::string> paths;
  for (const char* folder : folders) paths.push_back(data_dir + "/" + folder);
  paths.push_back(data_dir);
  return paths;
}

std::optional<std::string> existing(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is reported as missing
  return std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
}

// The paths of all `names` in the first folder that has any of them; where `gz`, a name may also end in ".gz".
Result<std::vector<std::string>> find_files(const std::string& dataset, const std::vector<std::string>& folders,
                                            const std::vector<std::string>& names, bool gz) {
  const char* const either = gz ? " (plain or .gz)" : "";
  for (const std::string& folder : folders) {
    std::vector<std::string> found, missing;
    for (const std::string& name : names) {
      std::optional<std::string> path = existing(folder + "/" + name);
      if (!path && gz) path = existing(folder + "/" + name + ".gz");
      path ? found.push_back(*path) : missing.push_back(name);
    }
    if (missing.empty()) return found;
    if (!found.empty()) {
      return Status::not_found(
          fmt::format("{}: {} has {} but not {}{}", dataset, folder, found.front(), fmt::join(missing, ", "), either));
    }
  }
  return Status::not_found(
      fmt::format("{}: found none of {}{} in {}", dataset, fmt::join(names, ", "), either, fmt::join(folders, ", ")));
}

Result<DatasetPair> pair_of(const std::string& name, Result<std::unique_ptr<ImageDataset>> train,
                            Result<std::unique_ptr<ImageDataset>> test) {
  if (!train.ok()) return train.status();
  if (!test.ok()) return test.status();
  const ImageShape a = (*train)->shape(), b = (*test)->shape();
  if (a != b) {
    return Status::data_loss(fmt::format("{}: training images are {}x{}, test images {}x{}, expected the same", name,
                                         a.height, a.width, b.height, b.width));
  }
  return DatasetPair{std::move(*train), std::move(*test)};
}

// Training images, training labels, test images, test labels.
Result<std::vector<std::string>> find_idx_files(const std::string& name, const std::vector<std::string>& folders) {
  return find_files(name, folders, {kIdxTrainImages, kIdxTrainLabels, kIdxTestImages, kIdxTestLabels}, true);
}

Result<DatasetPair> open_idx_set(const std::string& name, const std::vector<std::string>& folders, PixelScale scale) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> files, find_idx_files(name, folders));
  return pair_of(name, open_idx(files[0], files[1], scale), open_idx(files[2], files[3], scale));
}

std::vector<std::string> idx_folders(const std::string& name, const std::string& data_dir) {
  if (name == "mnist") return below(data_dir, {"mnist", "MNIST/raw"});
  return below(data_dir, {"fashion-mnist", "FashionMNIST/raw"});
}

bool is_cifar(std::string_view name) { return name == "cifar10" || name == "cifar10:plain"; }

Result<DatasetPair> open_cifar_set(const std::string& name, const std::string& data_dir, std::uint64_t seed) {
  const std::vector<std::string> folders = below(data_dir, {"cifar10", "cifar-10-batches-bin"});
  std::vector<std::string> names(std::begin(kCifarTrainFiles), std::end(kCifarTrainFiles));
  names.emplace_back(kCifarTestFile);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> files, find_files(name, folders, names, false));
  const std::span<const std::string> paths(files);
  const std::optional<std::uint64_t> crop_seed = name == "cifar10" ? std::optional(seed) : std::nullopt;
  return pair_of(name, open_cifar10(paths.first(paths.size() - 1), kCifarRecordsPerFile, crop_seed),
                 open_cifar10(paths.last(1)));
}

Result<DatasetPair> open_digits(const std::string& name, const std::string& data_dir, std::uint64_t seed,
                                PixelScale scale) {
  SYNCOPATE_ASSIGN_OR_RETURN(const DigitsCounts counts, parse_digits(name));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string folder, ensure_digits(data_dir, seed, counts));
  Result<DatasetPair> pair = open_idx_set(name, {folder}, scale);
  if (pair.ok() || pair.status().code() == Code::kResourceExhausted) return pair;
  return Status(pair.status().code(),
                fmt::format("{}; remove the folder to have it made anew", pair.status().message()));
}

Result<DatasetPair> open_text_set(const std::string& name, const std::string& data_dir) {
  SYNCOPATE_ASSIGN_OR_RETURN(const int context, parse_text(name));
  SYNCOPATE_ASSIGN_OR_RETURN(TextParts parts, open_text(below(data_dir, {"text"}), context));
  return DatasetPair{std::move(parts.first), std::move(parts.second)};
}

struct ScaledName {
  std::string name;
  PixelScale scale = PixelScale::kShifted;
};

// Takes ":unit" off the name of a set of images of ink on paper.
ScaledName scaled_name(const std::string& name) {
  if (!name.ends_with(kUnitSuffix)) return {.name = name};
  std::string bare = name.substr(0, name.size() - kUnitSuffix.size());
  if (!is_digits(bare) && bare != "mnist" && bare != "fashion-mnist") return {.name = name};
  return {.name = std::move(bare), .scale = PixelScale::kUnit};
}

Result<DatasetPair> make_grammar(const std::string& name, std::uint64_t seed) {
  SYNCOPATE_ASSIGN_OR_RETURN(const GrammarName grammar, parse_grammar(name));
  return DatasetPair{make_grammar_train(seed, grammar.counts, grammar.context, grammar.vocabulary),
                     make_grammar_test(seed, grammar.counts, grammar.context, grammar.vocabulary)};
}

Result<DatasetPair> make_patterns(const std::string& name, std::uint64_t seed) {
  SYNCOPATE_ASSIGN_OR_RETURN(const PatternSizes sizes, parse_patterns(name));
  return DatasetPair{make_patterns_train(seed, sizes), make_patterns_test(seed, sizes)};
}

// "digits, digits:TRAIN-TEST, mnist, ...".
std::string usages() {
  std::vector<std::string_view> all;
  for (const DatasetTraits& traits : dataset_traits()) all.push_back(traits.usage);
  return fmt::format("{}, or a path of your own data", fmt::join(all, ", "));
}

}  // namespace

Status check_dataset_name(const std::string& given) {
  const std::string name = scaled_name(given).name;
  if (is_digits(name)) return parse_digits(name).status();
  if (is_recommender_set(name)) return check_recommender_set(name);
  if (is_text(name)) return parse_text(name).status();
  if (is_grammar(name)) return parse_grammar(name).status();
  if (is_patterns(name)) return parse_patterns(name).status();
  if (name == "mnist" || name == "fashion-mnist" || is_cifar(name)) return Status();
  if (is_own_data(name)) return check_own_name(name);
  return Status::invalid_argument(fmt::format("dataset '{}': must be one of {}", name, usages()));
}

namespace {

Result<DatasetPair> open_known(const std::string& given, const std::string& data_dir, std::uint64_t seed,
                               const OwnOptions& own) {
  SYNCOPATE_RETURN_IF_ERROR(check_dataset_name(given));
  if (is_own_data(given)) return open_own_data(given, own, seed);
  const auto [name, scale] = scaled_name(given);
  if (is_digits(name)) return open_digits(name, data_dir, seed, scale);
  if (is_recommender_set(name)) return open_recommender_set(name, data_dir, seed);
  if (is_text(name)) return open_text_set(name, data_dir);
  if (is_grammar(name)) return make_grammar(name, seed);
  if (is_patterns(name)) return make_patterns(name, seed);
  if (is_cifar(name)) return open_cifar_set(name, data_dir, seed);
  return open_idx_set(name, idx_folders(name, data_dir), scale);
}

Result<SampleForm> form_of_known(const std::string& given, const std::string& data_dir, const OwnOptions& own) {
  SYNCOPATE_RETURN_IF_ERROR(check_dataset_name(given));
  if (is_own_data(given)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const DatasetPair pair, open_own_data(given, own, 0));
    return pair.train->form();
  }
  const std::string name = scaled_name(given).name;
  if (is_digits(name)) return form_of_images(kDigitShape, kIdxClasses);
  if (is_recommender_set(name)) return recommender_form(name, data_dir);
  if (is_text(name)) return form_of_text(*parse_text(name), kTextCharacters);
  if (is_grammar(name)) return form_of_grammar(parse_grammar(name)->context, parse_grammar(name)->vocabulary);
  if (is_patterns(name)) return form_of_patterns(*parse_patterns(name));
  if (is_cifar(name)) return form_of_images(kCifarShape, kCifarClasses);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> files, find_idx_files(name, idx_folders(name, data_dir)));
  SYNCOPATE_ASSIGN_OR_RETURN(const ImageShape shape, read_idx_shape(files.front()));
  return form_of_images(shape, kIdxClasses);
}

// Data may be anybody's: a message shows nothing of it that a terminal would obey, and memory that ends where a file
// claims much is the file's failure.
template <typename T, typename Open>
Result<T> guarded(const std::string& name, Open&& open) {
  constexpr std::size_t kLongestMessage = 8192;
  try {
    Result<T> opened = open();
    if (opened.ok()) return opened;
    return Status(opened.status().code(), printable(opened.status().message(), kLongestMessage));
  } catch (const std::bad_alloc&) {
    return Status::resource_exhausted(fmt::format("dataset '{}': there is no memory for it", printable(name)));
  }
}

}  // namespace

Result<DatasetPair> open_dataset(const std::string& name, const std::string& data_dir, std::uint64_t seed,
                                 const OwnOptions& own) {
  return guarded<DatasetPair>(name, [&] { return open_known(name, data_dir, seed, own); });
}

Result<SampleForm> sample_form(const std::string& name, const std::string& data_dir, const OwnOptions& own) {
  return guarded<SampleForm>(name, [&] { return form_of_known(name, data_dir, own); });
}

}  // namespace syncopate::worker
