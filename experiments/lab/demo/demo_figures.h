// DemoFigures: the figures that a demonstration's runs have left, by paths, and those that it defines itself.
//
// The first part of a path is the name of a run. What follows are names within its file: comparison.json of a
// comparison, which begins at its rows (`speed/ps:sync servers=1/samples_per_second`), summary.json of a single run
// (`death/faults/0/seconds_to_first_step`), and what `why` says of a run (`why/parts/incast/ms`). An element of a list
// is meant by its number or by the value of its first member. An estimate over rounds is its mean, and a figure that
// only the rounds of a row have is the mean of theirs.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "experiments/lab/demo/formula.h"

namespace syncopate::experiments {

class DemoFigures : public FigureLookup {
 public:
  using Document = nlohmann::ordered_json;

  // `definitions`: name and formula of each figure that the demonstration defines.
  DemoFigures(std::map<std::string, Document> documents, std::map<std::string, std::string> definitions)
      : documents_(std::move(documents)), definitions_(std::move(definitions)) {}

  Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const override;
  Result<FigureValue> named(const std::string& name) const override;

  // Returns the document of a run; null if there is none.
  const Document* document(const std::string& run) const;

 private:
  std::map<std::string, Document> documents_;
  std::map<std::string, std::string> definitions_;
  mutable int depth_ = 0;  // of definitions that name others
};

}  // namespace syncopate::experiments
