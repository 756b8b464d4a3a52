#include "experiments/checkpoint/stored_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/checkpoint/stored_limits.h"

namespace syncopate::experiments {
namespace {

std::span<std::byte> bytes_of(std::string& text) { return std::as_writable_bytes(std::span(text)); }

}  // namespace

Status check_sums(const ContentSums& found, const ContentSums& written, const std::string& path,
                  const std::string& what) {
  if (found.checksum != written.checksum) return Status::data_loss(what + " not what was written").in(path);
  if (found.digest == written.digest) return {};
  return Status::data_loss(what + " not what was written: somebody has changed it, and mended the checksum").in(path);
}

Result<StoredReader> StoredReader::open(const std::string& path, const StoredFile& stored) {
  SYNCOPATE_ASSIGN_OR_RETURN(DataFile file, DataFile::open(path));
  if (file.bytes() != stored.bytes) {
    return Status::data_loss(fmt::format("{} bytes instead of {}", file.bytes(), stored.bytes)).in(path);
  }
  StoredReader reader(std::move(file), stored);
  SYNCOPATE_RETURN_IF_ERROR(reader.read_header());
  return reader;
}

Status StoredReader::read_header() {
  std::string length(std::min<std::uint64_t>(kSafetensorsLengthBytes, file_.bytes()), '\0');
  SYNCOPATE_RETURN_IF_ERROR(next(bytes_of(length)));
  const Result<std::uint64_t> header_bytes = safetensors_header_bytes(length, file_.bytes());
  if (!header_bytes.ok()) return header_bytes.status().in(path());
  if (*header_bytes > kMostStoredHeader) {
    return Status::data_loss(fmt::format("header of {} bytes, {} at most", *header_bytes, kMostStoredHeader))
        .in(path());
  }
  std::string text(*header_bytes, '\0');
  SYNCOPATE_RETURN_IF_ERROR(next(bytes_of(text)));
  Result<SafetensorsHeader> header = parse_safetensors_header(text, file_.bytes() - reached_);
  if (!header.ok()) return header.status().in(path());
  tensors_ = std::move(header->tensors);
  return {};
}

Status StoredReader::next(std::span<std::byte> bytes) {
  if (bytes.size() > file_.bytes() - reached_) return Status::data_loss("ends too early").in(path());
  SYNCOPATE_RETURN_IF_ERROR(file_.read(bytes, reached_));
  reached_ += bytes.size();
  hash_.add(bytes);
  return {};
}

Status StoredReader::finish() {
  std::vector<std::byte> room(std::min<std::uint64_t>(std::uint64_t{1} << 20, file_.bytes() - reached_));
  while (reached_ < file_.bytes()) {
    SYNCOPATE_RETURN_IF_ERROR(
        next(std::span(room).first(std::min<std::uint64_t>(room.size(), file_.bytes() - reached_))));
  }
  return check_sums(hash_.sums(), written_, path(), "is");
}

}  // namespace syncopate::experiments
