#include "worker/data/own/zip_entries.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "worker/data/gzip.h"

namespace syncopate::worker {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::uint32_t kEndMark = 0x06054b50, kDirectoryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kDirectoryBytes = 46, kLocalBytes = 30;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::size_t kMostEntries = 1024;

// Little-endian, as all of the format.
std::uint32_t word_of(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t word = 0;
  for (std::size_t i = count; i-- > 0;) word = word << 8 | bytes[at + i];
  return word;
}
std::uint32_t long_word(Bytes bytes, std::size_t at) { return word_of(bytes, at, 4); }
std::uint32_t short_word(Bytes bytes, std::size_t at) { return word_of(bytes, at, 2); }

// The record stands at the end, before a comment.
std::optional<std::size_t> end_record(Bytes archive) {
  if (archive.size() < kEndBytes) return std::nullopt;
  const std::size_t last = archive.size() - kEndBytes;
  for (std::size_t back = 0; back <= std::min(last, kLongestComment); ++back) {
    if (long_word(archive, last - back) == kEndMark) return last - back;
  }
  return std::nullopt;
}

Status broken(std::size_t at, const std::string& what) {
  return Status::data_loss(fmt::format("not a sound archive at byte {}: {}", at, what));
}

// `at` is where the directory has the entry.
Result<ZipEntry> entry_at(Bytes archive, std::size_t at) {
  const std::uint32_t flags = short_word(archive, at + 8), method = short_word(archive, at + 10);
  const std::uint64_t stored = long_word(archive, at + 20), bytes = long_word(archive, at + 24);
  const std::size_t local = long_word(archive, at + 42), name = short_word(archive, at + 28);
  if (archive.size() - at - kDirectoryBytes < name) return broken(at, "a name that ends behind the file");
  ZipEntry entry{.name = std::string(reinterpret_cast<const char*>(archive.data()) + at + kDirectoryBytes, name),
                 .stored = {},
                 .deflated = method == 8,
                 .crc = long_word(archive, at + 16),
                 .bytes = bytes};
  if ((flags & 1) != 0) return broken(at, fmt::format("'{}' is encrypted", entry.name));
  if (method != 0 && method != 8) {
    return broken(
        at, fmt::format("'{}' is compressed by method {}, expected 0 (stored) or 8 (deflated)", entry.name, method));
  }
  if (stored == 0xffffffff || bytes == 0xffffffff || local == 0xffffffff) {
    return broken(at, fmt::format("'{}' has 4 GiB or more, which are not read", entry.name));
  }
  if (local > archive.size() || archive.size() - local < kLocalBytes || long_word(archive, local) != kLocalMark) {
    return broken(local, fmt::format("no entry '{}', which the directory has there", entry.name));
  }
  const std::size_t begin = local + kLocalBytes + short_word(archive, local + 26) + short_word(archive, local + 28);
  if (begin > archive.size() || archive.size() - begin < stored) {
    return broken(local, fmt::format("'{}' has {} bytes, of which {} are there", entry.name, stored,
                                     archive.size() - std::min(begin, archive.size())));
  }
  if (method == 0 && stored != bytes) return broken(at, fmt::format("'{}' has two lengths", entry.name));
  entry.stored = archive.subspan(begin, stored);
  return entry;
}

}  // namespace

Result<std::vector<ZipEntry>> zip_entries(Bytes archive) {
  const std::optional<std::size_t> end = end_record(archive);
  if (!end) return Status::data_loss("not an archive, or truncated: it has no directory at its end");
  const std::size_t count = short_word(archive, *end + 10);
  std::size_t at = long_word(archive, *end + 16);
  if (short_word(archive, *end + 4) != 0) return broken(*end, "one of several parts");
  if (count > kMostEntries) return broken(*end, fmt::format("{} entries, {} at most", count, kMostEntries));
  std::vector<ZipEntry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    if (at > *end || *end - at < kDirectoryBytes || long_word(archive, at) != kDirectoryMark) {
      return broken(at, fmt::format("the directory ends after {} of {} entries", i, count));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(ZipEntry entry, entry_at(archive, at));
    entries.push_back(std::move(entry));
    at += kDirectoryBytes + short_word(archive, at + 28) + short_word(archive, at + 30) + short_word(archive, at + 32);
  }
  return entries;
}

Status check_entry(const ZipEntry& entry) {
  const std::uint32_t found = static_cast<std::uint32_t>(::crc32_z(0, entry.stored.data(), entry.stored.size()));
  if (found == entry.crc) return {};
  return Status::data_loss(fmt::format("the sum of '{}' is {:08x}, expected {:08x}", entry.name, found, entry.crc));
}

Result<std::vector<std::uint8_t>> inflate_entry(const ZipEntry& entry) {
  Result<std::vector<std::uint8_t>> content = inflate_deflated(entry.stored, entry.bytes);
  if (!content.ok()) return content.status().in("'" + entry.name + "'");
  if (content->size() != entry.bytes) {
    return Status::data_loss(
        fmt::format("'{}' inflates to {} bytes, expected {}", entry.name, content->size(), entry.bytes));
  }
  ZipEntry inflated = entry;
  inflated.stored = *content;
  SYNCOPATE_RETURN_IF_ERROR(check_entry(inflated));
  return content;
}

}  // namespace syncopate::worker
