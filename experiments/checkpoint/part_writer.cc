#include "experiments/checkpoint/part_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/finite.h"
#include "common/os/whole_file.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/content_hash.h"
#include "experiments/checkpoint/data_file.h"
#include "experiments/checkpoint/safetensors.h"

namespace syncopate::experiments {
namespace {

bool is_written(const PartOptions& options, const std::string& name) {
  return options.share != Share::kOwnOnly || owner_of(name) >= 0;
}

bool writes_rows(const PartOptions& options) { return options.share != Share::kOwnOnly; }

class PartWriter {
 public:
  PartWriter(const PartOptions& options, const StateForms& forms, const TrainingState& state, std::stop_token stop)
      : options_(options), forms_(forms), state_(state), stop_(std::move(stop)) {}

  Result<StoredPart> write() {
    SYNCOPATE_RETURN_IF_ERROR(check_room(options_.folder, part_bytes(options_, state_)));
    part_.writer = options_.writer;
    part_.step = state_.step;
    part_.counts = {state_.counts.begin(), state_.counts.end()};
    for (const std::string& name : state_.names()) {
      if (!is_written(options_, name)) continue;
      if (options_.share == Share::kReplica && owner_of(name) < 0) {
        SYNCOPATE_RETURN_IF_ERROR(write_pieces(name, replica_part(name, options_.worker)));
        continue;
      }
      const ArenaForm* form = forms_.form_of(name);
      SYNCOPATE_RETURN_IF_ERROR(form != nullptr ? write_arena(name, *form) : write_pieces(name, name));
    }
    if (!writes_rows(options_)) return part_;
    for (const auto& [table, rows] : state_.rows) SYNCOPATE_RETURN_IF_ERROR(write_rows(table, rows));
    return part_;
  }

 private:
  std::string own_file(const std::string& name) const {
    return owner_of(name) >= 0 ? name + ".safetensors" : fmt::format("{}.{}.safetensors", name, options_.writer);
  }

