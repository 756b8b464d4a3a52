// Evaluation of models with row-sparse tables: from the rows that the test set touches alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/cluster/process/evaluation.h"
#include "experiments/cluster/process/test_rows.h"
#include "tests/support/table_strategy.h"
#include "worker/data/zipf_sets.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;
using testing_support::TableStrategy;

constexpr std::uint64_t kSeed = 3;

class TableEvaluation : public testing::Test {
 protected:
  std::unique_ptr<worker::Model> model(const std::string& spec, int batch) {
    return std::move(*worker::make_model(spec, data_.test->form(), batch, *backend_));
  }
  WeightsSnapshot snapshot_with(const TableKeys& rows) {
    const auto trained = model("ncf:4", 7);
    std::vector<float> arena(trained->layout().size());
    trained->initialize(kSeed, arena);
    TableStrategy strategy(trained->layout(), kSeed);
    WeightsSnapshot snapshot;
    snapshot.rows = rows;
    snapshot.weights = *snapshot_values(trained->layout(), rows, arena, strategy);
    return snapshot;
  }
  TableKeys rows_of_test() { return *test_rows(*model("ncf:4", 7), *data_.test); }
  Evaluation evaluation(const std::string& spec, std::int64_t batch) {
    return std::move(*Evaluation::create(spec, *data_.test, *backend_, batch));
  }

  const worker::DatasetPair data_ = worker::make_zipf_ratings({.rows = 300, .train = 100, .test = 110}, kSeed);
  std::unique_ptr<worker::ComputeBackend> backend_ = worker::make_reference_backend();
};

TEST_F(TableEvaluation, NeedsTheRowsThatTheTestSetTouches) {
  TableKeys expected(2);
  for (std::int64_t i = 0; i < data_.test->size(); ++i) {
    int ids[2], label;
    data_.test->read(i, 0, {.values = {}, .ids = ids, .labels = {&label, 1}});
    for (std::size_t table : {0, 1}) expected[table].push_back(static_cast<RowKey>(ids[table]));
  }
  for (std::vector<RowKey>& keys : expected) {
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  EXPECT_EQ(rows_of_test(), expected);
  EXPECT_EQ(*test_rows(*model("ncf:4", 110), *data_.test), expected);
  EXPECT_TRUE(test_rows(*model("ncf:4:dense", 7), *data_.test)->empty());
}

TEST_F(TableEvaluation, IsThatOfTheSameModelWithDenseEmbeddingsHoweverItIsCut) {
  std::vector<float> dense(model("ncf:4:dense", 1)->layout().size());
  model("ncf:4:dense", 1)->initialize(kSeed, dense);
  const Evaluation::Score expected = evaluation("ncf:4:dense", 110).run(dense);
  ASSERT_GT(expected.loss, 0.5);
  const WeightsSnapshot snapshot = snapshot_with(rows_of_test());
  for (std::int64_t batch : {7, 55, 110, 250}) {
    Evaluation sparse = evaluation("ncf:4", batch);
    ASSERT_TRUE(sparse.check(snapshot).ok()) << sparse.check(snapshot).message();
    const Evaluation::Score score = sparse.run(snapshot.weights, {}, snapshot.rows);
    EXPECT_NEAR(score.loss, expected.loss, 1e-12) << batch;
    EXPECT_EQ(score.accuracy, expected.accuracy);
    EXPECT_EQ(score.figures, expected.figures);
    EXPECT_TRUE(score.figures.auc.has_value());
    EXPECT_FALSE(score.figures.hit_rate.has_value());
  }
}

TEST_F(TableEvaluation, TakesOutOfMoreRowsThoseThatItNeeds) {
  TableKeys all(2);
  for (RowKey key = 0; key < 300; ++key) all[0].push_back(key), all[1].push_back(key);
  const WeightsSnapshot whole = snapshot_with(all), part = snapshot_with(rows_of_test());
  Evaluation evaluation = this->evaluation("ncf:4", 20);
  ASSERT_TRUE(evaluation.check(whole).ok());
  EXPECT_EQ(evaluation.run(whole.weights, {}, whole.rows).loss, evaluation.run(part.weights, {}, part.rows).loss);
}

TEST_F(TableEvaluation, RefusesSnapshotsThatLackWhatItNeeds) {
  const Evaluation evaluation = this->evaluation("ncf:4", 20);
  WeightsSnapshot snapshot = snapshot_with(rows_of_test());
  snapshot.weights.pop_back();
  EXPECT_THAT(evaluation.check(snapshot).message(), HasSubstr("weights where the model has"));
  TableKeys rows = rows_of_test();
  rows[1].erase(rows[1].begin());
  EXPECT_THAT(evaluation.check(snapshot_with(rows)).message(),
              HasSubstr("lacks rows of table item that the test set touches"));
  EXPECT_THAT(evaluation.check({}).message(), HasSubstr("with rows of 0 tables where the model has 2"));
  EXPECT_EQ(evaluation.check({}).code(), Code::kDataLoss);
}

TEST_F(TableEvaluation, KeepsAllTouchedRowsWhereTheyAreFewAndThoseOfTheTestElse) {
  const auto trained = model("ncf:4", 7);
  const TableKeys test = {{5, 9}, {1}};
  TableStrategy strategy(trained->layout(), kSeed);
  std::vector<float> values(3 * 8);
  ASSERT_TRUE(strategy.table(0).read(std::vector<RowKey>{2, 9, 200}, values).ok());
  const Result<RowsToKeep> all = rows_to_keep(trained->layout(), test, strategy);
  EXPECT_EQ(all->rows, (TableKeys{{2, 5, 9, 200}, {1}}));
  EXPECT_EQ(all->note, "");
  const Result<RowsToKeep> few = rows_to_keep(trained->layout(), test, strategy, 5 * 8 * sizeof(float) - 1);
  EXPECT_EQ(few->rows, test);
  EXPECT_THAT(few->note, HasSubstr("those that the test set touches: all that were ever touched take 160 B"));
  EXPECT_EQ(rows_to_keep(trained->layout(), test, strategy, 5 * 8 * sizeof(float))->note, "");
}

}  // namespace
}  // namespace syncopate::experiments
