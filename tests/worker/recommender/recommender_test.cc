#include "worker/recommender/recommender.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "common/tables/initial_row.h"
#include "tests/worker/asked_weights.h"
#include "tests/worker/tensor_helpers.h"
#include "worker/recommender/make_recommender.h"

namespace syncopate::worker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kSeed = 3;
constexpr int kBatch = 6;

const SampleForm kPairs{.image = {},
                        .classes = 2,
                        .ids = {{.name = "user", .columns = 1, .range = 9}, {.name = "item", .columns = 1, .range = 5}},
                        .labels = 1};
const SampleForm kClicks{
    .image = {1, 1, 3},
    .classes = 2,
    .ids = {{.name = "category", .columns = 4, .range = 30}, {.name = "day", .columns = 1, .range = 7}},
    .labels = 1};

struct Case {
  const char* spec;
  const SampleForm* form;
};

class RecommenderTest : public testing::TestWithParam<Case> {
 protected:
  struct Batch {
    Tensor values;
    std::vector<int> ids, labels;
    BatchView view() const { return {values, labels, ids}; }
  };
  struct Pass {
    LossAndCorrect result;
    Tensor gradients;
    std::vector<std::size_t> reported;
  };

  std::unique_ptr<Model> make(const std::string& suffix = "", ComputeBackend* backend = nullptr) {
    Result<std::unique_ptr<Model>> model =
        make_model(GetParam().spec + suffix, form(), kBatch, backend == nullptr ? *reference_ : *backend);
    EXPECT_TRUE(model.ok()) << model.status().message();
    return std::move(*model);
  }
  const SampleForm& form() const { return *GetParam().form; }

  // Some ids are drawn twice.
  Batch draw() {
    Batch batch{random_tensor(kBatch * form().values(), random_), {}, random_labels(kBatch, 2, random_)};
    for (int sample = 0; sample < kBatch; ++sample) {
      for (const IdField& field : form().ids) {
        for (int column = 0; column < field.columns; ++column) {
          batch.ids.push_back(static_cast<int>(random_.below(static_cast<std::uint64_t>(field.range))));
        }
      }
    }
    return batch;
  }

  // The first weights, and the rows that the batch touches.
  static Tensor weights_for(Model& model, const Batch& batch) {
    Tensor weights(model.layout().size());
    model.initialize(kSeed, weights);
    const std::span<const RowKeys> rows = model.touched_rows(batch.view());
    for (std::size_t table = 0; table < rows.size(); ++table) {
      const TensorSpec& tensor = model.layout().tensors()[table];
      for (std::size_t i = 0; i < rows[table].size(); ++i) {
        initial_row(kSeed, table, rows[table][i], tensor.table->limit,
                    std::span(weights).subspan(tensor.range.begin + i * tensor.width(), tensor.width()));
      }
    }
    return weights;
  }

  static Pass run_pass(Model& model, const Tensor& weights, const Batch& batch) {
    Pass pass;
    pass.gradients = poisoned(static_cast<int>(weights.size()));
    model.touched_rows(batch.view());
    model.forward(weights, batch.view());
    pass.result = model.loss();
    model.backward(weights, pass.gradients, [&](std::size_t tensor) { pass.reported.push_back(tensor); });
    return pass;
  }

  Random random_{7};
  std::unique_ptr<ComputeBackend> reference_ = make_reference_backend();
  std::unique_ptr<ComputeBackend> onednn_ = make_onednn_backend();
};

TEST_P(RecommenderTest, SaysWhichRowsABatchTouches) {
  const auto model = make();
  const Batch batch = draw();
  const std::span<const RowKeys> rows = model->touched_rows(batch.view());
  ASSERT_EQ(rows.size(), form().ids.size());
  std::size_t column = 0;
  for (std::size_t table = 0; table < rows.size(); ++table) {
    std::set<RowKey> expected;
    for (int i = 0; i < form().ids[table].columns; ++i, ++column) {
      for (std::size_t sample = 0; sample < kBatch; ++sample) {
        expected.insert(
            static_cast<RowKey>(batch.ids[sample * static_cast<std::size_t>(form().id_columns()) + column]));
      }
    }
    EXPECT_THAT(rows[table], testing::ElementsAreArray(expected));
  }
}

