#include "experiments/checkpoint/checkpoint_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "common/whole_file.h"
#include "experiments/checkpoint/data_file.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";
constexpr std::string_view kAttempt = ".part";
constexpr const char* kFolder = "checkpoints";

struct Found {
  std::int64_t step = 0;
  bool complete = false;
  std::string path;
};

std::optional<Found> found_at(const fs::path& path) {
  const std::string name = path.filename();
  if (!name.starts_with(kStep)) return std::nullopt;
  Found found{.path = path};
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kStep.size(), end, found.step);
  if (error != std::errc() || found.step < 0) return std::nullopt;
  found.complete = rest == end;
  if (!found.complete && !name.ends_with(kAttempt)) return std::nullopt;
  return found;
}

std::vector<Found> all_in(const std::string& folder) {
  std::vector<Found> all;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (const std::optional<Found> found = found_at(entry->path())) all.push_back(*found);
  }
  std::ranges::sort(all, std::greater(), &Found::step);
  return all;
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// The manifest goes first: from then on it is no checkpoint, whenever we are interrupted.
void remove_checkpoint(const std::string& path) {
  std::error_code ignored;
  fs::remove(path + "/" + kManifestFile, ignored);
  remove_all(path);
}

Result<Checkpoint> open_whole(const std::string& folder, const StateForms& forms,
                              const std::function<Status(const Manifest&)>& check, Status& unfit) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint.ok()) return checkpoint;
  if (check) unfit = check(checkpoint->manifest());
  if (!unfit.ok()) return unfit;
  if (Status status = checkpoint->verify(forms); !status.ok()) return status;
  return checkpoint;
}

// The folders to look at, newest first: one, where `folder` is a checkpoint itself.
std::vector<std::string> candidates(const std::string& folder) {
  std::error_code ignored;
  if (fs::exists(folder + "/" + kManifestFile, ignored)) return {folder};
  std::vector<std::string> paths;
  for (const std::string& place : {folder + "/" + kFolder, folder}) {
    for (const Found& found : all_in(place)) {
      if (found.complete) paths.push_back(found.path);
    }
    if (!paths.empty()) break;
  }
  return paths;
}

}  // namespace

std::string attempt_name(std::int64_t step, std::int64_t generation) {
  return fmt::format("{}.{}{}", checkpoint_name(step), generation, kAttempt);
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> steps;
  for (const Found& found : all_in(folder_)) {
    if (found.complete) steps.push_back(found.step);
  }
  return steps;
}

Status CheckpointStore::complete(const Manifest& manifest, std::int64_t generation, int keep) {
  const std::string attempt = folder_ + "/" + attempt_name(manifest.step, generation);
  SYNCOPATE_RETURN_IF_ERROR(sync_folder(attempt));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(attempt + "/" + kManifestFile, to_text(manifest)));
  // An earlier generation may have come as far: what is written now is as good, and this run's.
  remove_checkpoint(path_of(manifest.step));
  std::error_code error;
  fs::rename(attempt, path_of(manifest.step), error);
  if (error) {
    return {Code::kResourceExhausted, fmt::format("{}: cannot be renamed: {}", attempt, error.message())};
  }
  SYNCOPATE_RETURN_IF_ERROR(sync_folder(folder_));
  remove_old(keep);
  remove_attempts(manifest.step);
  return {};
}

void CheckpointStore::give_up(std::int64_t step, std::int64_t generation) {
  remove_all(folder_ + "/" + attempt_name(step, generation));
}

void CheckpointStore::remove_old(int keep) {
  const std::vector<std::int64_t> there = steps();
  for (std::size_t i = static_cast<std::size_t>(keep); i < there.size(); ++i) remove_checkpoint(path_of(there[i]));
}

void CheckpointStore::remove_attempts(std::int64_t up_to_step) {
  for (const Found& found : all_in(folder_)) {
    if (!found.complete && found.step <= up_to_step) remove_all(found.path);
  }
}

Result<FoundCheckpoint> newest_checkpoint(const std::string& folder, const StateForms& forms,
                                          const std::function<Status(const Manifest&)>& check) {
  std::vector<std::string> passed_over;
  for (const std::string& path : candidates(folder)) {
    Status unfit;
    Result<Checkpoint> checkpoint = open_whole(path, forms, check, unfit);
    if (!unfit.ok()) return unfit;
    if (checkpoint.ok()) return FoundCheckpoint{std::move(*checkpoint), std::move(passed_over)};
    passed_over.push_back(fmt::format("checkpoint {} is passed over: {}", path, checkpoint.status().message()));
  }
  if (passed_over.empty()) return Status(Code::kNotFound, fmt::format("{}: holds no checkpoint", folder));
  return Status(Code::kDataLoss, fmt::format("no checkpoint is whole: {}", fmt::join(passed_over, "; ")));
}

}  // namespace syncopate::experiments
