// Checkpoint: a complete checkpoint on the disk. It says what it is a checkpoint of, verifies that each byte is intact,
// and reads parts of it back into a TrainingState.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

// Which parts of a checkpoint a reader wants.
struct CheckpointSelection {
  std::optional<std::vector<Range>> ranges = {};  // of the arena; none: all of it
  int worker = -1;     // the rank whose own parts are selected, too; -1: no worker's, but those of shards
  bool alone = false;  // only what that worker has written; the rest belongs to the shards or to other replicas
  // Selects rows of tables; null: all rows.
  std::function<bool(std::size_t table, RowKey key)> row = nullptr;
};

// Files are not trusted: everything in the manifest is checked against the model, and against the files, before a byte
// is used. Failures name the file, and are data loss, or resource exhausted if memory runs out.
class Checkpoint {
 public:
  struct Expected {
    // If not null, open() fails with invalid argument unless this key authenticates the manifest. This is checked
    // before anything else in the manifest is used.
    const CheckpointKey* key = nullptr;
    // If not empty, open() fails with data loss unless the manifest's text has this digest.
    std::string digest = {};
  };
  // Reads the manifest in `folder`. Fails with data loss if it is missing or malformed.
  static Result<Checkpoint> open(std::string folder, const Expected& expected);
  static Result<Checkpoint> open(std::string folder) { return open(std::move(folder), Expected()); }

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  // Returns whether the manifest says that it was written with a key. Without the key nobody can tell which one.
  bool claims_authentication() const { return has_mac_; }
  // Returns the digest of the manifest's text. If the checkpoint is authenticated, it covers all that the manifest
  // names.
  const std::string& digest() const { return digest_; }

  // Reads the whole checkpoint, compares lengths, checksums and (if there are any) digests, and checks that no weights
  // are missing. Fails with data loss, naming the first file that has changed. `forms` must be those of its model.
  Status verify(const StateForms& forms) const;

  // Adds the selected parts to `state`, which must not contain any of them yet. Each block of a file is checked again:
  // on data loss nothing in the state may be used. The state's pieces are those that were written, as far as they
  // contain selected elements. Memory is allocated for these, and for the keys of one file of rows.
  Status read(const StateForms& forms, const CheckpointSelection& selection, TrainingState& state) const;

 private:
  Checkpoint(std::string folder, Manifest manifest, bool has_mac, std::string digest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), has_mac_(has_mac), digest_(std::move(digest)) {}

  std::string path_of(const StoredFile& file) const { return folder_ + "/" + file.name; }
  void read_counts(const CheckpointSelection& selection, TrainingState& state) const;

  std::string folder_;
  Manifest manifest_;
  bool has_mac_;
  std::string digest_;
};

}  // namespace syncopate::experiments
