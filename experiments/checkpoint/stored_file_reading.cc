#include "experiments/checkpoint/stored_file_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "experiments/checkpoint/data_file.h"
#include "experiments/checkpoint/stored_limits.h"
#include "experiments/checkpoint/stored_reader.h"

namespace syncopate::experiments {
namespace {

bool have_common(Range one, Range other) { return one.begin < other.end && other.begin < one.end; }

// Padding is not in the file and becomes zero.
Status read_block(const DataFile& file, const ArenaForm& form, const StoredBlock& block, std::span<float> values) {
  std::ranges::fill(values, 0.0f);
  ContentHash hash(block.sums.digests());
  for (const ArenaForm::Stretch& stretch : form.stretches(block.range)) {
    const auto bytes =
        std::as_writable_bytes(values.subspan(stretch.range.begin - block.range.begin, stretch.range.size()));
    SYNCOPATE_RETURN_IF_ERROR(file.read(bytes, stretch.offset));
    hash.add(bytes);
  }
  return check_sums(hash.sums(), block.sums, file.path(),
                    fmt::format("elements {} to {} are", block.range.begin, block.range.end));
}

// Opens the file after its entry in the manifest was checked against the model.
Result<DataFile> open_arena(const std::string& path, const StoredFile& stored, const StateForms& forms) {
  if (const Status fits = check_stored(stored, forms); !fits.ok()) return fits.in(path);
  Result<DataFile> file = DataFile::open(path);
  if (!file.ok() || file->bytes() == stored.bytes) return file;
  return Status::data_loss(fmt::format("{} bytes instead of {}", file->bytes(), stored.bytes)).in(path);
}

Result<StoredReader> open_whole(const std::string& path, const StoredFile& stored, const StateForms& forms) {
  if (const Status fits = check_stored(stored, forms); !fits.ok()) return fits.in(path);
  return StoredReader::open(path, stored);
}

Status verify_arena(const std::string& path, const StoredFile& stored, const StateForms& forms) {
  SYNCOPATE_ASSIGN_OR_RETURN(const DataFile file, open_arena(path, stored, forms));
  const ArenaForm& form = *forms.form_of(stored.part);
  std::string header(form.header().size(), '\0');
  SYNCOPATE_RETURN_IF_ERROR(file.read(std::as_writable_bytes(std::span(header)), 0));
  if (header != form.header()) return Status::data_loss("the header is not what was written").in(path);
  SYNCOPATE_RETURN_IF_ERROR(check_sums(sums_of(header, stored.sums.digests()), stored.sums, path, "the header is"));
  std::vector<float> values;
  for (const StoredBlock& block : stored.blocks) {
    values.resize(block.range.size());
    SYNCOPATE_RETURN_IF_ERROR(read_block(file, form, block, values));
  }
  return {};
}

Status verify_whole(const std::string& path, const StoredFile& stored, const StateForms& forms) {
  SYNCOPATE_ASSIGN_OR_RETURN(StoredReader reader, open_whole(path, stored, forms));
  if (stored.kind == StoredKind::kRows) {
    if (const auto rows = rows_of(stored, reader.tensors(), forms); !rows.ok()) return rows.status().in(path);
    return reader.finish();
  }
  for (const PlacedTensor& tensor : reader.tensors()) {
    if (const Result<Range> piece = piece_of(tensor, forms); !piece.ok()) return piece.status().in(path);
  }
  return reader.finish();
}

// Reads the keys of `count` rows. They must ascend, and each must be one of the table's.
Result<std::vector<RowKey>> read_keys(StoredReader& reader, std::uint64_t count, const TensorSpec& table) {
  std::vector<std::int64_t> numbers(count);
  SYNCOPATE_RETURN_IF_ERROR(reader.next(std::as_writable_bytes(std::span(numbers))));
  std::vector<RowKey> keys;
  keys.reserve(numbers.size());
  for (const std::int64_t number : numbers) {
    if (number < 0 || static_cast<std::uint64_t>(number) >= table.rows()) {
      return Status::data_loss(fmt::format("{} is no row of '{}', which has {}", number, table.name, table.rows()))
          .in(reader.path());
    }
    if (!keys.empty() && number <= static_cast<std::int64_t>(keys.back())) {
      return Status::data_loss(fmt::format("row {} stands behind row {}", number, keys.back())).in(reader.path());
    }
    keys.push_back(static_cast<RowKey>(number));
  }
  return keys;
}

// Reads the values of `keys`, some rows at a time, and stores the wanted ones in the state.
Status read_values(StoredReader& reader, std::size_t table, const std::vector<RowKey>& keys,
                   const IsWantedRow& is_wanted, RowsState& rows) {
  constexpr std::size_t kFloatsAtOnce = (std::size_t{1} << 20) / sizeof(float);
  const std::size_t at_once = std::max<std::size_t>(1, kFloatsAtOnce / rows.row_floats);
  std::vector<float> room(std::min(at_once, keys.size()) * rows.row_floats);
  for (std::size_t begin = 0; begin < keys.size(); begin += at_once) {
    const std::span<const RowKey> some = std::span(keys).subspan(begin, std::min(at_once, keys.size() - begin));
    const std::span<float> values = std::span(room).first(some.size() * rows.row_floats);
    SYNCOPATE_RETURN_IF_ERROR(reader.next(std::as_writable_bytes(values)));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (is_wanted && !is_wanted(table, some[i])) continue;
      const std::span<const float> row = values.subspan(i * rows.row_floats, rows.row_floats);
      rows.keys.push_back(some[i]);
      rows.values.insert(rows.values.end(), row.begin(), row.end());
    }
  }
  return {};
}

}  // namespace

