// Measurements that others have published, beside what the closed forms of this room predict for them. Pure.
//
// Each table is calibrated on few cells, and only these: every constant has a name and comes from cells that are
// marked. All other cells are predicted, but for those that a stated rule leaves out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "prediction/step_prediction.h"

namespace syncopate::prediction {

enum class CellUse { kPredicted, kCalibrated, kLeftOut };

struct ReproducedCell {
  std::string setup;
  int workers = 0;
  double measured = 0;
  double predicted = 0;
  CellUse use = CellUse::kPredicted;
  // Between them the measurement is expected in nine of ten cases; both 0 where the form says nothing of it.
  double low = 0;
  double high = 0;

  double error() const { return predicted / measured - 1; }  // of the prediction, as a fraction
  bool has_interval() const { return high > 0; }
  bool is_inside() const { return low <= measured && measured <= high; }
};

struct Reproduction {
  std::string name;
  std::string what;                     // what was measured, in one sentence
  std::string source;                   // who published it
  std::string unit;                     // of measured and predicted
  std::string reference = "measured";   // what predictions are held against, as a column's name
  std::string model;                    // how cells are predicted, in one sentence
  std::vector<std::string> calibrated;  // a sentence for each constant, with its value; empty if nothing is
  std::vector<std::string> left_out;    // a sentence for each rule
  std::vector<ReproducedCell> cells;
  double median_bar = 0;  // what the errors of predicted cells must not exceed, as fractions
  double worst_bar = 0;
  double inside_bar = 0;  // the part of them that must lie inside their intervals

  // Over the predicted cells, of which there must be one at least; without signs.
  double median_error() const;
  double worst_error() const;
  // How many of the predicted cells have an interval, and lie inside it.
  int judged_by_intervals() const;
  int inside_intervals() const;
  bool holds() const;
};

// In the order in which `all` shows them.
std::vector<std::string> reproduction_names();

// The names of the tables that measured this exchange between hosts, in the same order.
std::vector<std::string> reproductions_of(Exchange exchange);

// Fails with not found for an unknown name, listing all.
Result<Reproduction> reproduce(std::string_view name);

}  // namespace syncopate::prediction
