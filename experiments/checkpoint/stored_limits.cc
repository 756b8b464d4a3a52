#include "experiments/checkpoint/stored_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "common/text/printable_text.h"
#include "common/training_state.h"

namespace syncopate::experiments {
namespace {

// A row's weights, followed by the optimizer's state for them.
constexpr std::uint64_t kMostMemories = 1 + std::size(state_part::kOptimizer);

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

// Values without a layout belong to elements of an arena, or are fewer than its elements.
std::uint64_t most_elements(const StateForms& forms) { return std::max(forms.layout().size(), forms.local_size()); }

Status check_size(const StoredFile& file, std::uint64_t most_values) {
  const std::uint64_t most = kMostStoredHeader + most_values;
  if (file.bytes <= most) return {};
  return Status::data_loss(fmt::format("has {} bytes, and of this model it can have {} at most", file.bytes, most));
}

Status check_arena(const StoredFile& file, const ArenaForm* form) {
  if (form == nullptr) return Status::data_loss(fmt::format("'{}' has no layout", file.part));
  if (form->file_bytes() != file.bytes) return Status::data_loss("is of another layout than this model's");
  if (file.name != arena_file(file.part)) return Status::data_loss(fmt::format("is no file of '{}'", file.part));
  for (const Range& piece : file.pieces) {
    if (piece.begin >= form->arena().begin && piece.end <= form->arena().end) continue;
    return Status::data_loss(fmt::format("elements {} to {} are not the model's", piece.begin, piece.end));
  }
  return {};
}

}  // namespace

Status check_stored(const StoredFile& file, const StateForms& forms) {
  if (file.kind == StoredKind::kArena) return check_arena(file, forms.form_of(file.part));
  if (file.kind == StoredKind::kPieces) return check_size(file, most_elements(forms) * sizeof(float));
  const std::optional<std::size_t> table = table_of(file, forms);
  if (!table) return Status::data_loss(fmt::format("'{}' is no table of this model", file.part));
  const TensorSpec& spec = forms.layout().tables()[*table];
  return check_size(file, spec.rows() * (sizeof(std::int64_t) + kMostMemories * spec.width() * sizeof(float)));
}

Result<Range> piece_of(const PlacedTensor& tensor, const StateForms& forms) {
  const std::optional<std::uint64_t> begin = number_in(tensor.name);
  if (!begin) return Status::data_loss(fmt::format("'{}' must be a number", printable(tensor.name)));
  if (tensor.is_whole) return Status::data_loss(fmt::format("'{}' must be of F32", tensor.name));
  const std::uint64_t most = most_elements(forms), count = tensor.elements();
  if (*begin <= most && count <= most - *begin) return Range{*begin, *begin + count};
  return Status::data_loss(
      fmt::format("{} elements from {} on are not the model's, which has {}", count, *begin, most));
}

std::optional<std::size_t> table_of(const StoredFile& stored, const StateForms& forms) {
  const std::optional<std::uint64_t> table = number_in(stored.part);
  if (!table || *table >= forms.layout().tables().size()) return std::nullopt;
  return static_cast<std::size_t>(*table);
}

Result<StoredRows> rows_of(const StoredFile& stored, const std::vector<PlacedTensor>& tensors,
                           const StateForms& forms) {
  const std::optional<std::size_t> table = table_of(stored, forms);
  const auto keys = std::ranges::find(tensors, true, &PlacedTensor::is_whole);
  const auto values = std::ranges::find(tensors, false, &PlacedTensor::is_whole);
  if (!table || tensors.size() != 2 || keys == tensors.end() || values == tensors.end() || keys->shape.size() != 1 ||
      values->shape.size() != 2 || keys->shape[0] != values->shape[0] || keys->offset > values->offset) {
    return Status::data_loss("holds no keys and rows of a table");
  }
  const TensorSpec& spec = forms.layout().tables()[*table];
  const auto count = static_cast<std::uint64_t>(keys->shape[0]);
  const auto row_floats = static_cast<std::uint64_t>(values->shape[1]);
  if (count > spec.rows())
    return Status::data_loss(fmt::format("{} rows of '{}', which has {}", count, spec.name, spec.rows()));
  if (row_floats == 0 || row_floats % spec.width() != 0 || row_floats / spec.width() > kMostMemories) {
    return Status::data_loss(fmt::format("rows of {} floats of '{}', whose rows have {}, {} times at most", row_floats,
                                         spec.name, spec.width(), kMostMemories));
  }
  return StoredRows{*table, count, row_floats};
}

}  // namespace syncopate::experiments
