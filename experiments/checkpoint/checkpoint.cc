#include "experiments/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>

#include "experiments/checkpoint/checksum.h"
#include "experiments/checkpoint/data_file.h"
#include "experiments/report/safetensors.h"

namespace syncopate::experiments {
namespace {

Status corrupt(const std::string& file, const std::string& what) {
  return {Code::kDataLoss, fmt::format("{}: {}", file, what)};
}

// Padding, of which the file has nothing, is zero.
Status read_block(const DataFile& file, const ArenaForm& form, const StoredBlock& block, std::span<float> values) {
  std::ranges::fill(values, 0.0f);
  Checksum checksum;
  for (const ArenaForm::Stretch& stretch : form.stretches(block.range)) {
    const auto bytes =
        std::as_writable_bytes(values.subspan(stretch.range.begin - block.range.begin, stretch.range.size()));
    SYNCOPATE_RETURN_IF_ERROR(file.read(bytes, stretch.offset));
    checksum.add(bytes);
  }
  if (checksum.value() == block.checksum) return {};
  return corrupt(file.path(),
                 fmt::format("elements {} to {} are not what was written", block.range.begin, block.range.end));
}

std::string worker_name(int rank) { return fmt::format("worker-{}", rank); }

bool is_for(const StoredPart& part, const Wanted& wanted) {
  return part.writer == worker_name(wanted.worker) || !wanted.alone;
}

bool have_common(Range one, Range other) { return one.begin < other.end && other.begin < one.end; }

// Padding is part of a piece that has been read before it, if it is of one that was wanted.
void patch(const std::string& name, Range padding, std::span<const float> values, TrainingState& state) {
  for (const Range& piece : state.pieces(name)) {
    if (piece.begin > padding.begin || piece.end < padding.end) continue;
    std::ranges::copy(values, state.piece(name, piece).subspan(padding.begin - piece.begin).begin());
  }
}

// By key, each once: parts of a table come from several files.
void sort_rows(RowsState& rows) {
  if (std::ranges::is_sorted(rows.keys)) return;
  std::vector<std::size_t> order(rows.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t row) { return rows.keys[row]; });
  RowsState sorted{.row_floats = rows.row_floats};
  for (const std::size_t row : order) {
    if (!sorted.keys.empty() && sorted.keys.back() == rows.keys[row]) continue;
    sorted.keys.push_back(rows.keys[row]);
    const auto begin = rows.values.begin() + static_cast<std::ptrdiff_t>(row * rows.row_floats);
    sorted.values.insert(sorted.values.end(), begin, begin + static_cast<std::ptrdiff_t>(rows.row_floats));
  }
  rows = std::move(sorted);
}

}  // namespace

Result<Checkpoint> Checkpoint::open(std::string folder) {
  const std::string path = folder + "/" + kManifestFile;
  Result<DataFile> file = DataFile::open(path);
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> bytes = file->bytes();
  if (!bytes.ok()) return bytes.status();
  std::string text(*bytes, '\0');
  SYNCOPATE_RETURN_IF_ERROR(file->read(std::as_writable_bytes(std::span(text)), 0));
  Result<Manifest> manifest = parse_manifest(text);
  if (!manifest.ok()) return manifest.status().in(path);
  return Checkpoint(std::move(folder), std::move(*manifest));
}

Status Checkpoint::verify(const StateForms& forms) const {
  std::vector<StoredBlock> weights;
  for (const StoredPart& part : manifest_.parts) {
    for (const StoredFile& file : part.files) {
      SYNCOPATE_RETURN_IF_ERROR(verify_file(forms, file));
      if (file.part != state_part::kWeights) continue;
      weights.insert(weights.end(), file.blocks.begin(), file.blocks.end());
    }
  }
  std::ranges::sort(weights, {}, [](const StoredBlock& block) { return block.range.begin; });
  std::size_t reached = forms.layout().dense().begin;
  for (const StoredBlock& block : weights) {
    if (block.range.begin <= reached) reached = std::max(reached, block.range.end);
  }
  if (reached >= forms.layout().dense().end) return {};
  return corrupt(folder_, fmt::format("weights are there up to element {} of {}", reached, forms.layout().dense().end));
}