TEST_P(RecommenderTest, HasRoomForTheRowsOfABatchAndForNoMoreThanThereAre) {
  const auto model = make();
  for (std::size_t table = 0; table < form().ids.size(); ++table) {
    const TensorSpec& tensor = model->layout().tables()[table];
    EXPECT_EQ(tensor.name, form().ids[table].name);
    EXPECT_EQ(tensor.shape[0], form().ids[table].range);
    EXPECT_EQ(tensor.table->rows_a_step,
              std::min<std::int64_t>(form().ids[table].range, kBatch * form().ids[table].columns));
  }
  EXPECT_EQ(model_layout(GetParam().spec, form(), kBatch)->hash(), model->layout().hash());
}

TEST_P(RecommenderTest, GivesBitByBitTheSameWithSparseAndWithDenseEmbeddings) {
  for (ComputeBackend* backend : {reference_.get(), onednn_.get()}) {
    const auto sparse = make("", backend), dense = make(":dense", backend);
    EXPECT_TRUE(dense->layout().tables().empty());
    const Batch batch = draw();
    const Tensor sparse_weights = weights_for(*sparse, batch), dense_weights = weights_for(*dense, batch);
    const Pass a = run_pass(*sparse, sparse_weights, batch), b = run_pass(*dense, dense_weights, batch);
    EXPECT_EQ(a.result.loss, b.result.loss);
    EXPECT_EQ(a.reported, b.reported);
    const std::span<const RowKeys> rows = sparse->touched_rows(batch.view());
    for (std::size_t i = 0; i < sparse->layout().tensors().size(); ++i) {
      const TensorSpec &from = sparse->layout().tensors()[i], &to = dense->layout().tensors()[i];
      Tensor expected(slice(ConstFloats(a.gradients), from.range).begin(),
                      slice(ConstFloats(a.gradients), from.range).end());
      if (from.table) {
        expected.assign(to.range.size(), 0);
        for (std::size_t k = 0; k < rows[i].size(); ++k) {
          std::ranges::copy(ConstFloats(a.gradients).subspan(from.range.begin + k * from.width(), from.width()),
                            expected.begin() + static_cast<std::ptrdiff_t>(rows[i][k] * from.width()));
        }
      }
      const ConstFloats actual = slice(ConstFloats(b.gradients), to.range);
      EXPECT_EQ(Tensor(actual.begin(), actual.end()), expected) << to.name;
    }
  }
}

TEST_P(RecommenderTest, ReportsTensorsFromTheLastToTheFirst) {
  const auto model = make();
  const Batch batch = draw();
  const Pass pass = run_pass(*model, weights_for(*model, batch), batch);
  std::vector<std::size_t> expected(model->layout().tensors().size());
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = expected.size() - 1 - i;
  EXPECT_EQ(pass.reported, expected);
}

TEST_P(RecommenderTest, ReadsTheWeightsThatItAsksFor) {
  const auto model = make();
  const Batch batch = draw();
  expect_reads_what_it_asks_for(*model, weights_for(*model, batch), batch.view());
}

TEST_P(RecommenderTest, GivesTheSameOnBothBackends) {
  const auto plain = make("", reference_.get()), fast = make("", onednn_.get());
  for (int round = 0; round < 2; ++round) {  // the second finds activations of the first
    const Batch batch = draw();
    const Tensor weights = weights_for(*plain, batch);
    const Pass expected = run_pass(*plain, weights, batch), actual = run_pass(*fast, weights, batch);
    EXPECT_NEAR(actual.result.loss, expected.result.loss, 1e-6);
    const std::span<const RowKeys> rows = plain->touched_rows(batch.view());
    for (std::size_t i = 0; i < plain->layout().tensors().size(); ++i) {
      const TensorSpec& tensor = plain->layout().tensors()[i];
      const std::size_t size = tensor.table ? rows[i].size() * tensor.width() : tensor.range.size();
      expect_close(ConstFloats(actual.gradients).subspan(tensor.range.begin, size),
                   ConstFloats(expected.gradients).subspan(tensor.range.begin, size), 1e-6, tensor.name.c_str());
    }
  }
}

