// Checkpoints that are authenticated: what a key refuses, and what it says.
#include "experiments/checkpoint/checkpoint_key.h"

#include <sys/stat.h>

#include "experiments/checkpoint/checksum.h"
#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing_support::TemporaryFolder;
using testing_support::text_of;

const std::string kSecret = "0123456789abcdef0123456789abcdef";

CheckpointKey key_of(const std::string& secret) {
  Result<CheckpointKey> key = CheckpointKey::of_bytes(secret);
  EXPECT_TRUE(key.ok()) << key.status().message();
  return *key;
}

class AKeyFile : public testing::Test {
 protected:
  std::string path() const { return folder_.path().string() + "/key"; }
  void write(const std::string& content, mode_t mode = 0600) const {
    std::ofstream(path(), std::ios::binary) << content;
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }
  std::string refusal() const {
    const Result<CheckpointKey> key = CheckpointKey::read(path());
    return key.ok() ? "taken" : key.status().message();
  }

  TemporaryFolder folder_;
};

TEST_F(AKeyFile, HoldsAtLeast32Bytes) {
  write(kSecret);
  EXPECT_EQ(refusal(), "taken");
  write(kSecret.substr(1));
  EXPECT_THAT(refusal(), HasSubstr("holds 31 bytes, and a key has 32 to 4096; make one with"));
  write(std::string(4096, 'x'));
  EXPECT_EQ(refusal(), "taken");
  write(std::string(4097, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("holds more than 4096 bytes"));
}

TEST_F(AKeyFile, ThatOthersMayReadIsRefusedWithTheRemedy) {
  for (const mode_t mode : {0640, 0604, 0620, 0610, 0644}) {
    write(kSecret, mode);
    EXPECT_THAT(refusal(), HasSubstr("chmod 600 " + path())) << mode;
  }
  write(kSecret, 0400);
  EXPECT_EQ(refusal(), "taken");
}

TEST_F(AKeyFile, ThatIsNoFileIsRefused) {
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("but a pipe"));
}

TEST_F(AKeyFile, IsShownInNoMessage) {
  const std::string secret = "hunter2-hunter2";
  write(secret);
  EXPECT_THAT(refusal(), testing::Not(HasSubstr("hunter2")));
}

TEST(CheckpointKey, AuthenticatesTextsByItsSecretAlone) {
  const CheckpointKey key = key_of(kSecret), other = key_of(kSecret + "x");
  EXPECT_TRUE(key.is_mac_of("text", key_of(kSecret).mac_of("text")));
  EXPECT_FALSE(key.is_mac_of("text", other.mac_of("text")));
  EXPECT_FALSE(key.is_mac_of("texu", key.mac_of("text")));
}

class AnAuthenticatedCheckpoint : public testing::Test {
 protected:
  AnAuthenticatedCheckpoint() : store_(folder_.path()) {
    manifest_ = write_small_checkpoint(store_, 40, {.digests = Digests::kYes, .key = &key_});
  }

  std::string path(const std::string& name) const { return store_.path_of(40) + "/" + name; }
  Result<FoundCheckpoint> found(const CheckpointKey* key) const {
    return newest_checkpoint(folder_.path(), small_forms(), nullptr, key);
  }
  std::string refusal(const CheckpointKey* key) const {
    const Result<FoundCheckpoint> checkpoint = found(key);
    return checkpoint.ok() ? "taken" : checkpoint.status().message();
  }

  TemporaryFolder folder_;
  CheckpointStore store_;
  const CheckpointKey key_ = key_of(kSecret);
  Manifest manifest_;
};

TEST_F(AnAuthenticatedCheckpoint, IsTakenUpWithItsKey) {
  EXPECT_EQ(refusal(&key_), "taken");
  TrainingState state;
  EXPECT_TRUE(found(&key_)->checkpoint.read(small_forms(), {.worker = 1}, state).ok());
}

TEST_F(AnAuthenticatedCheckpoint, IsRefusedWithAnotherKey) {
  const CheckpointKey other = key_of(kSecret + "x");
  EXPECT_THAT(refusal(&other), HasSubstr("is authenticated by another key"));
  EXPECT_EQ(found(&other).status().code(), Code::kInvalidArgument) << "and no older one is looked for";
}

