#include "experiments/checkpoint/checkpoint.h"

#include "experiments/checkpoint/safetensors.h"
#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::TemporaryFolder;
using testing_support::text_of;

class ACheckpoint : public testing::Test {
 protected:
  ACheckpoint() : store_(folder_.path()) { write_small_checkpoint(store_, 40); }

  Checkpoint opened() const {
    Result<Checkpoint> checkpoint = Checkpoint::open(store_.path_of(40));
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    return *checkpoint;
  }
  Status verified() const {
    const Result<Checkpoint> checkpoint = Checkpoint::open(store_.path_of(40));
    return checkpoint.ok() ? checkpoint->verify(small_forms()) : checkpoint.status();
  }
  TrainingState read(const CheckpointSelection& wanted) const {
    TrainingState state;
    const Status status = opened().read(small_forms(), wanted, state);
    EXPECT_TRUE(status.ok()) << status.message();
    return state;
  }

  TemporaryFolder folder_;
  CheckpointStore store_;
};

const Range kDense = small_layout().dense();

TEST_F(ACheckpoint, HoldsForAWorkerWhatItAndTheChiefHaveWritten) {
  const TrainingState state = read({.worker = 1});
  EXPECT_EQ(state.step, 41);
  EXPECT_EQ(all_of(state, state_part::kWeights, kDense), small_values(kDense, 1));
  EXPECT_EQ(all_of(state, state_part::kOptimizer[0], kDense), small_values(kDense, -1));
  EXPECT_EQ(all_of(state, state_part::residual_of(1), kDense), small_values(kDense, 0.5f));
  EXPECT_THAT(all_of(state, state_part::local_state_of(1), {0, 5}), ElementsAre(1, 2, 3, 4, 1));
  EXPECT_TRUE(state.pieces(state_part::residual_of(0)).empty());
  EXPECT_THAT(all_of(state, "factors", {3, 5}), ElementsAre(8, 9));
  EXPECT_THAT(state.counts.at("draws"), ElementsAre(1));
  EXPECT_FALSE(state.counts.contains("chunk@32"));
}

TEST_F(ACheckpoint, HoldsForAServerWhatAllServersHaveWrittenOfItsRanges) {
  const TrainingState state = read({.ranges = std::vector<Range>{{kDense.begin + 20, kDense.end}},
                                    .row = [](std::size_t, RowKey key) { return key % 2 == 1; }});
  EXPECT_EQ(state.step, 40) << "that of the shard that had come least far";
  EXPECT_THAT(state.pieces(state_part::kWeights), ElementsAre(Range{kDense.begin + 16, kDense.end}))
      << "pieces are kept as they were, and those that nobody wants are not read";
  EXPECT_EQ(state.counts.size(), 2u);
  EXPECT_THAT(state.rows.at(0).keys, ElementsAre(5, 7));
  EXPECT_THAT(state.rows.at(0).values, ElementsAre(2, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ACheckpoint, HoldsRowsOfAllServersInTheOrderOfKeys) {
  EXPECT_THAT(read({}).rows.at(0).keys, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(read({}).rows.at(0).values, ElementsAre(1, 2, 3, 4, 2, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8));
}

TEST_F(ACheckpoint, HasItsWeightsInPlainSafetensorsByTheNamesOfTensors) {
  const Result<SafetensorsFile> file = read_safetensors(store_.path_of(40) + "/weights.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 2u);
  const TensorSpec weight = small_layout().tensors()[1];
  EXPECT_EQ(file->tensors[0].name, "dense.weight");
  EXPECT_EQ(file->tensors[0].values, small_values(weight.range, 1));
}

TEST_F(ACheckpoint, IsWhole) { EXPECT_TRUE(verified().ok()) << verified().message(); }

// Bytes that nobody has written do not matter: there are none here.
TEST_F(ACheckpoint, WithAnyByteFlippedInAnyFileIsRecognised) {
  for (const fs::directory_entry& entry : fs::directory_iterator(store_.path_of(40))) {
    const std::string text = text_of(entry.path());
    for (std::size_t i = 0; i < text.size(); i += 1 + text.size() / 97) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ 4);
      std::ofstream(entry.path(), std::ios::binary) << flipped;
      EXPECT_EQ(verified().code(), Code::kDataLoss) << entry.path() << ", byte " << i;
    }
    std::ofstream(entry.path(), std::ios::binary) << text;
  }
  EXPECT_TRUE(verified().ok());
}

TEST_F(ACheckpoint, WithAnyFileCutGrownOrMissingIsRecognised) {
  for (const fs::directory_entry& entry : fs::directory_iterator(store_.path_of(40))) {
    const std::string text = text_of(entry.path());
    for (const std::size_t size : {std::size_t{0}, text.size() / 3, text.size() - 1}) {
      fs::resize_file(entry.path(), size);
      EXPECT_EQ(verified().code(), Code::kDataLoss) << entry.path() << " of " << size << " bytes";
    }
    std::ofstream(entry.path(), std::ios::binary) << text << " ";
    EXPECT_EQ(verified().code(), Code::kDataLoss) << entry.path() << " grown";
    fs::remove(entry.path());
    EXPECT_EQ(verified().code(), Code::kDataLoss) << entry.path() << " missing";
    std::ofstream(entry.path(), std::ios::binary) << text;
  }
  EXPECT_TRUE(verified().ok());
}

TEST_F(ACheckpoint, OfAnotherModelIsRecognised) {
  ParamLayout other = small_layout();
  other.add("more", {3});
  EXPECT_EQ(opened().verify({other, small_local_layout()}).code(), Code::kDataLoss);
}

TEST(PartWriter, KeepsWhatLiesInPadding) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const std::string attempt = store.folder() + "/" + attempt_name(8, 0);
  ASSERT_TRUE(make_folder(attempt).ok());
  TrainingState state;
  const Range first{kDense.begin, kDense.begin + 32}, second{kDense.begin + 32, kDense.end};
  put(state, state_part::kWeights, first, 1);
  put(state, state_part::kWeights, second, 1);
  state.piece(state_part::kWeights, second).back() = 7;
  const StoredPart part = written({attempt, "worker-0"}, state);
  EXPECT_THAT(part.files, testing::SizeIs(2));
  ASSERT_TRUE(store.complete({.run = "a-run", .step = 8, .parts = {part}}, 0).ok());
  const Result<Checkpoint> checkpoint = Checkpoint::open(store.path_of(8));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint->verify(small_forms()).ok());
  TrainingState read;
  ASSERT_TRUE(checkpoint->read(small_forms(), {.worker = 0}, read).ok());
  EXPECT_THAT(read.pieces(state_part::kWeights), ElementsAre(first, second));
  EXPECT_EQ(all_of(read, state_part::kWeights, kDense), all_of(state, state_part::kWeights, kDense));
  TrainingState of_first;
  ASSERT_TRUE(checkpoint->read(small_forms(), {.ranges = std::vector<Range>{first}}, of_first).ok());
  EXPECT_THAT(of_first.pieces(state_part::kWeights), ElementsAre(first));
}