TEST_P(RecommenderTest, HasGradientsThatAreSlopesOfItsLoss) {
  const auto model = make();
  const Batch batch = draw();
  Tensor weights = weights_for(*model, batch);
  // Larger than they begin, so that products of embeddings matter.
  for (const TensorSpec& table : model->layout().tables()) {
    for (float& weight : slice(Floats(weights), table.range)) weight *= 10;
  }
  const Pass pass = run_pass(*model, weights, batch);
  const std::span<const RowKeys> rows = model->touched_rows(batch.view());
  for (std::size_t t = 0; t < model->layout().tensors().size(); ++t) {
    const TensorSpec& tensor = model->layout().tensors()[t];
    const std::size_t size = tensor.table ? rows[t].size() * tensor.width() : tensor.range.size();
    for (int round = 0; round < 12; ++round) {
      const std::size_t i = tensor.range.begin + random_.below(size);
      const float before = weights[i];
      const double gradient = pass.gradients[i];
      const auto slope_towards = [&](float step) {
        weights[i] = before + step;
        model->forward(weights, batch.view());
        const double slope = (model->loss().loss - pass.result.loss) / (static_cast<double>(weights[i]) - before);
        weights[i] = before;
        return slope;
      };
      // ReLU bends: where a bend lies on one side, or near, the gradient is the slope of the other, or close by.
      double error = 1;
      for (const float step : {5e-3f, 1e-3f}) {
        const double up = slope_towards(step), down = slope_towards(-step);
        for (const double slope : {up, down, (up + down) / 2}) error = std::min(error, std::abs(slope - gradient));
      }
      EXPECT_LE(error, 1e-4 + 0.01 * std::abs(gradient)) << tensor.name << " " << i;
    }
  }
}

