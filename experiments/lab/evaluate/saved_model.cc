#include "experiments/lab/evaluate/saved_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/lab/evaluate/model_options.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using Tensor = SafetensorsFile::Tensor;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kWeightsFile = "weights.safetensors";
constexpr std::uint64_t kMostConfigTextBytes = 1 << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Returns those of `entries` that are of the model and its data; a checkpoint's facts have dashes before their names.
GivenOptions model_options_in(const std::map<std::string, std::string>& entries) {
  GivenOptions options;
  for (const OptionSpec& option : option_table()) {
    if (!option.of_model) continue;
    for (const std::string& key : {option.name, "--" + option.name}) {
      if (const auto found = entries.find(key); found != entries.end()) options[option.name] = found->second;
    }
  }
  return options;
}

Result<GivenOptions> options_in_config(const fs::path& path) {
  if (!is_there(path)) return GivenOptions();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path.string(), kMostConfigTextBytes));
  const Result<GivenOptions> given = given_in_file(text);
  if (!given.ok()) return given.status().in(path.string());
  return model_options_in(*given);
}

Result<SavedModel> open_file(const fs::path& path) {
  SYNCOPATE_ASSIGN_OR_RETURN(SafetensorsFile file, read_safetensors(path.string()));
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions in_config,
                             options_in_config(fs::absolute(path).parent_path() / "config.toml"));
  GivenOptions options = model_options_in(file.metadata);
  options.insert(in_config.begin(), in_config.end());
  return SavedModel{.path = path.string(), .checkpoint = {}, .options = std::move(options), .file = std::move(file)};
}

Result<SavedModel> open_checkpoint(const fs::path& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(folder.string()));
  // It lies in RESULTS/checkpoints.
  const fs::path results = fs::absolute(folder).parent_path().parent_path();
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions in_config, options_in_config(results / "config.toml"));
  GivenOptions options = model_options_in(checkpoint.manifest().facts);
  options.insert(in_config.begin(), in_config.end());
  const std::string path = (folder / kWeightsFile).string();
  SYNCOPATE_ASSIGN_OR_RETURN(SafetensorsFile file, read_safetensors(path));
  return SavedModel{
      .path = path, .checkpoint = folder.string(), .options = std::move(options), .file = std::move(file)};
}

// Says what else a folder has that could have been meant.
Status nothing_in(const fs::path& folder) {
  const CheckpointStore checkpoints((folder / "checkpoints").string());
  const std::vector<std::int64_t> steps = checkpoints.steps();
  return Status::invalid_argument(
      fmt::format("{}: has no {}{}", folder.string(), kModelFile,
                  steps.empty() ? "; name the results of a run that ended, a checkpoint or a file of weights"
                                : fmt::format(", since the run did not end; its newest checkpoint is {}",
                                              checkpoints.path_of(steps.front()))));
}

std::string shape_text(const std::vector<std::int64_t>& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

// Looks tensors up in a file, and remembers which of them have been used.
class TensorsOfFile {
 public:
  explicit TensorsOfFile(const SavedModel& saved) : path_(saved.path) {
    for (const Tensor& tensor : saved.file.tensors) tensors_[tensor.name] = &tensor;
  }

  // Returns the tensor of that name. A dimension of -1 may be any.
  Result<const Tensor*> take(const std::string& name, const std::vector<std::int64_t>& shape, bool is_whole) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return wrong(fmt::format("has no tensor '{}' of {}", name, shape_text(shape)));
    const Tensor* const tensor = found->second;
    const auto agrees = [](std::int64_t here, std::int64_t asked) { return asked == -1 || here == asked; };
    if (!std::ranges::equal(tensor->shape, shape, agrees)) {
      return wrong(fmt::format("tensor '{}' is {} there, and {} in the model", name, shape_text(tensor->shape),
                               shape_text(shape)));
    }
    const bool has_numbers = is_whole ? tensor->values.empty() : tensor->whole_numbers.empty();
    if (!has_numbers) return wrong(fmt::format("tensor '{}' has numbers of another type", name));
    tensors_.erase(found);
    return tensor;
  }

  // Fails if there are tensors that nobody has taken.
  Status check_all_taken() const {
    if (tensors_.empty()) return {};
    const auto& [name, tensor] = *tensors_.begin();
    return wrong(
        fmt::format("has a tensor '{}' of {}, which the model has not", printable(name), shape_text(tensor->shape)));
  }

 private:
  Status wrong(const std::string& what) const {
    return Status::invalid_argument(fmt::format("{}: {}; --model says which model it is of", path_, what));
  }

  const std::string& path_;
  std::map<std::string, const Tensor*> tensors_;
};

// Copies the dense tensors of `layout` into an arena.
Status take_dense(TensorsOfFile& tensors, const ParamLayout& layout, std::span<float> arena) {
  for (const TensorSpec& spec : layout.tensors()) {
    if (spec.table) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(const Tensor* const tensor, tensors.take(spec.name, spec.shape, false));
    std::ranges::copy(tensor->values, arena.begin() + static_cast<std::ptrdiff_t>(spec.range.begin));
  }
  return {};
}

Result<std::vector<RowKey>> keys_of(const SavedModel& saved, const Tensor& numbers, const TensorSpec& table) {
  std::vector<RowKey> keys;
  for (const std::int64_t number : numbers.whole_numbers) {
    const bool follows = keys.empty() || number > static_cast<std::int64_t>(keys.back());
    if (number < 0 || number >= table.shape.front() || !follows) {
      return Status::data_loss(fmt::format("{}: tensor '{}' must name rows of 0 to {} in ascending order", saved.path,
                                           numbers.name, table.shape.front() - 1));
    }
    keys.push_back(static_cast<RowKey>(number));
  }
  return keys;
}

