// What is offered by name, of each sort of thing that a run is made of, is there wherever a person meets it. These
// tests take the names from the tables that the program takes them from, so that a place that a new one was left out of
// fails.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/codec/codec.h"
#include "common/text/list_text.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/comparison.h"
#include "experiments/config/help_text.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"
#include "experiments/config/rules/rate_rule.h"
#include "prediction/model_profile.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/build_paths.h"
#include "tests/support/every_consistency.h"
#include "worker/data/dataset_names.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"
#include "worker/model.h"

namespace syncopate::experiments {
namespace {

using ps::ConsistencyTraits;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kAWholeLine = 10000;  // columns, so that nothing is broken across lines

std::string page(const std::string& path) {
  std::ifstream file(testing_support::source_directory() + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const OptionSpec& option_named(const std::vector<OptionSpec>& table, const std::string& name) {
  return *std::ranges::find(table, name, &OptionSpec::name);
}

// Returns the names in a range such as "softmax, mlp or lenet".
std::vector<std::string> names_in(std::string range) {
  for (std::size_t at = range.find(" or "); at != range.npos; at = range.find(" or ")) range.replace(at, 4, ", ");
  std::vector<std::string> names;
  std::stringstream stream(range);
  for (std::string name; std::getline(stream, name, ',');) {
    name.erase(0, name.find_first_not_of(' '));
    if (!name.empty()) names.push_back(name);  // ", or " stands for two commas
  }
  return names;
}

// The refusal of a run of four workers with servers under this consistency, or "accepted".
std::string refusal_under(const std::string& consistency, const std::vector<std::string>& more = {}) {
  std::vector<std::string> flags{"--mode=ps", "--workers=4", "--consistency=" + consistency};
  flags.insert(flags.end(), more.begin(), more.end());
  std::vector<const char*> words;
  for (const std::string& flag : flags) words.push_back(flag.c_str());
  return refusal(words);
}

void expect_taken_if(bool is_taken, const std::string& refusal, const std::string& sentence) {
  if (is_taken) {
    EXPECT_EQ(refusal, "accepted");
  } else {
    EXPECT_THAT(refusal, HasSubstr(sentence));
  }
}

std::string consistencies(ps::ConsistencyTest test) {
  return "--consistency=" + list_text(ps::consistency_names(test), "or");
}

class EveryConsistency : public testing::Test {
 protected:
  // Calls check(traits, text) for each kind, as it is typed.
  template <typename Check>
  void for_each(Check&& check) {
    for (const ConsistencyTraits& traits : ps::consistency_traits()) {
      const std::string text = ps::consistency_example(traits, 1);
      SCOPED_TRACE(text);
      check(traits, text);
    }
  }
};

TEST_F(EveryConsistency, IsInTheHelpOfItsOptionAndOfCompare) {
  const std::string option = *help_text("consistency", kAWholeLine), modes = *help_text("modes", kAWholeLine);
  for_each([&](const ConsistencyTraits& traits, const std::string&) {
    EXPECT_THAT(option, HasSubstr(traits.usage() + ": " + std::string(traits.sentence)));
    EXPECT_THAT(modes, HasSubstr("ps:" + traits.usage()));
  });
}

TEST_F(EveryConsistency, HasARowInTheTableOfItsPage) {
  const std::string text = page("ps/README.md");
  for_each([&](const ConsistencyTraits& traits, const std::string&) {
    EXPECT_THAT(text, HasSubstr("\n| `" + traits.usage() + "` | "));
  });
}

TEST_F(EveryConsistency, IsTakenByACommandLineAndByCompareAndWrittenBack) {
  const std::vector<OptionSpec> table = option_table();
  const OptionSpec& option = option_named(table, "consistency");
  for_each([&](const ConsistencyTraits& traits, const std::string& text) {
    RunRequest request{{.mode = Mode::kPs}};
    EXPECT_TRUE(option.set(request, text).ok());
    EXPECT_EQ(option.get(presumed(request)), text);
    EXPECT_EQ(refusal_under(text), "accepted");
    EXPECT_THAT(refusal_under(std::string(traits.name) + ":x"), HasSubstr(traits.usage()));
    EXPECT_TRUE(comparison_runs(RunRequest(), "ps:" + text).ok());
  });
}

TEST_F(EveryConsistency, TakesBackupWorkersQuorumsPipelinesAndPrioritiesByItsTraits) {
  for_each([](const ConsistencyTraits& traits, const std::string& text) {
    const auto backups = [](const ConsistencyTraits& kind) { return kind.backup_workers; };
    const auto quorums = [](const ConsistencyTraits& kind) { return kind.quorum; };
    const auto pipelines = [](const ConsistencyTraits& kind) { return kind.pipeline; };
    const auto gradients = [](const ConsistencyTraits& kind) { return !kind.pushes_weights; };
    const auto stale = [](const ConsistencyTraits& kind) { return kind.applies_stale_gradients(); };
    const auto sharing = [](const ConsistencyTraits& kind) { return kind.shares_work(); };
    expect_taken_if(traits.backup_workers, refusal_under(text, {"--backup-workers=1"}), consistencies(backups));
    expect_taken_if(traits.quorum, refusal_under(text, {"--quorum=1"}), consistencies(quorums));
    expect_taken_if(traits.pipeline, refusal_under(text, {"--pipeline-depth=1"}), consistencies(pipelines));
    expect_taken_if(!traits.pushes_weights, refusal_under(text, {"--overlap-forward"}), consistencies(gradients));
    expect_taken_if(stale(traits), refusal_under(text, {"--staleness-lr=divide"}), consistencies(stale));
    expect_taken_if(sharing(traits), refusal_under(text, {"--work=quota"}), consistencies(sharing));
    expect_taken_if(!traits.pushes_weights, refusal_under(text, {"--compress=int8"}), "a consistency other than ");
    if (traits.pushes_weights) return;
    expect_taken_if(traits.pipeline, refusal_under(text, {"--overlap-forward", "--push-order=priority"}),
                    consistencies(pipelines));
  });
}

TEST_F(EveryConsistency, ServesTablesByItsTraits) {
  for_each([](const ConsistencyTraits& traits, const std::string& text) {
    const std::string with_tables = refusal_under(text, {"--model=ncf", "--dataset=zipf-ratings"});
    const auto tables = [](const ConsistencyTraits& kind) { return kind.tables; };
    expect_taken_if(traits.tables, with_tables, "use " + list_text(ps::consistency_usages(tables), "or") + ", or");
    if (!traits.tables) EXPECT_THAT(with_tables, StartsWith("--consistency=" + text + ": "));
  });
}

TEST_F(EveryConsistency, IsCheckpointedWhereAllWorkersAreAtOneState) {
  for_each([](const ConsistencyTraits& traits, const std::string& text) {
    EXPECT_EQ(refusal_under(text, {"--checkpoint-every=20"}), "accepted");
    const std::int64_t period = ps::Consistency::parse(text)->period();
    const bool is_between = traits.updates_together() && 20 * period + 1 != (20 * period + 1) / period * period;
    expect_taken_if(!is_between, refusal_under(text, {fmt::format("--checkpoint-every={}", 20 * period + 1)}),
                    "--consistency=" + text);
  });
}

TEST_F(EveryConsistency, LearnsFromAsManyBatchesAnUpdateAsItsTraitsSay) {
  for_each([](const ConsistencyTraits& traits, const std::string& text) {
    RunRequest config;
    config.mode = Mode::kPs;
    config.workers = 4;
    config.consistency = *ps::Consistency::parse(text);
    const bool is_each = traits.update == ConsistencyTraits::Update::kEachPush && !traits.pushes_weights;
    const bool is_several = traits.update == ConsistencyTraits::Update::kSeveralPushes;
    EXPECT_EQ(batches_an_update(config, 4), is_each ? 1 : is_several ? 4 / config.consistency.parameter(0) : 4);
  });
}

// Returns the model with sizes, and the name of a profile, in place of what stands for them.
std::string with_sizes(std::string model) {
  const std::string profile = testing_support::source_directory() + "/prediction/profiles/resnet50.json";
  const std::pair<std::string, std::string> instead[] = {
      {"WIDTHS", "784-16-10"}, {"CHANNELS-WIDTH", "4-8"}, {"LAYERS-HEADS-WIDTH", "1-2-16"},
      {"WIDTH", "8"},          {"NAME", "resnet50"},      {"FILE", profile}};
  for (const auto& [word, text] : instead) {
    const std::size_t at = model.find(word);
    if (at != model.npos) return model.replace(at, word.size(), text);
  }
  return model;
}

TEST(EveryModel, ThatIsOfferedCanBeMadeForSomeGeneratedData) {
  const std::vector<OptionSpec> table = option_table();
  for (const std::string& name : names_in(option_named(table, "model").range)) {
    bool is_made = false;
    std::string why;
    for (const char* dataset : {"digits", "grammar", "zipf-ratings", "zipf-clicks", "patterns"}) {
      RunRequest request;
      request.model = with_sizes(name);
      request.dataset = dataset;
      const Result<ParamLayout> layout = layout_of(presumed(request));
      is_made |= layout.ok() && layout->size() > 0;
      if (!layout.ok()) why += layout.status().message() + "\n";
    }
    EXPECT_TRUE(is_made) << name << ": " << why;
  }
}

// A data set that is offered is one that open_dataset knows by this name, with its sizes.
TEST(EveryDataset, ThatIsOfferedHasANameThatOpensItAndAParagraphOnItsPage) {
  const std::string text = page("worker/data/README.md");
  for (const worker::DatasetTraits& traits : worker::dataset_traits()) {
    RunRequest request;
    request.dataset = traits.name;
    EXPECT_TRUE(worker::check_dataset_name(dataset_spec(presumed(request))).ok()) << traits.name;
    EXPECT_THAT(text, testing::AnyOf(HasSubstr(fmt::format("**{}**", traits.name)),
                                     HasSubstr(fmt::format("`{}`", traits.name))));
  }
}

// A model and its profile are one thing, learnt or simulated.
TEST(EveryModel, ThatHasAProfileHasItsTensors) {
  struct Case {
    const char *model, *profile;
    worker::SampleForm form;
    double masked = 0;  // FLOPs of attention on what comes later, which the profile counts
  };
  const Case cases[] = {{"resnet50", "torchvision-resnet50", worker::form_of_images({224, 224, 3}, 1000)},
                        {"gpt:12-12-768", "gpt2", worker::form_of_text(1024, 50257), 12 * 2.0 * 1024 * 1023 * 768}};
  const std::unique_ptr<worker::ComputeBackend> none = worker::make_address_backend();
  for (const Case& c : cases) {
    const prediction::ModelProfile profile = *prediction::built_in_profile(c.profile);
    const std::unique_ptr<worker::Model> model = std::move(*worker::make_model(c.model, c.form, 1, *none));
    std::vector<std::int64_t> sizes, expected;
    for (const TensorSpec& tensor : model->layout().tensors()) sizes.push_back(std::int64_t(tensor.range.size()));
    for (const prediction::TensorProfile& tensor : profile.tensors) expected.push_back(tensor.parameters);
    EXPECT_EQ(sizes, expected) << c.model;
    EXPECT_EQ(model->flops_per_sample(), profile.forward_flops() - c.masked) << c.model;
  }
}

TEST(EveryOptimizer, ThatIsOfferedHasAUsualRateInTheHelpAndIsTaken) {
  const std::vector<OptionSpec> table = option_table();
  const std::string rates = option_named(table, "learning-rate").usual;
  std::vector<std::string> made;
  for (const std::string& name : names_in(option_named(table, "optimizer").range)) {
    EXPECT_EQ(refusal({("--optimizer=" + name).c_str()}), "accepted");
    EXPECT_THAT(rates, testing::ContainsRegex("(^| )" + name + "( |,|$)"));
    RunRequest request;
    request.optimizer = *optimizer_named(name);
    request.momentum = 0.75;
    const OptimizerConfig optimizer = optimizer_of(presumed(request));
    made.push_back(fmt::format("{} {} {}", static_cast<int>(optimizer.kind), optimizer.nesterov,
                               name == "adamw" ? "decoupled" : ""));
  }
  std::ranges::sort(made);
  EXPECT_EQ(std::ranges::adjacent_find(made), made.end()) << "two names make the same optimizer";
}

TEST(EveryCollective, ThatIsOfferedIsTakenByCompareToo) {
  const std::vector<OptionSpec> table = option_table();
  for (const std::string& name : names_in(option_named(table, "collective").range)) {
    if (name == "auto" || name == "nccl") continue;  // allreduce alone; on GPUs
    const Result<std::vector<ComparedRun>> runs = comparison_runs(RunRequest(), "allreduce:" + name);
    ASSERT_TRUE(runs.ok()) << runs.status().message();
    EXPECT_EQ(name_of(*runs->front().config.collective), name);
  }
}

TEST(EveryCodec, ThatIsOfferedCanBeMadeAndIsWrittenBack) {
  for (const std::string& spelling : names_in(kCodecSpellings)) {
    std::string name = spelling.substr(0, spelling.find(" with "));
    if (name.ends_with(":R")) name.replace(name.size() - 1, 1, "0.5");
    if (name.ends_with(":K")) name.replace(name.size() - 1, 1, "2");
    const Result<CodecConfig> codec = parse_codec(name);
    ASSERT_TRUE(codec.ok()) << codec.status().message();
    EXPECT_EQ(to_string(*codec), name);
    if (codec->kind == CodecKind::kNone || codec->kind == CodecKind::kPowerSgd) continue;  // which encodes matrices
    EXPECT_GT(Codec(*codec, TensorRanges{{0, 1000}}).encoded_size(1000), 0u) << name;
  }
}

}  // namespace
}  // namespace syncopate::experiments