Status verify_stored(const std::string& path, const StoredFile& stored, const StateForms& forms) {
  return stored.kind == StoredKind::kArena ? verify_arena(path, stored, forms) : verify_whole(path, stored, forms);
}

Status read_arena(const std::string& path, const StoredFile& stored, const StateForms& forms,
                  const std::vector<Range>* ranges, TrainingState& state) {
  SYNCOPATE_ASSIGN_OR_RETURN(const DataFile file, open_arena(path, stored, forms));
  const ArenaForm& form = *forms.form_of(stored.part);
  const bool is_local = &form != forms.form_of(state_part::kWeights);
  const auto is_wanted = [&](Range piece) {
    return is_local || ranges == nullptr ||
           std::ranges::any_of(*ranges, [&](Range range) { return have_common(piece, range); });
  };
  auto block = stored.blocks.begin();
  for (const Range& piece : stored.pieces) {
    const bool wanted = is_wanted(piece);
    if (wanted && state.overlaps(stored.part, piece)) {
      return Status::data_loss(fmt::format("elements {} to {} are there twice", piece.begin, piece.end)).in(path);
    }
    const std::span<float> values = wanted ? state.piece(stored.part, piece) : std::span<float>();
    for (; block != stored.blocks.end() && block->range.end <= piece.end; ++block) {
      if (values.empty()) continue;
      const Range within{block->range.begin - piece.begin, block->range.end - piece.begin};
      SYNCOPATE_RETURN_IF_ERROR(read_block(file, form, *block, slice(values, within)));
    }
  }
  return {};
}

Status read_pieces(const std::string& path, const StoredFile& stored, const StateForms& forms, TrainingState& state) {
  SYNCOPATE_ASSIGN_OR_RETURN(StoredReader reader, open_whole(path, stored, forms));
  const ArenaForm* const form = forms.form_of(stored.part);
  const std::string name = name_to_owner(stored.part);
  std::vector<float> unwanted;
  for (const PlacedTensor& tensor : reader.tensors()) {
    const Result<Range> range = piece_of(tensor, forms);
    if (!range.ok()) return range.status().in(path);
    if (range->size() == 0) continue;
    std::span<float> values;
    if (form != nullptr) {
      if (form->gaps(*range) != std::vector{*range}) {
        return Status::data_loss(fmt::format("elements {} to {} are no padding", range->begin, range->end)).in(path);
      }
      unwanted.resize(range->size());
      values = state.within(stored.part, *range);
      if (values.empty()) values = unwanted;
    } else if (state.overlaps(name, *range)) {
      return Status::data_loss(fmt::format("elements {} to {} are there twice", range->begin, range->end)).in(path);
    } else {
      values = state.piece(name, *range);
    }
    SYNCOPATE_RETURN_IF_ERROR(reader.next(std::as_writable_bytes(values)));
  }
  return reader.finish();
}

Status read_rows(const std::string& path, const StoredFile& stored, const StateForms& forms,
                 const IsWantedRow& is_wanted, TrainingState& state) {
  SYNCOPATE_ASSIGN_OR_RETURN(StoredReader reader, open_whole(path, stored, forms));
  const Result<StoredRows> found = rows_of(stored, reader.tensors(), forms);
  if (!found.ok()) return found.status().in(path);
  const TensorSpec& table = forms.layout().tables()[found->table];
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<RowKey> keys, read_keys(reader, found->count, table));
  RowsState& rows = state.rows[found->table];
  if (rows.row_floats != 0 && rows.row_floats != found->row_floats) {
    return Status::data_loss(
               fmt::format("rows of {} floats, and of {} in another file", found->row_floats, rows.row_floats))
        .in(path);
  }
  rows.row_floats = found->row_floats;
  SYNCOPATE_RETURN_IF_ERROR(read_values(reader, found->table, keys, is_wanted, rows));
  if (rows.keys.size() > table.rows()) {
    return Status::data_loss(fmt::format("more rows of '{}' than the {} that it has", table.name, table.rows()))
        .in(path);
  }
  return reader.finish();
}

void sort_rows(RowsState& rows) {
  if (std::ranges::is_sorted(rows.keys)) return;
  std::vector<std::size_t> order(rows.keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t row) { return rows.keys[row]; });
  RowsState sorted{.row_floats = rows.row_floats, .keys = {}, .values = {}};
  for (const std::size_t row : order) {
    if (!sorted.keys.empty() && sorted.keys.back() == rows.keys[row]) continue;
    sorted.keys.push_back(rows.keys[row]);
    const auto begin = rows.values.begin() + static_cast<std::ptrdiff_t>(row * rows.row_floats);
    sorted.values.insert(sorted.values.end(), begin, begin + static_cast<std::ptrdiff_t>(rows.row_floats));
  }
  rows = std::move(sorted);
}

}  // namespace syncopate::experiments
