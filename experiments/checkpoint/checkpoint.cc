#include "experiments/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <optional>
#include <stdexcept>

#include "common/os/regular_file.h"
#include "experiments/checkpoint/stored_file_reading.h"

namespace syncopate::experiments {
namespace {

std::string worker_name(int rank) { return fmt::format("worker-{}", rank); }

bool is_for(const StoredPart& part, const CheckpointSelection& selection) {
  return part.writer == worker_name(selection.worker) || !selection.alone;
}

// Runs before anything in the text is used.
Status check_seal(const SealedManifest& sealed, const CheckpointKey& key) {
  if (!sealed.mac) {
    return Status::invalid_argument(
        "is not authenticated, and --checkpoint-key-file asks for that: anybody may have written it; leave the key "
        "out only if you know where it comes from");
  }
  if (key.is_mac_of(sealed.body, *sealed.mac)) return {};
  return Status::invalid_argument(
      "is authenticated by another key than that of --checkpoint-key-file, or was changed since");
}

// Memory is allocated for what a file holds. If it runs out, the error names the file.
template <typename Read>
Status within_memory(const std::string& path, std::uint64_t bytes, Read&& read) {
  const auto exhausted = [&] {
    return Status::resource_exhausted(fmt::format("{}: there is no memory for its {} bytes", path, bytes));
  };
  try {
    return read();
  } catch (const std::bad_alloc&) {
    return exhausted();
  } catch (const std::length_error&) {
    return exhausted();
  }
}

}  // namespace

Result<Checkpoint> Checkpoint::open(std::string folder, const Expected& expected) {
  const std::string path = folder + "/" + kManifestFile;
  const Result<std::string> text = read_regular_file(path, kMostManifestBytes, Links::kRefused);
  if (!text.ok()) {
    const bool is_missing = text.status().code() == Code::kNotFound;
    return Status(is_missing ? Code::kDataLoss : text.status().code(), text.status().message());
  }
  const std::string digest = digest_text(*sums_of(*text, Digests::kYes).digest);
  if (!expected.digest.empty() && expected.digest != digest) {
    return Status::data_loss("is another than when the run began: somebody has changed it").in(path);
  }
  const Result<SealedManifest> sealed = open_seal(*text);
  if (!sealed.ok()) return sealed.status().in(path);
  if (expected.key != nullptr) {
    if (const Status status = check_seal(*sealed, *expected.key); !status.ok()) return status.in(path);
  }
  Result<Manifest> manifest = parse_manifest_body(sealed->body);
  if (!manifest.ok()) return manifest.status().in(path);
  if (sealed->mac && !has_digests(*manifest)) {
    return Status::data_loss("is authenticated, and there is no digest of all that it names").in(path);
  }
  return Checkpoint(std::move(folder), std::move(*manifest), sealed->mac.has_value(), digest);
}

Status Checkpoint::verify(const StateForms& forms) const {
  std::vector<StoredBlock> weights;
  for (const StoredPart& part : manifest_.parts) {
    for (const StoredFile& file : part.files) {
      SYNCOPATE_RETURN_IF_ERROR(
          within_memory(path_of(file), file.bytes, [&] { return verify_stored(path_of(file), file, forms); }));
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
  return Status::data_loss(fmt::format("weights are there up to element {} of {}", reached, forms.layout().dense().end))
      .in(folder_);
}

Status Checkpoint::read(const StateForms& forms, const CheckpointSelection& selection, TrainingState& state) const {
  read_counts(selection, state);
  for (const StoredPart& part : manifest_.parts) {
    if (!is_for(part, selection)) continue;
    for (const StoredFile& file : part.files) {
      if (const int owner = owner_of(file.part); owner >= 0 && owner != selection.worker) continue;
      const std::string path = path_of(file);
      SYNCOPATE_RETURN_IF_ERROR(within_memory(path, file.bytes, [&] {
        switch (file.kind) {
          case StoredKind::kArena:
            return read_arena(path, file, forms, selection.ranges ? &*selection.ranges : nullptr, state);
          case StoredKind::kPieces:
            return read_pieces(path, file, forms, state);
          case StoredKind::kRows:
            return read_rows(path, file, forms, selection.row, state);
        }
        return Status();
      }));
    }
  }
  return within_memory(folder_, state.bytes(), [&] {
    for (auto& [table, rows] : state.rows) sort_rows(rows);
    return Status();
  });
}

// A worker goes on from the counts that it has written itself and, unless it wants only those, from the ones that the
// chief has written for all; shards go on from those of all shards.
void Checkpoint::read_counts(const CheckpointSelection& selection, TrainingState& state) const {
  const bool of_worker = selection.worker >= 0;
  const auto is_wanted = [&](const StoredPart& part) {
    const bool by_worker = part.writer.starts_with("worker-");
    if (!of_worker) return !by_worker;
    if (part.writer == worker_name(selection.worker)) return true;
    return by_worker && !selection.alone && std::ranges::count(part.files, state_part::kWeights, &StoredFile::part) > 0;
  };
  bool is_first = true;
  state.step = manifest_.step;
  for (const StoredPart& part : manifest_.parts) {
    if (!is_wanted(part)) continue;
    state.step = is_first ? part.step : std::min(state.step, part.step);
    is_first = false;
    const bool is_own = of_worker && part.writer == worker_name(selection.worker);
    for (const auto& [name, values] : part.counts) {
      if (is_own || !state.counts.contains(name)) state.counts[name] = values;
    }
  }
}

}  // namespace syncopate::experiments