Status Checkpoint::verify_file(const StateForms& forms, const StoredFile& stored) const {
  if (stored.kind != StoredKind::kArena) return read_whole(stored).status();
  const ArenaForm* form = forms.form_of(stored.part);
  if (form == nullptr || form->file_bytes() != stored.bytes) {
    return corrupt(folder_ + "/" + stored.name, "is of another layout than this model's");
  }
  Result<DataFile> file = DataFile::open(folder_ + "/" + stored.name);
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> bytes = file->bytes();
  if (!bytes.ok()) return bytes.status();
  if (*bytes != stored.bytes) return corrupt(file->path(), fmt::format("{} bytes instead of {}", *bytes, stored.bytes));
  std::string header(form->header().size(), '\0');
  SYNCOPATE_RETURN_IF_ERROR(file->read(std::as_writable_bytes(std::span(header)), 0));
  if (checksum_of(header) != stored.checksum || header != form->header()) {
    return corrupt(file->path(), "the header is not what was written");
  }
  std::vector<float> values;
  for (const StoredBlock& block : stored.blocks) {
    if (block.range.begin < form->arena().begin || block.range.end > form->arena().end) {
      return corrupt(file->path(),
                     fmt::format("elements {} to {} are not the model's", block.range.begin, block.range.end));
    }
    values.resize(block.range.size());
    SYNCOPATE_RETURN_IF_ERROR(read_block(*file, *form, block, values));
  }
  return {};
}

Result<std::string> Checkpoint::read_whole(const StoredFile& stored) const {
  Result<DataFile> file = DataFile::open(folder_ + "/" + stored.name);
  if (!file.ok()) return file.status();
  const Result<std::uint64_t> bytes = file->bytes();
  if (!bytes.ok()) return bytes.status();
  if (*bytes != stored.bytes) return corrupt(file->path(), fmt::format("{} bytes instead of {}", *bytes, stored.bytes));
  std::string content(*bytes, '\0');
  SYNCOPATE_RETURN_IF_ERROR(file->read(std::as_writable_bytes(std::span(content)), 0));
  if (checksum_of(content) != stored.checksum) return corrupt(file->path(), "is not what was written");
  return content;
}

Status Checkpoint::read(const StateForms& forms, const Wanted& wanted, TrainingState& state) const {
  read_counts(wanted, state);
  for (const StoredPart& part : manifest_.parts) {
    if (!is_for(part, wanted)) continue;
    for (const StoredFile& file : part.files) {
      if (const int owner = owner_of(file.part); owner >= 0 && owner != wanted.worker) continue;
      const ArenaForm* form = forms.form_of(file.part);
      if (file.kind == StoredKind::kPieces) SYNCOPATE_RETURN_IF_ERROR(read_pieces(file, form != nullptr, state));
      if (file.kind == StoredKind::kRows) SYNCOPATE_RETURN_IF_ERROR(read_rows(file, wanted, state));
      if (file.kind != StoredKind::kArena) continue;
      if (form == nullptr) return corrupt(file.name, fmt::format("'{}' has no layout", file.part));
      const bool is_local = form != forms.form_of(state_part::kWeights);
      SYNCOPATE_RETURN_IF_ERROR(read_arena(file, *form, is_local || !wanted.ranges ? nullptr : &*wanted.ranges, state));
    }
  }
  for (auto& [table, rows] : state.rows) sort_rows(rows);
  return {};
}

Status Checkpoint::read_arena(const StoredFile& stored, const ArenaForm& form, const std::vector<Range>* ranges,
                              TrainingState& state) const {
  const auto is_wanted = [&](Range piece) {
    return ranges == nullptr || std::ranges::any_of(*ranges, [&](Range range) { return have_common(piece, range); });
  };
  Result<DataFile> file = DataFile::open(folder_ + "/" + stored.name);
  if (!file.ok()) return file.status();
  auto block = stored.blocks.begin();
  for (const Range& piece : stored.pieces) {
    const std::span<float> values = is_wanted(piece) ? state.piece(stored.part, piece) : std::span<float>();
    for (; block != stored.blocks.end() && block->range.end <= piece.end; ++block) {
      if (values.empty()) continue;
      const Range within{block->range.begin - piece.begin, block->range.end - piece.begin};
      SYNCOPATE_RETURN_IF_ERROR(read_block(*file, form, *block, slice(values, within)));
    }
  }
  return {};
}

