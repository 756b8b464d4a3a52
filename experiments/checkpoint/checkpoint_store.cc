#include "experiments/checkpoint/checkpoint_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "common/os/whole_file.h"
#include "common/text/printable_text.h"
#include "experiments/checkpoint/data_file.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";
constexpr std::string_view kAttempt = ".part";
constexpr const char* kFolder = "checkpoints";
constexpr std::size_t kLongestPath = 4096;

struct Found {
  std::int64_t step = 0;
  std::int64_t membership_epoch = 0;  // attempts only
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
  if (found.complete) return found;
  if (!name.ends_with(kAttempt) || *rest != '.') return std::nullopt;
  std::from_chars(rest + 1, end, found.membership_epoch);
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

// Removes the manifest first: from then on this is not a checkpoint, even if we are interrupted.
void remove_checkpoint(const std::string& path) {
  std::error_code ignored;
  fs::remove(path + "/" + kManifestFile, ignored);
  remove_all(path);
}

// Replaces atomically, if the file system can do that, so that there is a complete checkpoint at any moment.
bool put_in_place(const std::string& attempt, const std::string& place) {
  if (renameat2(AT_FDCWD, attempt.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0) {
    remove_checkpoint(attempt);
    return true;
  }
  if (errno != ENOENT) remove_checkpoint(place);
  return rename(attempt.c_str(), place.c_str()) == 0;
}

// If `unfit` is a failure, it is the result of the search, whatever other checkpoints there are.
Result<Checkpoint> open_whole(const std::string& folder, const StateForms& forms,
                              const std::function<Status(const Manifest&)>& check, const CheckpointKey* key,
                              Status& unfit) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder, {.key = key});
  if (checkpoint.status().code() == Code::kInvalidArgument) unfit = checkpoint.status();
  if (!checkpoint.ok()) return checkpoint;
  if (check) unfit = check(checkpoint->manifest());
  if (!unfit.ok()) return unfit;
  if (!is_finite(checkpoint->manifest())) {
    return Status::data_loss("holds values that are NaN or infinite, from which nothing can be learnt");
  }
  SYNCOPATE_RETURN_IF_ERROR(checkpoint->verify(forms));
  return checkpoint;
}

bool has_finite_values(const std::string& path) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(path);
  return checkpoint.ok() && is_finite(checkpoint->manifest());
}

// Returns the folders to look at, newest first; only one if `folder` is itself a checkpoint.
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

std::string attempt_name(std::int64_t step, std::int64_t membership_epoch) {
  return fmt::format("{}.{}{}", checkpoint_name(step), membership_epoch, kAttempt);
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> steps;
  for (const Found& found : all_in(folder_)) {
    if (found.complete) steps.push_back(found.step);
  }
  return steps;
}

Status CheckpointStore::complete(const Manifest& manifest, std::int64_t membership_epoch, const CheckpointKey* key) {
  if (key != nullptr && !has_digests(manifest)) return Status::internal("a part has been written without digests");
  const std::string attempt = folder_ + "/" + attempt_name(manifest.step, membership_epoch);
  SYNCOPATE_RETURN_IF_ERROR(sync_folder(attempt));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(attempt + "/" + kManifestFile, to_text(manifest, key)));
  // An earlier membership epoch may have reached the same step. The new checkpoint is as good, and belongs to this run.
  if (!put_in_place(attempt, path_of(manifest.step))) {
    return Status::resource_exhausted(fmt::format("{}: cannot be renamed: {}", attempt, std::strerror(errno)));
  }
  for (const std::int64_t step : steps()) {
    if (step > manifest.step) abandoned_.insert(step);
  }
  abandoned_.erase(manifest.step);
  return sync_folder(folder_);
}

void CheckpointStore::give_up(std::int64_t step, std::int64_t membership_epoch) {
  remove_all(folder_ + "/" + attempt_name(step, membership_epoch));
}

void CheckpointStore::remove_attempts() {
  for (const Found& found : all_in(folder_)) {
    if (!found.complete) remove_all(found.path);
  }
}

void CheckpointStore::tidy(std::int64_t step, std::int64_t membership_epoch, int keep) {
  int kept = 0;
  bool has_finite = false;
  for (const Found& found : all_in(folder_)) {
    if (!found.complete) {
      if (found.step <= step && found.membership_epoch <= membership_epoch) remove_all(found.path);
    } else if (abandoned_.contains(found.step) || (++kept > keep && has_finite)) {
      remove_checkpoint(found.path);
    } else if (const bool is_good = has_finite_values(found.path); is_good || kept <= keep) {
      has_finite = has_finite || is_good;
    } else {
      remove_checkpoint(found.path);
    }
  }
  abandoned_.clear();
}

std::optional<std::string> CheckpointStore::newest_finite() const {
  for (const Found& found : all_in(folder_)) {
    if (found.complete && has_finite_values(found.path)) return found.path;
  }
  return std::nullopt;
}

Result<FoundCheckpoint> newest_checkpoint(const std::string& folder, const StateForms& forms,
                                          const std::function<Status(const Manifest&)>& check,
                                          const CheckpointKey* key) {
  std::vector<std::string> passed_over;
  for (const std::string& path : candidates(folder)) {
    Status unfit;
    Result<Checkpoint> checkpoint = open_whole(path, forms, check, key, unfit);
    if (!unfit.ok()) return unfit;
    if (checkpoint.ok()) return FoundCheckpoint{std::move(*checkpoint), std::move(passed_over)};
    passed_over.push_back(
        fmt::format("checkpoint {} is passed over: {}", printable(path, kLongestPath), checkpoint.status().message()));
  }
  if (passed_over.empty()) return Status::not_found(fmt::format("{}: holds no checkpoint", folder));
  return Status::data_loss(fmt::format("no checkpoint can be gone on from: {}", fmt::join(passed_over, "; ")));
}

}  // namespace syncopate::experiments
