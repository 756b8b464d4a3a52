#include "experiments/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/checksum.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

Manifest manifest() {
  const StoredFile weights{.name = "weights.safetensors",
                           .kind = StoredKind::kArena,
                           .part = "weights",
                           .bytes = 5000000,
                           .sums = {.checksum = 0x0123456789abcdefu},
                           .pieces = {{0, 262144 + 5}},
                           .blocks = {{{0, 262144}, {1}}, {{262144, 262149}, {UINT64_MAX}}}};
  StoredFile other = weights;
  other.pieces = {{300000, 300016}};
  other.blocks = {{{300000, 300016}, {3}}};
  const StoredFile rows{.name = "rows.t.shard-0.safetensors",
                        .kind = StoredKind::kRows,
                        .part = "0",
                        .bytes = 10,
                        .sums = {.checksum = 9}};
  return {
      .run = "a \"run\"",
      .step = 400,
      .facts = {{"model", "mlp"}, {"seed", "1"}},
      .parts = {
          {.writer = "shard-0", .step = 400, .counts = {{"chunk@0", {1, -2}}, {"none", {}}}, .files = {weights, rows}},
          {.writer = "worker-1", .step = 401, .files = {other}}}};
}

// As whoever writes manifests by hand would.
std::string resealed(const Manifest& manifest, const std::string& from, const std::string& to) {
  std::string text = to_text(manifest);
  const std::string before = "\"manifest\": ";
  std::string body = text.substr(text.find(before) + before.size());
  body.resize(body.size() - 2);
  const std::size_t at = body.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) body.replace(at, from.size(), to);
  return "{\"checksum\": \"" + checksum_text(checksum_of(body)) + "\",\n" + before + body + "}\n";
}

std::string refusal(const std::string& from, const std::string& to) {
  const Result<Manifest> parsed = parse_manifest(resealed(manifest(), from, to));
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.status().code(), Code::kDataLoss);
  return parsed.status().message();
}

TEST(Manifest, IsReadAsItWasWritten) {
  const Result<Manifest> read = parse_manifest(to_text(manifest()));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, manifest());
}

TEST(Manifest, TellsAfterWhatTimeOfTrainingItWasTakenIfItKnows) {
  EXPECT_EQ(parse_manifest(to_text(manifest()))->seconds, std::nullopt) << "as of a version before this one";
  Manifest timed = manifest();
  timed.seconds = 12.375;
  EXPECT_EQ(*parse_manifest(to_text(timed)), timed);
  for (const double wrong : {-1.0, 1e10}) {
    timed.seconds = wrong;
    EXPECT_THAT(parse_manifest(to_text(timed)).status().message(), HasSubstr("'seconds' must be a number"));
  }
}

TEST(Manifest, OfAPartIsReadAsItWasWritten) {
  const Result<StoredPart> read = parse_part(to_text(manifest().parts[0]));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, manifest().parts[0]);
}

TEST(Manifest, WithAnyByteFlippedIsRecognised) {
  const std::string text = to_text(manifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const int bit : {1, 16, 128}) {
      std::string flipped = text;
      flipped[i] = static_cast<char>(flipped[i] ^ bit);
      EXPECT_EQ(parse_manifest(flipped).status().code(), Code::kDataLoss) << "byte " << i;
    }
  }
}

TEST(Manifest, CutAnywhereIsRecognised) {
  const std::string text = to_text(manifest());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(parse_manifest(text.substr(0, size)).status().code(), Code::kDataLoss) << size << " bytes";
  }
  EXPECT_FALSE(parse_manifest(text + " ").ok());
}

TEST(Manifest, OfAnotherVersionIsRefused) {
  EXPECT_THAT(refusal("\"version\":1", "\"version\":2"), HasSubstr("version 2"));
}

TEST(Manifest, WithFieldsThatCannotBeIsRefusedEvenWithTheRightChecksum) {
  EXPECT_THAT(refusal("weights.safetensors", "../weights.safetensors"), HasSubstr("no name"));
  EXPECT_THAT(refusal("weights.safetensors", ".hidden"), HasSubstr("no name"));
  EXPECT_THAT(refusal("\"bytes\":5000000", "\"bytes\":-1"), HasSubstr("bytes"));
  EXPECT_THAT(refusal("\"bytes\":5000000", "\"bytes\":1e3"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("\"bytes\":10", "\"bytes\":18446744073709551615"), HasSubstr("whole number"));
  EXPECT_THAT(refusal("[0,262149]", "[262149,0]"), HasSubstr("empty"));
  EXPECT_THAT(refusal("[0,262149]", "[0,262149,1]"), HasSubstr("range"));
  EXPECT_THAT(refusal("[0,262149]", "[0,9000000000000000]"), HasSubstr("must be 0 to"));
  EXPECT_THAT(refusal("[0,262149]", "[0,900000000000000]"), HasSubstr("exceed"));
  EXPECT_THAT(refusal("[0,262149]", "[0,262144]"), HasSubstr("more checksums"));
  EXPECT_THAT(refusal("[0,262149]", "[0,1262144]"), HasSubstr("fewer checksums"));
  EXPECT_THAT(refusal("0123456789abcdef", "0123456789ABCDEF"), HasSubstr("hexadecimal"));
  EXPECT_THAT(refusal("\"kind\":\"rows\"", "\"kind\":\"cols\""), HasSubstr("cols"));
  EXPECT_THAT(refusal("[1,-2]", "\"text\""), HasSubstr("counts"));
  EXPECT_THAT(refusal("\"seed\":\"1\"", "\"seed\":1"), HasSubstr("facts"));
  EXPECT_THAT(refusal("\"parts\":[", "\"part\":["), HasSubstr("'parts' is missing"));
}

TEST(Manifest, OfPartsThatDoNotFitTogetherIsRefused) {
  EXPECT_THAT(refusal("[300000,300016]", "[100,116]"), HasSubstr("overlap"));
  EXPECT_THAT(refusal("\"bytes\":5000000", "\"bytes\":5000001"), HasSubstr("different things"));
}

TEST(Manifest, OfTextThatIsNoJsonIsRefused) {
  EXPECT_FALSE(parse_part("{").ok());
  EXPECT_FALSE(parse_part("[]").ok());
  EXPECT_FALSE(parse_part("").ok());
  EXPECT_THAT(refusal("\"step\":400", "\"step\":"), HasSubstr("is not JSON"));
}

}  // namespace
}  // namespace syncopate::experiments