Status Checkpoint::read_pieces(const StoredFile& stored, bool is_padding, TrainingState& state) const {
  const Result<std::string> content = read_whole(stored);
  if (!content.ok()) return content.status();
  const Result<SafetensorsFile> file = from_safetensors(*content);
  if (!file.ok()) return file.status().in(folder_ + "/" + stored.name);
  for (const SafetensorsFile::Tensor& tensor : file->tensors) {
    std::size_t begin = 0;
    const char* end = tensor.name.data() + tensor.name.size();
    if (std::from_chars(tensor.name.data(), end, begin).ptr != end) {
      return corrupt(folder_ + "/" + stored.name, fmt::format("'{}' must be a number", tensor.name));
    }
    const Range range{begin, begin + tensor.values.size()};
    if (is_padding) {
      patch(stored.part, range, tensor.values, state);
    } else {
      state.put(name_to_owner(stored.part), begin, tensor.values);
    }
  }
  return {};
}

Status Checkpoint::read_rows(const StoredFile& stored, const Wanted& wanted, TrainingState& state) const {
  const Result<std::string> content = read_whole(stored);
  if (!content.ok()) return content.status();
  const std::string path = folder_ + "/" + stored.name;
  const Result<SafetensorsFile> file = from_safetensors(*content);
  if (!file.ok()) return file.status().in(path);
  std::size_t table = 0;
  const char* end = stored.part.data() + stored.part.size();
  const bool is_table = std::from_chars(stored.part.data(), end, table).ptr == end && !stored.part.empty();
  if (!is_table || file->tensors.size() != 2 || file->tensors[1].shape.size() != 2 ||
      file->tensors[0].whole_numbers.size() != static_cast<std::size_t>(file->tensors[1].shape[0])) {
    return corrupt(path, "holds no keys and rows of a table");
  }
  const std::vector<std::int64_t>& keys = file->tensors[0].whole_numbers;
  RowsState& rows = state.rows[table];
  rows.row_floats = static_cast<std::size_t>(file->tensors[1].shape[1]);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] < 0 || keys[i] > UINT32_MAX) return corrupt(path, fmt::format("{} is no key of a row", keys[i]));
    const auto key = static_cast<RowKey>(keys[i]);
    if (wanted.row && !wanted.row(table, key)) continue;
    const auto row = file->tensors[1].values.begin() + static_cast<std::ptrdiff_t>(i * rows.row_floats);
    rows.keys.push_back(key);
    rows.values.insert(rows.values.end(), row, row + static_cast<std::ptrdiff_t>(rows.row_floats));
  }
  return {};
}

// A worker goes on from what it has written itself, and, unless that is all it wants, from what the chief has written
// for all; shards from what all of them have.
void Checkpoint::read_counts(const Wanted& wanted, TrainingState& state) const {
  const bool of_worker = wanted.worker >= 0;
  const auto is_wanted = [&](const StoredPart& part) {
    const bool by_worker = part.writer.starts_with("worker-");
    if (!of_worker) return !by_worker;
    if (part.writer == worker_name(wanted.worker)) return true;
    return by_worker && !wanted.alone && std::ranges::count(part.files, state_part::kWeights, &StoredFile::part) > 0;
  };
  bool is_first = true;
  state.step = manifest_.step;
  for (const StoredPart& part : manifest_.parts) {
    if (!is_wanted(part)) continue;
    state.step = is_first ? part.step : std::min(state.step, part.step);
    is_first = false;
    const bool is_own = of_worker && part.writer == worker_name(wanted.worker);
    for (const auto& [name, values] : part.counts) {
      if (is_own || !state.counts.contains(name)) state.counts[name] = values;
    }
  }
}

}  // namespace syncopate::experiments
