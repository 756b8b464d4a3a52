#include "prediction/reproduction/reproduction.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "prediction/reproduction/tables.h"

namespace syncopate::prediction {
namespace {

struct NamedTable {
  const char* name;
  Reproduction (*make)();
  std::optional<Exchange> between_hosts = std::nullopt;  // what was measured there; none of forms and of single hosts
};

constexpr NamedTable kTables[] = {{"ring", &ring_form},
                                  {"byteps-forms", &byteps_forms},
                                  {"nccl-links", &nccl_links, Exchange::kRing},
                                  {"piz-daint", &piz_daint, Exchange::kServers},
                                  {"mxnet", &mxnet_p2, Exchange::kServers},
                                  {"tf-page", &tensorflow_page},
                                  {"dlperf-bert", &dlperf_bert, Exchange::kRing},
                                  {"horovod", &horovod_images, Exchange::kRing},
                                  {"fitted-sizes", &fitted_sizes}};

std::vector<double> sorted_errors(const std::vector<ReproducedCell>& cells) {
  std::vector<double> errors;
  for (const ReproducedCell& cell : cells) {
    if (cell.use == CellUse::kPredicted) errors.push_back(std::abs(cell.error()));
  }
  assert(!errors.empty());
  std::ranges::sort(errors);
  return errors;
}

}  // namespace

double Reproduction::median_error() const {
  const std::vector<double> errors = sorted_errors(cells);
  const std::size_t count = errors.size();
  return (errors[count / 2] + errors[(count - 1) / 2]) / 2;
}

double Reproduction::worst_error() const { return sorted_errors(cells).back(); }

int Reproduction::judged_by_intervals() const {
  return static_cast<int>(std::ranges::count_if(
      cells, [](const ReproducedCell& cell) { return cell.use == CellUse::kPredicted && cell.has_interval(); }));
}

int Reproduction::inside_intervals() const {
  return static_cast<int>(std::ranges::count_if(cells, [](const ReproducedCell& cell) {
    return cell.use == CellUse::kPredicted && cell.has_interval() && cell.is_inside();
  }));
}

bool Reproduction::holds() const {
  return median_error() <= median_bar && worst_error() <= worst_bar &&
         inside_intervals() >= inside_bar * judged_by_intervals();
}

std::vector<std::string> reproduction_names() {
  std::vector<std::string> names;
  for (const NamedTable& table : kTables) names.emplace_back(table.name);
  return names;
}

std::vector<std::string> reproductions_of(Exchange exchange) {
  std::vector<std::string> names;
  for (const NamedTable& table : kTables) {
    if (table.between_hosts == exchange) names.emplace_back(table.name);
  }
  return names;
}

Result<Reproduction> reproduce(std::string_view name) {
  const auto* const found = std::ranges::find(kTables, name, &NamedTable::name);
  if (found == std::end(kTables)) {
    return Status::not_found(fmt::format("{}: no such table; there are {}, and all of them (all)", name,
                                         fmt::join(reproduction_names(), ", ")));
  }
  Reproduction reproduction = found->make();
  reproduction.name = found->name;
  return reproduction;
}

}  // namespace syncopate::prediction
