// Checkpoints that somebody has made on purpose: every checksum is right, and what they say cannot be.
#include <sys/stat.h>

#include <cstring>

#include "common/random.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/safetensors.h"
#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing_support::TemporaryFolder;
using testing_support::text_of;

struct Tensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Returns a tensor of floats that count from 1.
Tensor floats(const std::string& name, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t length : shape) count *= static_cast<std::size_t>(length);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1);
  return {name, "F32", std::move(shape), raw(values)};
}

Tensor keys(const std::vector<std::int64_t>& values) {
  return {"embedding.rows", "I64", {static_cast<std::int64_t>(values.size())}, raw(values)};
}

// By hand: to_safetensors would not say such things.
std::string file_of(const std::vector<Tensor>& tensors) {
  std::string header = "{", data;
  for (const Tensor& tensor : tensors) {
    std::string shape;
    for (const std::int64_t length : tensor.shape) shape += (shape.empty() ? "" : ",") + std::to_string(length);
    header += (header.size() > 1 ? ",\"" : "\"") + tensor.name + "\":{\"dtype\":\"" + tensor.dtype + "\",\"shape\":[" +
              shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + tensor.bytes.size()) + "]}";
    data += tensor.bytes;
  }
  header += "}";
  std::string length(8, '\0');
  const std::uint64_t size = header.size();
  std::memcpy(length.data(), &size, sizeof(size));
  return length + header + data;
}

class AHostileCheckpoint : public testing::Test {
 protected:
  AHostileCheckpoint() : store_(folder_.path()) { manifest_ = write_small_checkpoint(store_, 40); }

  std::string path(const std::string& name) const { return store_.path_of(40) + "/" + name; }
  StoredFile& stored(const std::string& name) {
    for (StoredPart& part : manifest_.parts) {
      for (StoredFile& file : part.files) {
        if (file.name == name) return file;
      }
    }
    ADD_FAILURE() << "there is no " << name;
    return manifest_.parts.front().files.front();
  }
  // In the place of the file of that name, with all sums right.
  void put_file(const std::string& name, const std::string& content) {
    std::ofstream(path(name), std::ios::binary) << content;
    stored(name).bytes = content.size();
    stored(name).sums.checksum = checksum_of(content);
  }

  // What a run would answer that is to go on from it, and what its processes would that read it without asking.
  std::string refusal(bool by_verify = true) {
    std::ofstream(path(kManifestFile), std::ios::binary) << to_text(manifest_);
    const Result<Checkpoint> checkpoint = Checkpoint::open(store_.path_of(40));
    if (!checkpoint.ok()) return checkpoint.status().message();
    const Status verified = checkpoint->verify(small_forms());
    EXPECT_EQ(verified.ok(), !by_verify) << verified.message();
    TrainingState state;
    Status read = checkpoint->read(small_forms(), {.worker = 1}, state);
    if (read.ok()) read = checkpoint->read(small_forms(), {.worker = 0}, state);
    EXPECT_EQ(read.code(), Code::kDataLoss);
    if (by_verify) {
      EXPECT_EQ(verified.message(), read.message());
    }
    EXPECT_THAT(read.message(), HasSubstr(store_.path_of(40)));
    return read.message();
  }

  TemporaryFolder folder_;
  CheckpointStore store_;
  Manifest manifest_;
};

const char* const kFactors = "factors.worker-0.safetensors";
const char* const kRows = "rows.embedding.shard-0.safetensors";

TEST_F(AHostileCheckpoint, WhosePieceWrapsAroundTheEndOfNumbersIsRefused) {
  put_file(kFactors, file_of({floats(std::to_string(UINT64_MAX - 15), {1000})}));
  EXPECT_THAT(refusal(), HasSubstr("are not the model's"));
  put_file(kFactors, file_of({floats("18446744073709551616", {1000})}));
  EXPECT_THAT(refusal(), HasSubstr("must be a number"));
  put_file(kFactors, file_of({floats("-1", {1000})}));
  EXPECT_THAT(refusal(), HasSubstr("must be a number"));
}

TEST_F(AHostileCheckpoint, WhosePaddingWrapsAroundTheEndOfNumbersIsRefused) {
  manifest_.parts[0].files.push_back(
      {.name = "weights.padding.shard-0.safetensors", .kind = StoredKind::kPieces, .part = "weights"});
  put_file("weights.padding.shard-0.safetensors", file_of({floats(std::to_string(UINT64_MAX - 15), {100})}));
  EXPECT_THAT(refusal(), HasSubstr("are not the model's"));
  put_file("weights.padding.shard-0.safetensors", file_of({floats("32", {50})}));
  EXPECT_THAT(refusal(false), HasSubstr("are no padding"));
}