TEST(PartWriter, KeepsATableOfWhichAShardHasNoRows) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const std::string attempt = store.folder() + "/" + attempt_name(8, 0);
  ASSERT_TRUE(make_folder(attempt).ok());
  TrainingState state;
  put(state, state_part::kWeights, kDense, 1);
  state.rows[0] = {.row_floats = 8, .keys = {}, .values = {}};
  const Manifest manifest{.run = "a-run", .step = 8, .facts = {}, .parts = {written({attempt, "shard-0"}, state)}};
  ASSERT_TRUE(store.complete(manifest, 0).ok());
  const Result<Checkpoint> checkpoint = Checkpoint::open(store.path_of(8));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint->verify(small_forms()).ok());
  TrainingState read;
  const Status status = checkpoint->read(small_forms(), {}, read);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(read.rows, state.rows);
}

TEST(PartWriter, OfReplicasThatDifferKeepsEachOnesOwn) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  const std::string attempt = store.folder() + "/" + attempt_name(8, 0);
  ASSERT_TRUE(make_folder(attempt).ok());
  Manifest manifest{.run = "a-run", .step = 8};
  for (int i = 0; i < 2; ++i) {
    TrainingState state;
    state.step = 8;
    put(state, state_part::kWeights, kDense, static_cast<float>(i + 1));
    state.put(state_part::local_state_of(i), 0, std::vector<float>(5));
    manifest.parts.push_back(
        written({attempt, "worker-" + std::to_string(i), i == 0 ? Share::kAll : Share::kReplica, i}, state));
  }
  ASSERT_TRUE(store.complete(manifest, 0).ok());
  const Result<Checkpoint> checkpoint = Checkpoint::open(store.path_of(8));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  EXPECT_TRUE(checkpoint->verify(small_forms()).ok());
  for (int i = 0; i < 2; ++i) {
    TrainingState state;
    ASSERT_TRUE(checkpoint->read(small_forms(), {.worker = i, .alone = true}, state).ok());
    EXPECT_EQ(all_of(state, state_part::kWeights, kDense), small_values(kDense, static_cast<float>(i + 1)));
    EXPECT_THAT(state.names(), ElementsAre(state_part::local_state_of(i), state_part::kWeights));
  }
}

TEST(PartWriter, ThatMayNotWriteSaysWhereAndWhy) {
  const Result<StoredPart> part = write_part({"/nowhere/at/all", "worker-0"}, small_forms(), small_worker(0));
  EXPECT_EQ(part.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(part.status().message(), HasSubstr("/nowhere/at/all"));
}

TEST(PartWriter, ThatIsToldToStopStops) {
  const TemporaryFolder folder;
  std::stop_source stop;
  stop.request_stop();
  const auto part = write_part({folder.path(), "worker-0"}, small_forms(), small_worker(0), stop.get_token());
  EXPECT_EQ(part.status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate::experiments
