#include "experiments/lab/run/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common/tables/initial_row.h"
#include "experiments/cluster/process/data_of.h"
#include "worker/model.h"

namespace syncopate::experiments {

Result<ModelWeights> initial_weights(const RunSettings& config, const TableKeys& rows) {
  SYNCOPATE_ASSIGN_OR_RETURN(const worker::SampleForm form, form_of_data(config));
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Model> model,
                             worker::make_model(model_spec(config), form, 1, *backend));
  const ParamLayout& layout = model->layout();
  if (rows.size() != layout.tables().size()) {
    return Status::invalid_argument(
        fmt::format("rows of {} tables, where {} has {}", rows.size(), config.model, layout.tables().size()));
  }
  std::vector<float> arena(layout.size());
  model->initialize(config.seed, arena);
  ModelWeights weights{.layout = snapshot_layout(layout, rows), .values = {}};
  weights.values.resize(weights.layout.size());
  std::ranges::copy(slice(std::span(arena), layout.dense()), weights.values.begin());
  const std::span<const TensorSpec> tables = std::span(weights.layout.tensors()).last(rows.size());
  for (std::size_t table = 0; table < rows.size(); ++table) {
    const std::span<float> values = slice(std::span(weights.values), tables[table].range);
    const std::size_t width = layout.tables()[table].width();
    for (std::size_t i = 0; i < rows[table].size(); ++i) {
      initial_row(config.seed, table, rows[table][i], layout.tables()[table].table->limit,
                  values.subspan(i * width, width));
    }
  }
  return weights;
}

}  // namespace syncopate::experiments
