// Reads archives of PKWARE's ZIP format (APPNOTE.TXT 6.3, sections 4.3 and 4.4), as NumPy's .npz files are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::worker {

struct ZipEntry {
  std::string name;
  std::span<const std::uint8_t> stored;  // in the archive, perhaps deflated
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t bytes = 0;  // once inflated, as the archive claims
};

// Returns the entries as the archive's directory names them. Fails with data loss, saying what is wrong and where, for
// what is none, is truncated, encrypted, compressed otherwise, in several parts or larger than 4 GiB.
Result<std::vector<ZipEntry>> zip_entries(std::span<const std::uint8_t> archive);

// Inflates an entry that is deflated. Fails with data loss unless its bytes are as many as claimed, and sound.
Result<std::vector<std::uint8_t>> inflate_entry(const ZipEntry& entry);
// Checks the sum of an entry that is not.
Status check_entry(const ZipEntry& entry);

}  // namespace syncopate::worker
