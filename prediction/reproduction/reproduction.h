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

  double error() const { return predicted / measured - 1; }  // of the prediction, as a fraction
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

  // Over the predicted cells, of which there must be one at least; without signs.
  double median_error() const;
  double worst_error() const;
  bool holds() const { return median_error() <= median_bar && worst_error() <= worst_bar; }
};

// In the order in which `all` shows them.
std::vector<std::string> reproduction_names();

// The names of the tables that measured this exchange between hosts, in the same order.
std::vector<std::string> reproductions_of(Exchange exchange);

// Fails with not found for an unknown name, listing all.
Result<Reproduction> reproduce(std::string_view name);

}  // namespace syncopate::prediction
