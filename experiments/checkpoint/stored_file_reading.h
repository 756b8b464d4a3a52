// Reads one file of a checkpoint into a TrainingState, after its entry in the manifest was checked against the model
// (stored_limits.h). Fails with data loss, naming the file, if it is not what was written; the state must then not be
// used. These functions do not handle std::bad_alloc: the caller does.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

using IsWantedRow = std::function<bool(std::size_t table, RowKey key)>;

// Reads and checks the whole file, and keeps nothing.
Status verify_stored(const std::string& path, const StoredFile& stored, const StateForms& forms);

// Reads a kArena file: the pieces that overlap `ranges`, or all if it is null or if the part has
// the layout of the local state.
Status read_arena(const std::string& path, const StoredFile& stored, const StateForms& forms,
                  const std::vector<Range>* ranges, TrainingState& state);
// Reads a kPieces file. If its part has a layout the pieces are padding, and are patched into the existing pieces.
Status read_pieces(const std::string& path, const StoredFile& stored, const StateForms& forms, TrainingState& state);
// Reads a kRows file: the rows for which `is_wanted` returns true; null: all. Appends them to the existing rows; the
// caller must call sort_rows afterwards.
Status read_rows(const std::string& path, const StoredFile& stored, const StateForms& forms,
                 const IsWantedRow& is_wanted, TrainingState& state);

// Sorts rows by key and keeps each once, since parts of a table come from several files.
void sort_rows(RowsState& rows);

}  // namespace syncopate::experiments
