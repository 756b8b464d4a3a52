// manifest.json: describes a checkpoint and each byte that belongs to it. It is written last, so that it only exists
// once all files that it names do. Pure: converts values to text and back.
//
//   {"checksum": "16 hexadecimal digits", "manifest": {"version": 1, "run": …, "step": …, "facts": {…}, "parts": […]}}
//
// The checksum covers the text between `"manifest": ` and the last brace. A part is what one process has written. If
// checkpoints are authenticated, "mac" stands between the two, 64 hexadecimal digits that cover the same text, and a
// digest stands beside each checksum within (content_hash.h).
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

// The largest manifest, which would describe a checkpoint of hundreds of gigabytes.
inline constexpr std::uint64_t kMostManifestBytes = std::uint64_t{64} << 20;

// Elements of the arena, and the sums of their bytes in the file (padding has none).
struct StoredBlock {
  Range range;
  ContentSums sums;

  bool operator==(const StoredBlock&) const = default;
};

// What a file holds of a TrainingState.
enum class StoredKind {
  kArena,   // values by the names of the layout's tensors, as far as there are blocks; several parts may share the file
  kPieces,  // values without a layout, or in its padding: a tensor for each piece, named after its first element
  kRows,    // one row-sparse table: keys, and the values of each row
};

struct StoredFile {
  std::string name;  // within the checkpoint's folder
  StoredKind kind = StoredKind::kArena;
  std::string part;         // part of the TrainingState; for rows, the table's number
  std::uint64_t bytes = 0;  // size of the whole file
  ContentSums sums;         // sums of the header if there are blocks, else of the whole file
  // kArena only: the pieces of the TrainingState, ascending, and the blocks that each is cut into (arena_form.h).
  std::vector<Range> pieces;
  std::vector<StoredBlock> blocks;

  bool operator==(const StoredFile&) const = default;
};

struct StoredPart {
  std::string writer;     // "worker-0", "shard-1"
  std::int64_t step = 0;  // steps that it includes
  std::map<std::string, std::vector<std::int64_t>> counts;
  std::vector<StoredFile> files;
  bool finite = true;  // no value in it was NaN or infinite when it was written

  bool operator==(const StoredPart&) const = default;
};

struct Manifest {
  std::string run;  // the run that wrote it
  std::int64_t step = 0;
  std::map<std::string, std::string> facts;  // facts that a run must share to resume from it (run_facts.h)
  std::vector<StoredPart> parts;
  // How long training took until then, with that before the checkpoints that the run has resumed from; empty: not
  // known.
  std::optional<double> seconds = {};

  bool operator==(const Manifest&) const = default;
};

// Returns the text. `key` authenticates it; null: it is not authenticated.
std::string to_text(const Manifest& manifest, const CheckpointKey* key = nullptr);

// The envelope of a manifest's text whose form and checksum are right.
struct SealedManifest {
  std::string_view body;           // a part of the text
  std::optional<Digest> mac = {};  // none: it is not authenticated
};
Result<SealedManifest> open_seal(std::string_view text);
// Checks all values, and that the parts fit together. Fails with data loss, saying what is wrong, and with resource
// exhausted if memory runs out.
Result<Manifest> parse_manifest_body(std::string_view body);
// Does both.
Result<Manifest> parse_manifest(std::string_view text);
// Returns whether all values that it names were finite when they were written, as far as their writers say.
bool is_finite(const Manifest& manifest);
// Returns whether every file that it names has a digest.
bool has_digests(const Manifest& manifest);

// Converts a single part, which is sent to the process that writes the manifest.
std::string to_text(const StoredPart& part);
Result<StoredPart> parse_part(std::string_view text);

// Returns the name of the folder of a complete checkpoint: "step-000400".
std::string checkpoint_name(std::int64_t step);

}  // namespace syncopate::experiments