// `local_layout` is of what the file has of a local state.
Result<WeightsSnapshot> weights_of_file(const SavedModel& saved, const ParamLayout& layout,
                                        const ParamLayout& local_layout) {
  TensorsOfFile tensors(saved);
  WeightsSnapshot snapshot;
  std::vector<const Tensor*> rows;
  for (const TensorSpec& table : layout.tables()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const Tensor* const numbers, tensors.take(table.name + ".rows", {-1}, true));
    SYNCOPATE_ASSIGN_OR_RETURN(std::vector<RowKey> keys, keys_of(saved, *numbers, table));
    if (keys.empty()) return Status::data_loss(fmt::format("{}: has no rows of '{}'", saved.path, table.name));
    const auto count = static_cast<std::int64_t>(keys.size());
    SYNCOPATE_ASSIGN_OR_RETURN(const Tensor* const values,
                               tensors.take(table.name, {count, table.shape.back()}, false));
    snapshot.rows.push_back(std::move(keys));
    rows.push_back(values);
  }
  const ParamLayout dense = snapshot_layout(layout, snapshot.rows);
  snapshot.weights.resize(dense.size());
  snapshot.local_state.resize(local_layout.size());
  const std::span<const TensorSpec> tables = std::span(dense.tensors()).last(rows.size());
  for (std::size_t table = 0; table < rows.size(); ++table) {
    std::ranges::copy(rows[table]->values, slice(std::span(snapshot.weights), tables[table].range).begin());
  }
  ParamLayout without_tables;
  for (const TensorSpec& spec : layout.tensors()) {
    if (!spec.table) without_tables.add(spec.name, spec.shape);
  }
  SYNCOPATE_RETURN_IF_ERROR(take_dense(tensors, without_tables, snapshot.weights));
  SYNCOPATE_RETURN_IF_ERROR(take_dense(tensors, local_layout, snapshot.local_state));
  SYNCOPATE_RETURN_IF_ERROR(tensors.check_all_taken());
  return snapshot;
}

// Adds a worker's local state in double precision, as the coordinator does.
Status add_local_state(const Checkpoint& checkpoint, const StateForms& forms, int worker, std::vector<double>& sum) {
  TrainingState state;
  SYNCOPATE_RETURN_IF_ERROR(checkpoint.read(forms, {.worker = worker, .alone = true}, state));
  std::vector<float> values(sum.size());
  SYNCOPATE_RETURN_IF_ERROR(state.read(state_part::local_state_of(worker), {0, values.size()}, values));
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += static_cast<double>(values[i]);
  return {};
}

Result<std::vector<float>> mean_local_state(const Checkpoint& checkpoint, const StateForms& forms) {
  std::vector<double> sum(forms.local_size());
  if (sum.empty()) return std::vector<float>();
  int workers = 0;
  for (const StoredPart& part : checkpoint.manifest().parts) {
    for (const StoredFile& file : part.files) {
      const int owner = file.part.starts_with("local_state.") ? owner_of(file.part) : -1;
      if (owner < 0) continue;
      SYNCOPATE_RETURN_IF_ERROR(add_local_state(checkpoint, forms, owner, sum));
      ++workers;
    }
  }
  if (workers == 0) return Status::data_loss(checkpoint.folder() + ": has no moments of the model's batch norms");
  std::vector<float> mean;
  for (const double value : sum) mean.push_back(static_cast<float>(value / workers));
  return mean;
}

Result<WeightsSnapshot> weights_of_checkpoint(const SavedModel& saved, const ParamLayout& layout,
                                              const ParamLayout& local_layout) {
  if (!layout.tables().empty()) {
    return Status::invalid_argument(
        fmt::format("{}: is a checkpoint of a model with row-sparse tables, and lacks rows that the test set alone "
                    "touches; go on from it by --resume, and evaluate what that run comes to",
                    saved.checkpoint));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(WeightsSnapshot snapshot, weights_of_file(saved, layout, ParamLayout()));
  SYNCOPATE_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(saved.checkpoint));
  const StateForms forms(layout, local_layout);
  SYNCOPATE_RETURN_IF_ERROR(checkpoint.verify(forms));
  SYNCOPATE_ASSIGN_OR_RETURN(snapshot.local_state, mean_local_state(checkpoint, forms));
  return snapshot;
}

}  // namespace

Result<SavedModel> open_saved_model(const std::string& path) {
  const fs::path given(path);
  if (is_folder(given)) {
    const fs::path folder = given.has_filename() ? given : given.parent_path();
    if (is_there(folder / kModelFile)) return open_file(folder / kModelFile);
    return is_there(folder / kManifestFile) ? open_checkpoint(folder) : nothing_in(folder);
  }
  // A file of a checkpoint may lack what others of it have.
  const fs::path folder = given.parent_path();
  if (is_there(given) && !folder.empty() && is_there(folder / kManifestFile)) return open_checkpoint(folder);
  return open_file(given);
}

Result<WeightsSnapshot> read_weights(const SavedModel& saved, const ParamLayout& layout,
                                     const ParamLayout& local_layout) {
  return saved.checkpoint.empty() ? weights_of_file(saved, layout, local_layout)
                                  : weights_of_checkpoint(saved, layout, local_layout);
}

}  // namespace syncopate::experiments
