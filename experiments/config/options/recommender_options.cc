#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "worker/data/recommender_sets.h"

namespace syncopate::experiments {

using option_kinds::choice;
using option_kinds::number;
using option_kinds::only;

void add_recommender_options(std::vector<OptionSpec>& table) {
  using C = RunRequest;
  const std::string group = "Model and data";
  table.push_back(only(number({.group = group,
                               .name = "table-rows",
                               .of_model = true,
                               .placeholder = "N",
                               .sentence = "Rows of each table: users and items, or what categories are hashed to.",
                               .unit = "rows"},
                              &C::table_rows, "rows", std::int64_t{1}, worker::kMostTableRows),
                       conditions::kSizedTables));
  table.push_back(
      only(choice({.group = group,
                   .name = "embeddings",
                   .of_model = true,
                   .placeholder = "KIND",
                   .sentence = "sparse: tables of which only the rows that a batch touches are made, sent and updated; "
                               "dense: ordinary tensors."},
                  &C::embeddings, "embeddings", {worker::EmbeddingKind::kSparse, worker::EmbeddingKind::kDense}),
           conditions::kRecommender));
}

}  // namespace syncopate::experiments
