#include "experiments/lab/demo/demo_figures.h"

#include <fmt/format.h>

#include <span>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

using Document = DemoFigures::Document;
using Path = std::span<const std::string>;

constexpr int kDeepestDefinition = 20;

FigureValue figure_in(const Document& json) {
  if (json.is_number()) return {.number = json.get<double>()};
  if (json.is_boolean()) return {.number = json.get<bool>() ? 1 : 0};
  if (json.is_string()) return {.text = json.get<std::string>()};
  if (json.is_object() && json.contains("mean") && json["mean"].is_number())
    return {.number = json["mean"].get<double>()};
  return {};
}

// Returns the value of an element's first member, which names it in a list; empty if it has none.
std::string name_in_list(const Document& element) {
  if (!element.is_object() || element.empty()) return {};
  const Document& first = element.begin().value();
  if (first.is_string()) return first.get<std::string>();
  return first.is_number_integer() ? std::to_string(first.get<std::int64_t>()) : std::string();
}

void collect(const Document& at, Path path, const std::string& name, std::vector<NamedFigure>& found);

void collect_in_list(const Document& list, Path path, const std::string& name, std::vector<NamedFigure>& found) {
  const std::string& part = path.front();
  const Path rest = path.subspan(1);
  if (part.ends_with('*')) {
    for (const Document& element : list) {
      const std::string own = name_in_list(element);
      if (own.starts_with(part.substr(0, part.size() - 1))) collect(element, rest, own, found);
    }
    return;
  }
  for (const Document& element : list) {
    if (name_in_list(element) == part) return collect(element, rest, name, found);
  }
  const std::optional<std::size_t> index = parse_number<std::size_t>(part);
  if (index && *index < list.size()) return collect(list[*index], rest, name, found);
  found.push_back({name, {}});
}

// Adds the mean of a figure over the rounds that have it; a text is that of the first.
void collect_in_rounds(const Document& rounds, Path path, const std::string& name, std::vector<NamedFigure>& found) {
  FigureValue value;
  double total = 0;
  int count = 0;
  for (const Document& round : rounds) {
    std::vector<NamedFigure> own;
    if (!round.is_null()) collect(round, path, name, own);
    if (own.size() != 1) continue;
    if (own.front().value.text && !value.text) value.text = own.front().value.text;
    if (!own.front().value.number) continue;
    total += *own.front().value.number;
    ++count;
  }
  if (count > 0) value = {.number = total / count};
  found.push_back({name, value});
}

void collect(const Document& at, Path path, const std::string& name, std::vector<NamedFigure>& found) {
  if (path.empty()) {
    found.push_back({name, figure_in(at)});
  } else if (at.is_array()) {
    collect_in_list(at, path, name, found);
  } else if (at.is_object() && at.contains(path.front()) && (path.size() == 1 || at[path.front()].is_structured())) {
    collect(at[path.front()], path.subspan(1), name, found);
  } else if (at.is_object() && at.contains("rounds") && at["rounds"].is_array()) {
    collect_in_rounds(at["rounds"], path, name, found);
  } else {
    found.push_back({name, {}});
  }
}

}  // namespace

Result<std::vector<NamedFigure>> DemoFigures::at(const std::vector<std::string>& path) const {
  const Document* const run = document(path.front());
  if (run == nullptr) return Status::invalid_argument(fmt::format("{}: no such run", path.front()));
  std::vector<NamedFigure> found;
  const Path rest = Path(path).subspan(1);
  const bool has_rows = run->is_object() && run->contains("rows") && !rest.empty() && !run->contains(rest.front());
  collect(has_rows ? (*run)["rows"] : *run, rest, path.front(), found);
  return found;
}

Result<FigureValue> DemoFigures::named(const std::string& name) const {
  const auto definition = definitions_.find(name);
  if (definition == definitions_.end()) return Status::invalid_argument(fmt::format("{}: no such figure", name));
  if (depth_ >= kDeepestDefinition) return Status::invalid_argument(fmt::format("{}: is defined by itself", name));
  ++depth_;
  Result<FigureValue> value = evaluate(definition->second, *this);
  --depth_;
  return value;
}

const Document* DemoFigures::document(const std::string& run) const {
  const auto found = documents_.find(run);
  return found == documents_.end() ? nullptr : &found->second;
}

}  // namespace syncopate::experiments
