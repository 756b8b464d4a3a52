#include "experiments/checkpoint/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/text/printable_text.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/checksum.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;
// For reading: member names are kept in a map, so that a million of them take little time.
using ReadJson = nlohmann::json;

constexpr std::string_view kBeforeChecksum = "{\"checksum\": \"";
constexpr std::string_view kBeforeMac = "\",\n\"mac\": \"";
constexpr std::string_view kBeforeBody = "\",\n\"manifest\": ";
constexpr std::string_view kAfterBody = "}\n";
constexpr std::array<const char*, 3> kKinds{"arena", "pieces", "rows"};
// no file is larger, and sums of such sizes do not overflow
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;
constexpr double kMostSeconds = 1e9;  // more would not fit a Duration
constexpr std::size_t kMostName = 128;
// Parts of all workers and shards, and files of one of them that has tables.
constexpr std::size_t kMostParts = 8192, kMostFiles = 1024;

// Converts to text.

Json json_of(const StoredFile& file) {
  Json json = {{"name", file.name},
               {"kind", kKinds[static_cast<std::size_t>(file.kind)]},
               {"part", file.part},
               {"bytes", file.bytes},
               {"checksum", checksum_text(file.sums.checksum)}};
  if (file.sums.digest) json["digest"] = digest_text(*file.sums.digest);
  if (file.kind != StoredKind::kArena) return json;
  Json pieces = Json::array(), checksums = Json::array(), digests = Json::array();
  for (const Range& piece : file.pieces) pieces.push_back({piece.begin, piece.end});
  for (const StoredBlock& block : file.blocks) {
    checksums.push_back(checksum_text(block.sums.checksum));
    if (block.sums.digest) digests.push_back(digest_text(*block.sums.digest));
  }
  json["pieces"] = pieces;
  json["checksums"] = checksums;
  if (file.sums.digest) json["digests"] = digests;
  return json;
}

Json json_of(const StoredPart& part) {
  Json files = Json::array();
  for (const StoredFile& file : part.files) files.push_back(json_of(file));
  Json json = {{"writer", part.writer}, {"step", part.step}, {"counts", part.counts}, {"files", files}};
  if (!part.finite) json["finite"] = false;
  return json;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Converts from text. Errors are thrown as a Status, and caught where parsing begins.

const ReadJson& field(const ReadJson& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) throw Status::data_loss(fmt::format("'{}' is missing", name));
  return object.at(name);
}

std::string text_field(const ReadJson& object, const char* name) {
  const ReadJson& value = field(object, name);
  if (!value.is_string()) throw Status::data_loss(fmt::format("'{}' must be a text", name));
  return value.get<std::string>();
}

std::int64_t whole_number(const ReadJson& value, const char* name) {
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
    throw Status::data_loss(fmt::format("'{}' must be a whole number", name));
  }
  return value.get<std::int64_t>();
}

std::uint64_t amount(const ReadJson& value, const char* name) {
  const std::int64_t number = whole_number(value, name);
  if (number < 0 || static_cast<std::uint64_t>(number) > kMostBytes) {
    throw Status::data_loss(fmt::format("'{}' must be 0 to {}, and is {}", name, kMostBytes, number));
  }
  return static_cast<std::uint64_t>(number);
}

std::uint64_t checksum_value(const ReadJson& value) {
  const auto checksum = value.is_string() ? parse_checksum(value.get<std::string>()) : std::nullopt;
  if (!checksum) throw Status::data_loss("a checksum must be 16 hexadecimal digits");
  return *checksum;
}

Digest digest_value(const ReadJson& value) {
  const auto digest = value.is_string() ? parse_digest(value.get<std::string>()) : std::nullopt;
  if (!digest) throw Status::data_loss("a digest must be 64 hexadecimal digits");
  return *digest;
}

const ReadJson& list_field(const ReadJson& object, const char* name) {
  const ReadJson& list = field(object, name);
  if (!list.is_array()) throw Status::data_loss(fmt::format("'{}' must be a list", name));
  return list;
}

const ReadJson& bounded_list(const ReadJson& object, const char* name, std::size_t most) {
  const ReadJson& list = list_field(object, name);
  if (list.size() > most)
    throw Status::data_loss(fmt::format("'{}' has {} entries, {} at most", name, list.size(), most));
  return list;
}

// Returns the name if it is that of a file directly in the checkpoint's folder.
std::string plain_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  if (name.empty() || name.size() > kMostName || name.front() == '.' || !std::ranges::all_of(name, is_plain)) {
    throw Status::data_loss(fmt::format("'{}' is no name of a file, a part or a writer", printable(name)));
  }
  return name;
}

