#include "common/step_fields.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <type_traits>

#include "common/figure_bits.h"

namespace syncopate {
namespace {

using Kind = StepField::Kind;

template <typename T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, double>) return Kind::kReal;
  if constexpr (std::is_same_v<T, TimePoint>) return Kind::kTime;
  return std::is_integral_v<T> ? Kind::kCount : Kind::kDuration;
}

template <auto member>
constexpr StepField field(StepField field) {
  field.kind = kind_of<std::remove_cvref_t<decltype(StepRecord().*member)>>();
  field.get = [](const StepRecord& record) { return bits_of(record.*member); };
  field.set = [](std::int64_t bits, StepRecord& record) { set_bits(bits, record.*member); };
  return field;
}

template <auto member>
constexpr StepField sync_field(StepField field) {
  field.kind = kind_of<std::remove_cvref_t<decltype(SyncStats().*member)>>();
  field.get = [](const StepRecord& record) { return bits_of(record.sync.*member); };
  field.set = [](std::int64_t bits, StepRecord& record) { set_bits(bits, record.sync.*member); };
  return field;
}

bool knows_cores(const StepRecord& record) { return record.core_wait.has_value(); }
bool has_waited(const StepRecord& record) { return record.sync.last_shard >= 0; }
bool is_scaled(const StepRecord& record) { return record.sync.loss_scale > 0; }
bool has_samples(const StepRecord& record) { return record.samples > 0; }
bool has_labels(const StepRecord& record) { return record.samples > 0 && !std::isnan(record.accuracy); }

constexpr StepField kFields[] = {
    field<&StepRecord::step>({.column = "step"}),
    field<&StepRecord::epoch>({.column = "epoch"}),
    field<&StepRecord::position>({.column = "position"}),
    field<&StepRecord::end>({.column = "end_s"}),
    field<&StepRecord::total>({.column = "total_us"}),
    field<&StepRecord::data>({.column = "data_us"}),
    field<&StepRecord::forward>({.column = "forward_us"}),
    field<&StepRecord::backward>({.column = "backward_us"}),
    field<&StepRecord::straggle>({.column = "straggle_us"}),
    sync_field<&SyncStats::exposed_wait>({.column = "exposed_wait_us"}),
    sync_field<&SyncStats::optimizer>({.column = "optimizer_us"}),
    sync_field<&SyncStats::communication>({.column = "communication_us"}),
    sync_field<&SyncStats::codec>({.column = "codec_us"}),
    sync_field<&SyncStats::copy>({.column = "copy_us"}),
    field<&StepRecord::launch>({.column = "launch_us"}),
    sync_field<&SyncStats::bytes_out>({.column = "bytes_out"}),
    sync_field<&SyncStats::bytes_in>({.column = "bytes_in"}),
    sync_field<&SyncStats::staleness_mean>({.column = "staleness_mean", .form = "{:.3f}"}),
    sync_field<&SyncStats::staleness_max>({.column = "staleness_max"}),
    sync_field<&SyncStats::dropped>({.column = "dropped", .form = "{:.4g}"}),
    sync_field<&SyncStats::loss_scale>({.column = "loss_scale", .is_later = true, .is_known = is_scaled}),
    sync_field<&SyncStats::skipped>({.column = "skipped", .is_later = true, .is_known = is_scaled}),
    field<&StepRecord::core_wait>({.column = "core_wait_us", .is_later = true, .is_known = knows_cores}),
    field<&StepRecord::compute_core_wait>(
        {.column = "compute_core_wait_us", .is_later = true, .is_known = knows_cores}),
    sync_field<&SyncStats::backward_codec>({.column = "backward_codec_us", .is_later = true}),
    sync_field<&SyncStats::last_shard>({.column = "last_shard", .is_later = true, .is_known = has_waited}),
    sync_field<&SyncStats::last_shard_alone>({.column = "last_shard_us", .is_later = true}),
    field<&StepRecord::samples>({.column = "samples"}),
    field<&StepRecord::accuracy>({.column = "accuracy", .is_later = true, .of_learning = true, .is_known = has_labels}),
    field<&StepRecord::loss>({.column = "loss", .of_learning = true, .is_known = has_samples}),
    sync_field<&SyncStats::forward_wait>({}),
    sync_field<&SyncStats::backward_wait>({}),
    sync_field<&SyncStats::pass_core_wait>({}),
};

// What is not in the table is nowhere: each field has 8 bytes in a record, and one that is optional 8 more.
static_assert(sizeof(StepRecord) == (std::size(kFields) + 1) * sizeof(std::int64_t));

constexpr double kMost = static_cast<double>(std::int64_t{1} << 53);

template <typename T>
std::optional<T> number_in(std::string_view cell) {
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc() && end == cell.data() + cell.size() ? std::optional(value) : std::nullopt;
}

// Returns the bits that a cell says; none if it does not.
std::optional<std::int64_t> bits_in(const StepField& field, std::string_view cell) {
  if (field.kind == Kind::kCount) {
    const auto count = number_in<std::int64_t>(cell);
    return count && *count >= 0 && static_cast<double>(*count) <= kMost ? count : std::nullopt;
  }
  const auto value = number_in<double>(cell);
  if (!value) return std::nullopt;
  if (field.kind == Kind::kReal) {
    const bool is_any = field.of_learning || std::abs(*value) <= kMost;  // the loss of a run that has diverged is none
    return is_any ? std::optional(std::bit_cast<std::int64_t>(*value)) : std::nullopt;
  }
  const double nanoseconds = *value * (field.kind == Kind::kTime ? 1e9 : 1e3);
  return std::abs(nanoseconds) <= kMost ? std::optional(std::llround(nanoseconds)) : std::nullopt;
}

}  // namespace

std::span<const StepField> step_fields() { return kFields; }

void append_cell(const StepField& field, const StepRecord& record, TimePoint origin, std::string& text) {
  if (field.is_known != nullptr && !field.is_known(record)) return;
  const std::int64_t bits = field.get(record);
  const auto end = std::back_inserter(text);
  switch (field.kind) {
    case Kind::kCount:
      fmt::format_to(end, "{}", bits);
      break;
    case Kind::kDuration:
      fmt::format_to(end, "{:.1f}", microseconds(Duration(bits)));
      break;
    case Kind::kTime:
      fmt::format_to(end, "{:.6f}", seconds(TimePoint(Duration(bits)) - origin));
      break;
    case Kind::kReal:
      fmt::format_to(end, fmt::runtime(field.form), std::bit_cast<double>(bits));
      break;
  }
}

bool read_cell(const StepField& field, std::string_view cell, StepRecord& record) {
  std::optional<std::int64_t> bits;
  if (!cell.empty()) {
    bits = bits_in(field, cell);
  } else if (field.is_known != nullptr) {
    if (field.kind != Kind::kReal) return true;  // as a record has it that knows nothing
    bits = std::bit_cast<std::int64_t>(std::numeric_limits<double>::quiet_NaN());
  }
  if (!bits) return false;
  field.set(*bits, record);
  return field.get(record) == *bits;  // a smaller number may not hold it
}

}  // namespace syncopate
