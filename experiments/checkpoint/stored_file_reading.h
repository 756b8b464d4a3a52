// Reads one file of a checkpoint into a TrainingState, once what the manifest says of it has been held against the
// model (stored_limits.h). Data loss, naming the file, where it is not what was written; what has come into the state
// by then is not to be used. Memory for what is read is taken as it is: std::bad_alloc is the caller's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

using IsWantedRow = std::function<bool(std::size_t table, RowKey key)>;

// Reads all of it, and takes nothing.
Status verify_stored(const std::string& path, const StoredFile& stored, const StateForms& forms);

// Of kArena: the pieces that have anything of `ranges`; null, and what belongs to no range of the weights: all.
Status read_arena(const std::string& path, const StoredFile& stored, const StateForms& forms,
                  const std::vector<Range>* ranges, TrainingState& state);
// Of kPieces. Of a part that has a layout they are padding, and patched into the pieces that are there.
Status read_pieces(const std::string& path, const StoredFile& stored, const StateForms& forms, TrainingState& state);
// Of kRows: those that `is_wanted`; null: all. They are behind those that are there: sort_rows is to follow.
Status read_rows(const std::string& path, const StoredFile& stored, const StateForms& forms,
                 const IsWantedRow& is_wanted, TrainingState& state);

// By key, each once: parts of a table come from several files.
void sort_rows(RowsState& rows);

}  // namespace syncopate::experiments