Range range_of(const ReadJson& entry) {
  if (!entry.is_array() || entry.size() != 2) throw Status::data_loss("a range must be [begin, end]");
  const Range range{amount(entry[0], "begin"), amount(entry[1], "end")};
  if (range.begin >= range.end) throw Status::data_loss(fmt::format("range {} to {} is empty", range.begin, range.end));
  return range;
}

void check_ascending(const std::vector<Range>& ranges, const std::string& of) {
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) throw Status::data_loss(of + ": pieces overlap or do not ascend");
  }
}

// Reads a checksum for each block that the pieces are cut into.
void read_blocks(const ReadJson& json, StoredFile& file) {
  for (const ReadJson& entry : list_field(json, "pieces")) file.pieces.push_back(range_of(entry));
  check_ascending(file.pieces, file.name);
  const ReadJson& checksums = list_field(json, "checksums");
  const ReadJson* const digests = file.sums.digest ? &list_field(json, "digests") : nullptr;
  if (digests != nullptr && digests->size() != checksums.size()) {
    throw Status::data_loss(
        fmt::format("{}: {} digests and {} checksums", file.name, digests->size(), checksums.size()));
  }
  // Ensures that the next lines allocate no more memory than the text did.
  if (!file.pieces.empty() && file.pieces.back().end > file.bytes)
    throw Status::data_loss(file.name + ": pieces exceed the file");
  for (const Range& piece : file.pieces) {
    for (const Range& block : blocks_of(piece)) {
      const std::size_t i = file.blocks.size();
      if (i >= checksums.size()) throw Status::data_loss(file.name + ": has fewer checksums than blocks");
      file.blocks.push_back({block, {.checksum = checksum_value(checksums[i])}});
      if (digests != nullptr) file.blocks.back().sums.digest = digest_value((*digests)[i]);
    }
  }
  if (file.blocks.size() != checksums.size()) throw Status::data_loss(file.name + ": has more checksums than blocks");
}

StoredFile file_of(const ReadJson& json) {
  StoredFile file{.name = plain_name(text_field(json, "name")),
                  .part = plain_name(text_field(json, "part")),
                  .bytes = amount(field(json, "bytes"), "bytes"),
                  .sums = {.checksum = checksum_value(field(json, "checksum"))}};
  if (json.contains("digest")) file.sums.digest = digest_value(json.at("digest"));
  const std::string kind = text_field(json, "kind");
  const auto found = std::ranges::find(kKinds, kind);
  if (found == kKinds.end()) throw Status::data_loss(fmt::format("'{}' is no kind of file", printable(kind)));
  file.kind = static_cast<StoredKind>(found - kKinds.begin());
  if (file.kind == StoredKind::kArena) read_blocks(json, file);
  return file;
}

StoredPart part_of(const ReadJson& json) {
  StoredPart part{.writer = plain_name(text_field(json, "writer")),
                  .step = static_cast<std::int64_t>(amount(field(json, "step"), "step"))};
  const ReadJson& counts = field(json, "counts");
  if (!counts.is_object()) throw Status::data_loss("'counts' must map names to lists");
  for (const auto& [name, values] : counts.items()) {
    if (!values.is_array()) throw Status::data_loss("'counts' must map names to lists");
    // The tail of a shard's two replicas is sent the name in a message's header, which is short.
    if (name.empty() || name.size() > kMostName) {
      throw Status::data_loss(fmt::format("'{}' is no name of counts", printable(name)));
    }
    std::vector<std::int64_t>& numbers = part.counts[name];
    for (const ReadJson& value : values) numbers.push_back(whole_number(value, "counts"));
  }
  for (const ReadJson& file : bounded_list(json, "files", kMostFiles)) part.files.push_back(file_of(file));
  if (json.contains("finite")) {
    if (!json.at("finite").is_boolean()) throw Status::data_loss("'finite' must be true or false");
    part.finite = json.at("finite").get<bool>();
  }
  return part;
}

// Parts that share a file must agree about it, and no element may occur twice.
void check_files(const std::vector<StoredPart>& parts) {
  std::map<std::string, StoredFile> files;
  for (const StoredPart& part : parts) {
    for (const StoredFile& file : part.files) {
      const auto [known, is_new] = files.try_emplace(file.name, file);
      if (is_new) continue;
      StoredFile& shared = known->second;
      if (file.kind != StoredKind::kArena || shared.kind != file.kind || shared.part != file.part ||
          shared.bytes != file.bytes || shared.sums != file.sums) {
        throw Status::data_loss(fmt::format("{}: two parts say different things of it", file.name));
      }
      shared.pieces.insert(shared.pieces.end(), file.pieces.begin(), file.pieces.end());
    }
  }
  for (auto& [name, file] : files) {
    std::ranges::sort(file.pieces, {}, &Range::begin);
    check_ascending(file.pieces, name);
  }
}