TEST_P(RecommenderTest, ScoresSamplesByTheirLogits) {
  const auto model = make();
  const Batch batch = draw();
  run_pass(*model, weights_for(*model, batch), batch);
  ASSERT_EQ(model->scores().size(), static_cast<std::size_t>(kBatch));
  double loss = 0;
  for (std::size_t i = 0; i < kBatch; ++i) {
    loss += std::log1p(std::exp(model->scores()[i])) - static_cast<float>(batch.labels[i]) * model->scores()[i];
  }
  EXPECT_NEAR(model->loss().loss, loss / kBatch, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Models, RecommenderTest,
                         testing::Values(Case{"ncf", &kPairs}, Case{"ncf:3", &kPairs}, Case{"wide-deep:2", &kClicks},
                                         Case{"wide-deep", &kPairs}),
                         [](const auto& one) { return fmt::format("case{}", one.index); });

TEST(MakeRecommender, HasAsManyParametersAsItsFormulaSays) {
  EXPECT_EQ(model_layout("ncf", kPairs)->parameter_count(),
            14u * 32 + (32 * 32 + 32) + (32 * 16 + 16) + (16 * 8 + 8) + (16 + 8 + 1));
  EXPECT_EQ(model_layout("ncf:8", kPairs)->parameter_count(),
            14u * 16 + (16 * 16 + 16) + (16 * 8 + 8) + (8 * 4 + 4) + (8 + 4 + 1));
  EXPECT_EQ(model_layout("ncf:1", kPairs)->parameter_count(),
            14u * 2 + (2 * 2 + 2) + (2 * 1 + 1) + (1 * 1 + 1) + (1 + 1 + 1));
  EXPECT_EQ(model_layout("wide-deep:2", kClicks)->parameter_count(),
            37u * 3 + (13 * 256 + 256) + (256 * 128 + 128) + (128 * 64 + 64) + 65);
}

TEST(MakeRecommender, RefusesWhatDoesNotFit) {
  const auto refusal = [](const std::string& spec, const SampleForm& form) {
    const Result<ParamLayout> layout = model_layout(spec, form);
    EXPECT_EQ(layout.status().code(), Code::kInvalidArgument) << spec;
    return layout.status().message();
  };
  EXPECT_THAT(refusal("ncf", kClicks), AllOf(HasSubstr("--model=ncf: learns from a user and an item"),
                                             HasSubstr("--dataset=ratings; the data has 2 fields of ids, 5 ids")));
  EXPECT_THAT(refusal("ncf:0", kPairs), HasSubstr("'0' must be the width of an embedding, 1 to 1024, as in ncf:16"));
  EXPECT_THAT(refusal("wide-deep:x", kPairs), HasSubstr("'x' must be the width"));
  EXPECT_THAT(refusal("wide-deep", {.image = {1, 1, 4}, .classes = 2, .ids = {}, .labels = 1}),
              HasSubstr("0 fields of ids"));
  EXPECT_THAT(refusal("mlp", kPairs),
              HasSubstr("learns from values alone, and the data has ids; use ncf or wide-deep"));
}

TEST(MakeRecommender, RefusesDenseEmbeddingsThatAreTooLarge) {
  SampleForm form = kPairs;
  form.ids[1].range = kMostDenseEmbeddings / 32;
  const Result<ParamLayout> layout = model_layout("ncf:16:dense", form);
  EXPECT_THAT(layout.status().message(),
              AllOf(HasSubstr("--embeddings=dense: tables of 134218016 values are too large"),
                    HasSubstr("--embeddings=sparse")));
  EXPECT_TRUE(model_layout("ncf:16", form).ok());
}

TEST(SigmoidCrossEntropy, IsTheMeanOfTheLogsOfWhatTheLabelsWereGiven) {
  const std::vector<float> logits = {0.5f, -1.5f, 2.0f};
  const std::vector<int> labels = {1, 0, 0};
  std::vector<float> gradients(3);
  const LossAndCorrect result = sigmoid_cross_entropy(logits, labels, gradients);
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_NEAR(result.loss, -(std::log(sigmoid(0.5)) + std::log(1 - sigmoid(-1.5)) + std::log(1 - sigmoid(2))) / 3,
              1e-12);
  EXPECT_EQ(result.correct, 2);
  EXPECT_FLOAT_EQ(gradients[0], static_cast<float>((sigmoid(0.5) - 1) / 3));
  EXPECT_FLOAT_EQ(gradients[1], static_cast<float>(sigmoid(-1.5) / 3));
  EXPECT_FLOAT_EQ(gradients[2], static_cast<float>(sigmoid(2) / 3));
}

TEST(SigmoidCrossEntropy, StaysFiniteForLargeLogits) {
  std::vector<float> gradients(4);
  const LossAndCorrect result =
      sigmoid_cross_entropy(std::vector<float>{1e4f, -1e4f, 1e4f, -1e4f}, std::vector<int>{1, 0, 0, 1}, gradients);
  EXPECT_EQ(result.loss, 5000);
  EXPECT_EQ(gradients, (std::vector<float>{0, 0, 0.25f, -0.25f}));
}

TEST(SigmoidCrossEntropy, CountsNoPreferenceAsLabelZero) {
  std::vector<float> gradients(2);
  EXPECT_EQ(sigmoid_cross_entropy(std::vector<float>{0, 0}, std::vector<int>{0, 1}, gradients).correct, 1);
}

TEST(SigmoidCrossEntropy, IsNoNumberWhereALogitIsNone) {
  std::vector<float> gradients(1);
  const std::vector<float> logits = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(sigmoid_cross_entropy(logits, std::vector<int>{1}, gradients).loss));
}

}  // namespace
}  // namespace syncopate::worker
