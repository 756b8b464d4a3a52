// Checkpoint: one that is complete, on the disk: what it is of, whether each byte is what it was, and parts of it read
// back into a TrainingState.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

// What a reader wants of it.
struct Wanted {
  std::optional<std::vector<Range>> ranges = {};  // of the arena; none: all of it
  int worker = -1;     // the rank whose own parts are wanted, too; -1: nobody's, but those of shards
  bool alone = false;  // nothing but what that worker has written: the rest is the shards', or other replicas'
  // Of tables; null: all rows.
  std::function<bool(std::size_t table, RowKey key)> row = nullptr;
};

// Anybody may have made it: all that it says is checked against the model before a byte is used, and against what is in
// the files. Failures name the file, and are data loss, or resource exhausted where memory ends.
class Checkpoint {
 public:
  struct Expected {
    // Invalid argument unless the manifest is authenticated by it, before anything else that it says is believed; null:
    // not asked for.
    const CheckpointKey* key = nullptr;
    // Data loss unless the manifest's text has this digest; empty: not asked for.
    std::string digest = {};
  };
  // Reads the manifest in `folder`. Data loss where it is missing or not what it should be.
  static Result<Checkpoint> open(std::string folder, const Expected& expected);
  static Result<Checkpoint> open(std::string folder) { return open(std::move(folder), Expected()); }

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  // Whether somebody with a key has written it: without the key nobody can tell who.
  bool claims_authentication() const { return has_mac_; }
  // Of the manifest's text, and by that of all that it names, where it is authenticated.
  const std::string& digest() const { return digest_; }

  // Reads all there is, and compares lengths and checksums, and digests where there are any; and whether the weights
  // are all there. Data loss, naming the first file that is not what it was. `forms` are those of the model that it is
  // of.
  Status verify(const StateForms& forms) const;

  // Adds what is wanted to `state`, which holds nothing of it yet, each block of a file checked again: data loss as
  // above, and then nothing in the state is to be used. The state's pieces are those that were written, as far as they
  // have anything that is wanted. Memory is taken for these, and for the keys of one file of rows.
  Status read(const StateForms& forms, const Wanted& wanted, TrainingState& state) const;

 private:
  Checkpoint(std::string folder, Manifest manifest, bool has_mac, std::string digest)
      : folder_(std::move(folder)), manifest_(std::move(manifest)), has_mac_(has_mac), digest_(std::move(digest)) {}

  std::string path_of(const StoredFile& file) const { return folder_ + "/" + file.name; }
  void read_counts(const Wanted& wanted, TrainingState& state) const;

  std::string folder_;
  Manifest manifest_;
  bool has_mac_;
  std::string digest_;
};

}  // namespace syncopate::experiments
