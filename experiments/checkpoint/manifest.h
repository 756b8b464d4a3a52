// manifest.json: what a checkpoint is of, and each byte that belongs to it. It is written last, so that it is there
// only where all that it names is. Pure: values to text and back.
//
//   {"checksum": "16 hexadecimal digits", "manifest": {"version": 1, "run": …, "step": …, "facts": {…}, "parts": […]}}
//
// The checksum is of the text between `"manifest": ` and the last brace. A part is what one process has written. Where
// checkpoints are authenticated there is "mac" between the two, 64 hexadecimal digits, of the same text, and a digest
// beside each checksum within (content_hash.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"
#include "experiments/checkpoint/checkpoint_key.h"
#include "experiments/checkpoint/content_hash.h"

namespace syncopate::experiments {

inline constexpr const char* kManifestFile = "manifest.json";
inline constexpr int kManifestVersion = 1;

// No manifest is larger: it would be of checkpoints of hundreds of gigabytes.
inline constexpr std::uint64_t kMostManifestBytes = std::uint64_t{64} << 20;

// Elements of the arena, and the sums of their bytes in the file (of padding there are none).
struct StoredBlock {
  Range range;
  ContentSums sums;

  bool operator==(const StoredBlock&) const = default;
};

// What a file holds of a TrainingState.
enum class StoredKind {
  kArena,   // values by the names of the layout's tensors, as far as there are blocks; several parts may share the file
  kPieces,  // values without a layout, or in its padding: a tensor for each piece, named for its first element
  kRows,    // of one row-sparse table: keys, and what is remembered of each
};

struct StoredFile {
  std::string name;  // within the checkpoint's folder
  StoredKind kind = StoredKind::kArena;
  std::string part;         // of the TrainingState; of rows, the table's number
  std::uint64_t bytes = 0;  // of the whole file
  ContentSums sums;         // of the header where there are blocks, else of the whole file
  // Of kArena alone: the pieces of the TrainingState, ascending, and the blocks that each is cut into (arena_form.h).
  std::vector<Range> pieces;
  std::vector<StoredBlock> blocks;

  bool operator==(const StoredFile&) const = default;
};

struct StoredPart {
  std::string writer;     // "worker-0", "shard-1"
  std::int64_t step = 0;  // steps that are in it
  std::map<std::string, std::vector<std::int64_t>> counts;
  std::vector<StoredFile> files;

  bool operator==(const StoredPart&) const = default;
};

struct Manifest {
  std::string run;  // that wrote it
  std::int64_t step = 0;
  std::map<std::string, std::string> facts;  // that a run must share to go on from it (run_facts.h)
  std::vector<StoredPart> parts;

  bool operator==(const Manifest&) const = default;
};

// `key`: authenticated by it; null: not.
std::string to_text(const Manifest& manifest, const CheckpointKey* key = nullptr);

// The outside of a manifest's text, whose form and checksum are right.
struct SealedManifest {
  std::string_view body;           // within the text
  std::optional<Digest> mac = {};  // none: it is not authenticated
};
Result<SealedManifest> open_seal(std::string_view text);
// Checks all that it says, and that parts fit together. Data loss, with what is wrong, and resource exhausted where
// memory ends.
Result<Manifest> parse_manifest_body(std::string_view body);
// Both.
Result<Manifest> parse_manifest(std::string_view text);
// Whether there is a digest of all that it names.
bool has_digests(const Manifest& manifest);

// A part alone, on its way to who writes the manifest.
std::string to_text(const StoredPart& part);
Result<StoredPart> parse_part(std::string_view text);

// The name of the folder of a complete checkpoint: "step-000400".
std::string checkpoint_name(std::int64_t step);

}  // namespace syncopate::experiments