TEST_F(AnAuthenticatedCheckpoint, IsTakenUpWithoutAKeyAndSaysWhatItIs) {
  EXPECT_EQ(refusal(nullptr), "taken");
  EXPECT_TRUE(found(nullptr)->checkpoint.claims_authentication());
}

TEST_F(AnAuthenticatedCheckpoint, WithoutItsMacIsRefused) {
  std::ofstream(path(kManifestFile), std::ios::binary) << to_text(manifest_);
  EXPECT_THAT(refusal(&key_), HasSubstr("is not authenticated, and --checkpoint-key-file asks for that"));
}

// What the checksums would not find: they are made anew.
TEST_F(AnAuthenticatedCheckpoint, WithAChangedPartIsRefused) {
  for (StoredPart& part : manifest_.parts) {
    for (StoredFile& file : part.files) {
      const std::string before = text_of(path(file.name));
      std::string changed = before;
      changed.back() = static_cast<char>(changed.back() ^ 1);
      std::ofstream(path(file.name), std::ios::binary) << changed;
      // With the digests as they were: there is nobody who could make others.
      Manifest mended = manifest_;
      for (StoredPart& other : mended.parts) {
        for (StoredFile& same : other.files) {
          if (same.name != file.name) continue;
          if (same.kind != StoredKind::kArena) same.sums.checksum = checksum_of(changed);
          for (StoredBlock& block : same.blocks) block.sums.checksum = small_block_checksum(changed, same, block);
        }
      }
      std::ofstream(path(kManifestFile), std::ios::binary) << to_text(mended, &key_);
      EXPECT_THAT(refusal(&key_), HasSubstr("somebody has changed it, and mended the checksum")) << file.name;
      std::ofstream(path(kManifestFile), std::ios::binary) << to_text(mended);
      EXPECT_THAT(refusal(&key_), HasSubstr("is not authenticated"));
      std::ofstream(path(file.name), std::ios::binary) << before;
    }
  }
}

TEST_F(AnAuthenticatedCheckpoint, WithAnyByteOfItsManifestFlippedIsRefused) {
  const std::string text = text_of(path(kManifestFile));
  for (std::size_t i = 0; i < text.size(); i += 7) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 2);
    std::ofstream(path(kManifestFile), std::ios::binary) << flipped;
    EXPECT_NE(refusal(&key_), "taken") << "byte " << i;
  }
}

TEST_F(AnAuthenticatedCheckpoint, IsTheOneThatItWasWhenTheRunBegan) {
  const std::string digest = found(&key_)->checkpoint.digest();
  EXPECT_TRUE(Checkpoint::open(store_.path_of(40), {.digest = digest}).ok());
  std::ofstream(path(kManifestFile), std::ios::binary) << to_text(manifest_);
  EXPECT_THAT(Checkpoint::open(store_.path_of(40), {.digest = digest}).status().message(),
              HasSubstr("is another than when the run began"));
}

TEST_F(AnAuthenticatedCheckpoint, IsNotWrittenWithoutDigests) {
  const std::string attempt = store_.folder() + "/" + attempt_name(48, 0);
  ASSERT_TRUE(make_folder(attempt).ok());
  const Manifest manifest{
      .run = "a-run", .step = 48, .facts = {}, .parts = {written({attempt, "shard-0"}, small_shard(0))}};
  EXPECT_EQ(store_.complete(manifest, 0, &key_).code(), Code::kInternal);
}

TEST_F(AnAuthenticatedCheckpoint, LeavesOthersAsTheyWere) {
  const TemporaryFolder folder;
  CheckpointStore store(folder.path());
  write_small_checkpoint(store, 40);
  EXPECT_THAT(text_of(store.path_of(40) + "/" + kManifestFile), testing::Not(HasSubstr("digest")));
  EXPECT_THAT(newest_checkpoint(folder.path(), small_forms(), nullptr, &key_).status().message(),
              HasSubstr("is not authenticated"));
}

}  // namespace
}  // namespace syncopate::experiments
