// Formulas over the figures of finished runs, as demonstrations have them in their files. Pure.
//
//   7.5   'a text'   speed   [runs/ps:sync servers=1/samples_per_second]   + - * /   < <= > >= == !=   and or not   ( )
//   min(a, b)  max(a, b)  abs(a)  round(a)  ceil(a)  floor(a)  sqrt(a)  log2(a)  has(a)
//   pick(condition, yes, no)
//   least([...])  most([...])  sum([...])  mean([...])  count([...])  name_of_least([...])  name_of_most([...])
//
// A name is a figure that the demonstration defines; a path in brackets, its parts between slashes, one that a run has
// left. A part that ends in `*` stands for all that begin so, for the functions in the last line. What a run has not
// measured has no value: arithmetic with it has none, comparisons with it are false.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// A number or a text; neither: there is no value.
struct FigureValue {
  std::optional<double> number = {};
  std::optional<std::string> text = {};

  bool has_value() const { return number || text; }
  bool is_true() const { return number && *number != 0; }
  bool operator==(const FigureValue&) const = default;
};

struct NamedFigure {
  std::string name;  // what stood for the last part with a `*`
  FigureValue value;
};

class FigureLookup {
 public:
  virtual ~FigureLookup() = default;
  // Fails with invalid argument if there can be no such figure.
  virtual Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const = 0;
  virtual Result<FigureValue> named(const std::string& name) const = 0;
};

// Fails with invalid argument, with the formula and what is wrong in it, and as `figures` does.
Result<FigureValue> evaluate(std::string_view formula, const FigureLookup& figures);

// Returns `text` with the value of each formula in braces in its place: {speed}, or {speed|,} in a format: a digit, so
// many decimals; `,` a whole number with commas; `%` a part as percent; `x` a ratio, as 2.10x. Without one, three
// digits. What has no value is "nothing". Fails as evaluate() does, and for a brace without its other or another
// format.
Result<std::string> filled(std::string_view text, const FigureLookup& figures);

}  // namespace syncopate::experiments
