// StepFields: the figures of a step, each described once. steps.csv, the file of a program's steps and what workers
// send to the coordinator are written and read by this table; results/README.md explains its columns, and is checked
// against it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/step_record.h"

namespace syncopate {

struct StepField {
  enum class Kind {
    kCount,     // a whole number
    kDuration,  // in steps.csv in microseconds
    kTime,      // there in seconds since training began
    kReal,
  };

  const char* column = nullptr;  // of steps.csv, with its unit; null: it has none
  const char* form = "{:.6g}";   // of a kReal there
  bool is_later = false;         // the runs of earlier versions lack the column
  bool of_learning = false;      // of what the model has learnt: empty where there is nothing to learn
  // Whether a record knows it: the cell is empty where it does not. Null: all do.
  bool (*is_known)(const StepRecord& record) = nullptr;

  Kind kind = Kind::kCount;
  // The value as 64 bits: a count, nanoseconds, or those of a double. What is optional is -1 where it is not there.
  std::int64_t (*get)(const StepRecord& record) = nullptr;
  void (*set)(std::int64_t bits, StepRecord& record) = nullptr;
};

// Those of steps.csv, in the order of its columns, and then those that it does not have.
std::span<const StepField> step_fields();

// Appends the field's cell of steps.csv, for training that began at `origin`.
void append_cell(const StepField& field, const StepRecord& record, TimePoint origin, std::string& text);

// Reads such a cell, for training that began at zero. A real that is not known is then no number; all else stays as it
// is in the record. Returns false if the cell is none of the field's, or one that others cannot calculate with: a count
// below zero, or more than 2^53 of anything.
bool read_cell(const StepField& field, std::string_view cell, StepRecord& record);

}  // namespace syncopate