TEST_F(AHostileCheckpoint, WhosePieceIsOfWholeNumbersIsRefused) {
  Tensor tensor = floats("3", {4});
  tensor.dtype = "I64";
  tensor.shape = {2};
  put_file(kFactors, file_of({tensor}));
  EXPECT_THAT(refusal(), HasSubstr("must be of F32"));
}

TEST_F(AHostileCheckpoint, WhosePiecesOverlapIsRefused) {
  put_file(kFactors, file_of({floats("3", {4}), floats("5", {4})}));
  EXPECT_THAT(refusal(false), HasSubstr("are there twice"));
}

TEST_F(AHostileCheckpoint, WhoseRowsAreWholeNumbersIsRefused) {
  Tensor rows = floats("embedding", {2, 4});
  rows.dtype = "I64";
  rows.shape = {2, 2};
  put_file(kRows, file_of({keys({4, 6}), rows}));
  EXPECT_THAT(refusal(), HasSubstr("holds no keys and rows"));
}

TEST_F(AHostileCheckpoint, WhoseRowsHaveTwoWidthsIsRefused) {
  put_file(kRows, file_of({keys({4, 6}), floats("embedding", {2, 8})}));
  EXPECT_THAT(refusal(false), HasSubstr("rows of 4 floats, and of 8 in another file"));
  put_file(kRows, file_of({keys({4, 6}), floats("embedding", {2, 3})}));
  EXPECT_THAT(refusal(), HasSubstr("rows of 3 floats of 'embedding', whose rows have 4"));
  put_file(kRows, file_of({keys({4, 6}), floats("embedding", {2, 20})}));
  EXPECT_THAT(refusal(), HasSubstr("rows of 20 floats"));
  put_file(kRows, file_of({keys({}), floats("embedding", {0, 2})}));
  EXPECT_THAT(refusal(), HasSubstr("rows of 2 floats"));
}

TEST_F(AHostileCheckpoint, WhoseKeysAreNoRowsOfTheTableIsRefused) {
  for (const std::int64_t key : {std::int64_t{-1}, std::int64_t{1000}, std::int64_t{1} << 32, INT64_MIN, INT64_MAX}) {
    put_file(kRows, file_of({keys({4, key}), floats("embedding", {2, 4})}));
    EXPECT_THAT(refusal(false), HasSubstr("is no row of 'embedding'")) << key;
  }
  put_file(kRows, file_of({keys({6, 4}), floats("embedding", {2, 4})}));
  EXPECT_THAT(refusal(false), HasSubstr("row 4 stands behind row 6"));
  put_file(kRows, file_of({keys({4, 6, 8}), floats("embedding", {2, 4})}));
  EXPECT_THAT(refusal(), HasSubstr("holds no keys and rows"));
  put_file(kRows, file_of({keys({4, 6}), floats("embedding", {2, 4}), floats("more", {1})}));
  EXPECT_THAT(refusal(), HasSubstr("holds no keys and rows"));
}

TEST_F(AHostileCheckpoint, OfATableThatTheModelHasNotIsRefused) {
  for (const char* table : {"1", "18446744073709551615", "99999999999999999999", "x"}) {
    stored(kRows).part = table;
    EXPECT_THAT(refusal(), HasSubstr("is no table of this model")) << table;
  }
  stored(kRows).part = "";
  EXPECT_THAT(refusal(), HasSubstr("is no name"));
}

TEST_F(AHostileCheckpoint, WhoseCountsHaveANameThatNoHeaderHoldsIsRefused) {
  manifest_.parts[0].counts[std::string(129, 'n')] = {1};
  EXPECT_THAT(refusal(), HasSubstr("is no name of counts"));
}

TEST_F(AHostileCheckpoint, OfElementsThatTheModelHasNotIsRefused) {
  StoredFile& weights = stored("weights.safetensors");
  weights.pieces = {{0, 16}};
  EXPECT_THAT(refusal(), HasSubstr("elements 0 to 16 are not the model's")) << "they are a table's";
  weights.pieces = {{32, 1 << 20}};
  EXPECT_THAT(refusal(), HasSubstr("exceed the file"));
}

TEST_F(AHostileCheckpoint, WithASecondFileOfAPartIsRefused) {
  StoredFile again = stored("weights.safetensors");
  again.name = "weights-2.safetensors";
  fs::copy_file(path("weights.safetensors"), path(again.name));
  manifest_.parts[1].files.push_back(again);
  EXPECT_THAT(refusal(), HasSubstr("is no file of 'weights'"));
}

