// How the gradients of row-sparse tables are exchanged: the user's choice.
#pragma once

namespace syncopate::allreduce {

enum class SparseExchange {
  kAuto,   // whichever is faster, found for each table in the first steps
  kRows,   // the rows that each rank has touched, with their keys
  kDense,  // the whole table
};

inline const char* name_of(SparseExchange value) {
  return value == SparseExchange::kAuto ? "auto" : value == SparseExchange::kRows ? "rows" : "dense";
}

}  // namespace syncopate::allreduce