  Status write_arena(const std::string& name, const ArenaForm& form) {
    StoredFile stored{.name = arena_file(name),
                      .kind = StoredKind::kArena,
                      .part = name,
                      .bytes = form.file_bytes(),
                      .sums = sums_of(form.header(), options_.digests),
                      .pieces = state_.pieces(name)};
    SYNCOPATE_ASSIGN_OR_RETURN(DataFile file, DataFile::make(options_.folder + "/" + stored.name, stored.bytes));
    SYNCOPATE_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(form.header())), 0));
    for (const Range& piece : stored.pieces) {
      const std::span<const float> values = state_.values(name, piece);
      for (const Range& block : blocks_of(piece)) {
        if (stop_.stop_requested()) return Status::cancelled("told to stop");
        ContentHash hash(options_.digests);
        for (const ArenaForm::Stretch& stretch : form.stretches(block)) {
          const auto part = values.subspan(stretch.range.begin - piece.begin, stretch.range.size());
          look_at(part);
          hash.add(std::as_bytes(part));
          SYNCOPATE_RETURN_IF_ERROR(file.write(std::as_bytes(part), stretch.offset));
        }
        stored.blocks.push_back({block, hash.sums()});
      }
    }
    part_.files.push_back(std::move(stored));
    SYNCOPATE_RETURN_IF_ERROR(file.sync());
    return write_padding(name, form);
  }

  Status write_padding(const std::string& name, const ArenaForm& form) {
    std::vector<TensorForm> tensors;
    std::vector<std::span<const std::byte>> values;
    for (const Range& piece : state_.pieces(name)) {
      const std::span<const float> all = state_.values(name, piece);
      for (const Range& gap : form.gaps(piece)) {
        const std::span<const float> padding = all.subspan(gap.begin - piece.begin, gap.size());
        if (std::ranges::all_of(padding, [](float value) { return value == 0; })) continue;
        tensors.push_back(form_of(gap));
        values.push_back(std::as_bytes(padding));
      }
    }
    if (tensors.empty()) return {};
    return write_whole({.name = own_file(name + ".padding"), .kind = StoredKind::kPieces, .part = name}, tensors,
                       values);
  }

  Status write_pieces(const std::string& name, const std::string& part) {
    std::vector<TensorForm> tensors;
    std::vector<std::span<const std::byte>> values;
    for (const Range& piece : state_.pieces(name)) {
      tensors.push_back(form_of(piece));
      look_at(state_.values(name, piece));
      values.push_back(std::as_bytes(state_.values(name, piece)));
    }
    return write_whole({.name = own_file(part), .kind = StoredKind::kPieces, .part = part}, tensors, values);
  }

  void look_at(std::span<const float> values) { part_.finite = part_.finite && all_finite(values); }

  static TensorForm form_of(Range piece) {
    return {fmt::format("{}", piece.begin), {static_cast<std::int64_t>(piece.size())}};
  }

  Status write_rows(std::size_t table, const RowsState& rows) {
    if (rows.row_floats == 0) return {};
    const std::string& name = forms_.layout().tensors()[table].name;
    const auto count = static_cast<std::int64_t>(rows.keys.size());
    look_at(rows.values);
    const std::vector<std::int64_t> keys(rows.keys.begin(), rows.keys.end());
    return write_whole({.name = own_file("rows." + name), .kind = StoredKind::kRows, .part = fmt::format("{}", table)},
                       {{name + ".rows", {count}, true}, {name, {count, static_cast<std::int64_t>(rows.row_floats)}}},
                       {std::as_bytes(std::span(keys)), std::as_bytes(std::span(rows.values))});
  }

  Status write_whole(StoredFile stored, const std::vector<TensorForm>& tensors,
                     const std::vector<std::span<const std::byte>>& values) {
    const std::string header = safetensors_header(tensors, {});
    stored.bytes = header.size();
    for (const auto& bytes : values) stored.bytes += bytes.size();
    SYNCOPATE_ASSIGN_OR_RETURN(DataFile file, DataFile::make(options_.folder + "/" + stored.name, stored.bytes));
    ContentHash hash(options_.digests);
    std::uint64_t offset = 0;
    const auto write = [&](std::span<const std::byte> bytes) {
      hash.add(bytes);
      const std::uint64_t at = offset;
      offset += bytes.size();
      return stop_.stop_requested() ? Status::cancelled("told to stop") : file.write(bytes, at);
    };
    SYNCOPATE_RETURN_IF_ERROR(write(std::as_bytes(std::span(header))));
    for (const auto& bytes : values) SYNCOPATE_RETURN_IF_ERROR(write(bytes));
    stored.sums = hash.sums();
    part_.files.push_back(std::move(stored));
    return file.sync();
  }

  const PartOptions& options_;
  const StateForms& forms_;
  const TrainingState& state_;
  const std::stop_token stop_;
  StoredPart part_;
};

}  // namespace

Result<StoredPart> write_part(const PartOptions& options, const StateForms& forms, const TrainingState& state,
                              const std::stop_token& stop) {
  return PartWriter(options, forms, state, stop).write();
}

std::uint64_t part_bytes(const PartOptions& options, const TrainingState& state) {
  std::uint64_t bytes = 0;
  for (const std::string& name : state.names()) {
    if (!is_written(options, name)) continue;
    for (const Range& piece : state.pieces(name)) bytes += piece.size() * sizeof(float);
  }
  if (!writes_rows(options)) return bytes;
  for (const auto& [table, rows] : state.rows) {
    bytes += rows.values.size() * sizeof(float) + rows.keys.size() * sizeof(std::int64_t);
  }
  return bytes;
}

void deliver_part(PartOptions options, const StateForms& forms, const TrainingState& state, const std::stop_token& stop,
                  CheckpointReport report, const ReportCheckpoint& tell) {
  options.folder += "/" + attempt_name(report.step, report.membership_epoch);
  if (const Status made = make_folder(options.folder); !made.ok()) return tell_failure(std::move(report), made, tell);
  Result<StoredPart> part = write_part(options, forms, state, stop);
  if (part.status().code() == Code::kCancelled) return;
  if (!part.ok()) return tell_failure(std::move(report), part.status(), tell);
  report.part = std::move(*part);
  tell(report);
}

void tell_failure(CheckpointReport report, const Status& status, const ReportCheckpoint& tell) {
  report.kind = CheckpointReport::Kind::kFailed;
  report.reason = status.message();
  tell(report);
}

}  // namespace syncopate::experiments