TEST_F(AHostileCheckpoint, WithASparseFileOfTerabytesIsRefusedAtOnce) {
  for (const char* name : {kFactors, kRows, "weights.safetensors"}) {
    Manifest before = manifest_;
    for (StoredPart& part : manifest_.parts) {
      for (StoredFile& file : part.files) file.bytes = file.name == name ? std::uint64_t{8} << 40 : file.bytes;
    }
    fs::resize_file(path(name), std::uintmax_t{8} << 40);
    EXPECT_THAT(refusal(), testing::AnyOf(HasSubstr("it can have"), HasSubstr("another layout"))) << name;
    manifest_ = std::move(before);
  }
}

TEST_F(AHostileCheckpoint, WithASparseManifestIsRefusedAtOnce) {
  fs::resize_file(path(kManifestFile), std::uintmax_t{8} << 40);
  EXPECT_THAT(Checkpoint::open(store_.path_of(40)).status().message(), HasSubstr("is larger than"));
}

TEST_F(AHostileCheckpoint, WithAHeaderLargerThanAnyIsRefused) {
  std::string content = file_of({floats("3", {4})});
  const std::uint64_t length = std::uint64_t{1} << 62;
  std::memcpy(content.data(), &length, sizeof(length));
  put_file(kFactors, content);
  EXPECT_THAT(refusal(), HasSubstr("does not fit"));
}

TEST_F(AHostileCheckpoint, WithSomethingElseInAFilesPlaceIsRefusedWithoutWaiting) {
  for (const char* name : {"weights.safetensors", kFactors}) {
    const std::string content = text_of(path(name));
    fs::rename(path(name), path("elsewhere"));
    fs::create_symlink(path("elsewhere"), path(name));
    EXPECT_THAT(refusal(), HasSubstr("but a symbolic link"));
    fs::remove(path(name));
    ASSERT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    EXPECT_THAT(refusal(), HasSubstr("but a pipe"));
    fs::remove(path(name));
    fs::create_directory(path(name));
    EXPECT_THAT(refusal(), HasSubstr("but a folder"));
    fs::remove(path(name));
    fs::rename(path("elsewhere"), path(name));
  }
  fs::remove(path(kManifestFile));
  fs::create_symlink("/dev/zero", path(kManifestFile));
  EXPECT_THAT(Checkpoint::open(store_.path_of(40)).status().message(), HasSubstr("but a symbolic link"));
}

TEST_F(AHostileCheckpoint, ThatNamesFilesElsewhereIsRefused) {
  for (const char* name : {"../../etc/passwd", "/etc/passwd", "..", ".", "a/b", "manifest.json/..", ""}) {
    stored(kFactors).name = name;
    EXPECT_THAT(refusal(), HasSubstr("is no name")) << name;
    manifest_ = write_small_checkpoint(store_, 40);
  }
}

TEST_F(AHostileCheckpoint, DoesNotSpeakToTheTerminal) {
  stored(kFactors).part = "\x1b[2J";
  EXPECT_THAT(refusal(), HasSubstr("'\\x1b[2J'"));
  stored(kFactors).part = "factors";
  put_file(kFactors, file_of({floats("\x1b[2J", {4})}));
  EXPECT_THAT(refusal(), testing::AnyOf(HasSubstr("'\\x1b[2J'"), HasSubstr("not a JSON")));
}

// Any structure that is drawn ends in a state or an error. tests/fuzz/harness/checkpoint.cc goes further.
TEST_F(AHostileCheckpoint, DrawnAtRandomEndsInAStateOrAnError) {
  Random random(16);
  const std::uint64_t numbers[] = {0, 1, 3, 32, 1000, UINT32_MAX, INT64_MAX, UINT64_MAX - 15, UINT64_MAX};
  const auto number = [&] { return numbers[random.below(std::size(numbers))]; };
  for (int i = 0; i < 300; ++i) {
    std::vector<Tensor> tensors;
    for (std::uint64_t count = random.below(4); count > 0; --count) {
      Tensor tensor = floats(std::to_string(number() - tensors.size()), {static_cast<std::int64_t>(random.below(40))});
      if (random.below(3) == 0) tensor.dtype = "I64";
      if (random.below(3) == 0) tensor.shape = {static_cast<std::int64_t>(number()), tensor.shape[0]};
      tensors.push_back(tensor);
    }
    put_file(random.below(2) == 0 ? kFactors : kRows, file_of(tensors));
    if (random.below(4) == 0) stored(kRows).part = std::to_string(number());
    std::ofstream(path(kManifestFile), std::ios::binary) << to_text(manifest_);
    const Result<Checkpoint> checkpoint = Checkpoint::open(store_.path_of(40));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
    (void)checkpoint->verify(small_forms());
    for (const int worker : {-1, 0, 1}) {
      TrainingState state;
      (void)checkpoint->read(small_forms(), {.worker = worker}, state);
    }
    stored(kRows).part = "0";
  }
}

}  // namespace
}  // namespace syncopate::experiments
