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

class Checkpoint {
 public:
  // Reads the manifest in `folder`. Data loss where it is missing or not what it should be.
  static Result<Checkpoint> open(std::string folder);

  const std::string& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  // Reads all there is, and compares lengths and checksums; and whether the weights are all there. Data loss, naming
  // the first file that is not what it was. `forms` are those of the model that it is of.
  Status verify(const StateForms& forms) const;

  // Adds what is wanted to `state`, each block of a file checked again: data loss as above. The state's pieces are
  // those that were written, as far as they have anything that is wanted. Memory is taken for these, and for one file
  // of rows.
  Status read(const StateForms& forms, const Wanted& wanted, TrainingState& state) const;

 private:
  Checkpoint(std::string folder, Manifest manifest) : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

  Status verify_file(const StateForms& forms, const StoredFile& file) const;
  Result<std::string> read_whole(const StoredFile& file) const;
  // `ranges`: null for all.
  Status read_arena(const StoredFile& stored, const ArenaForm& form, const std::vector<Range>* ranges,
                    TrainingState& state) const;
  // `is_padding`: of a part that has a layout, whose pieces are read already.
  Status read_pieces(const StoredFile& file, bool is_padding, TrainingState& state) const;
  Status read_rows(const StoredFile& file, const Wanted& wanted, TrainingState& state) const;
  void read_counts(const Wanted& wanted, TrainingState& state) const;

  std::string folder_;
  Manifest manifest_;
};

}  // namespace syncopate::experiments