double seconds_of(const ReadJson& value) {
  const double seconds = value.is_number() ? value.get<double>() : -1;
  if (seconds >= 0 && seconds <= kMostSeconds) return seconds;
  throw Status::data_loss(fmt::format("'seconds' must be a number from 0 to {:g}", kMostSeconds));
}

Manifest manifest_of(const ReadJson& json) {
  const std::int64_t version = whole_number(field(json, "version"), "version");
  if (version != kManifestVersion) {
    throw Status::data_loss(
        fmt::format("is of version {}, and this program reads version {}", version, kManifestVersion));
  }
  Manifest manifest{.run = text_field(json, "run"),
                    .step = static_cast<std::int64_t>(amount(field(json, "step"), "step"))};
  if (json.contains("seconds")) manifest.seconds = seconds_of(json.at("seconds"));
  const ReadJson& facts = field(json, "facts");
  if (!facts.is_object()) throw Status::data_loss("'facts' must map names to texts");
  for (const auto& [name, value] : facts.items()) {
    if (!value.is_string()) throw Status::data_loss("'facts' must map names to texts");
    manifest.facts[name] = value.get<std::string>();
  }
  for (const ReadJson& part : bounded_list(json, "parts", kMostParts)) manifest.parts.push_back(part_of(part));
  check_files(manifest.parts);
  return manifest;
}

template <typename T>
Result<T> parse(std::string_view text, T (*from_json)(const ReadJson&)) {
  try {
    const ReadJson json = ReadJson::parse(text, nullptr, false);
    if (json.is_discarded()) return Status::data_loss("is not JSON");
    return from_json(json);
  } catch (const Status& status) {
    return status;
  } catch (const std::bad_alloc&) {
    return Status::resource_exhausted(fmt::format("no memory for what {} bytes say", text.size()));
  }
}

}  // namespace

std::string to_text(const Manifest& manifest, const CheckpointKey* key) {
  Json parts = Json::array();
  for (const StoredPart& part : manifest.parts) parts.push_back(json_of(part));
  Json json = {{"version", kManifestVersion}, {"run", manifest.run}, {"step", manifest.step}};
  if (manifest.seconds) json["seconds"] = *manifest.seconds;
  json["facts"] = manifest.facts;
  json["parts"] = parts;
  const std::string body = dump(json);
  const std::string mac = key == nullptr ? "" : fmt::format("{}{}", kBeforeMac, digest_text(key->mac_of(body)));
  return fmt::format("{}{}{}{}{}{}", kBeforeChecksum, checksum_text(checksum_of(body)), mac, kBeforeBody, body,
                     kAfterBody);
}

Result<SealedManifest> open_seal(std::string_view text) {
  const Status unwhole = Status::data_loss(fmt::format("{} bytes that are no whole manifest", text.size()));
  std::string_view rest = text;
  const auto take = [&rest](std::string_view prefix) {
    if (!rest.starts_with(prefix)) return false;
    rest.remove_prefix(prefix.size());
    return true;
  };
  const auto digits = [&rest](std::size_t count) {
    const std::string_view found = rest.substr(0, count);
    rest.remove_prefix(found.size());
    return found;
  };
  if (!take(kBeforeChecksum)) return unwhole;
  const auto checksum = parse_checksum(digits(checksum_text(0).size()));
  SealedManifest sealed;
  if (take(kBeforeMac)) {
    sealed.mac = parse_digest(digits(digest_text({}).size()));
    if (!sealed.mac) return unwhole;
  }
  if (!take(kBeforeBody) || !rest.ends_with(kAfterBody)) return unwhole;
  sealed.body = rest.substr(0, rest.size() - kAfterBody.size());
  if (checksum && *checksum == checksum_of(sealed.body)) return sealed;
  return Status::data_loss(
      fmt::format("has the checksum {}, and says otherwise", checksum_text(checksum_of(sealed.body))));
}

Result<Manifest> parse_manifest_body(std::string_view body) { return parse<Manifest>(body, manifest_of); }

Result<Manifest> parse_manifest(std::string_view text) {
  const Result<SealedManifest> sealed = open_seal(text);
  return sealed.ok() ? parse_manifest_body(sealed->body) : sealed.status();
}

bool is_finite(const Manifest& manifest) { return std::ranges::all_of(manifest.parts, &StoredPart::finite); }

bool has_digests(const Manifest& manifest) {
  return std::ranges::all_of(manifest.parts, [](const StoredPart& part) {
    return std::ranges::all_of(part.files, [](const StoredFile& file) {
      return file.sums.digest &&
             std::ranges::all_of(file.blocks, [](const StoredBlock& block) { return block.sums.digest.has_value(); });
    });
  });
}

std::string to_text(const StoredPart& part) { return dump(json_of(part)); }

Result<StoredPart> parse_part(std::string_view text) { return parse<StoredPart>(text, part_of); }

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:06}", step); }

}  // namespace syncopate::experiments
