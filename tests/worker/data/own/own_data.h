// Files of a person's own, as other programs write them, for tests.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/data/recommender_data.h"

namespace syncopate::worker {

// What np.save writes: version 1.0, and a header that is padded to 64 bytes.
template <typename Number>
Bytes npy(const std::string& descr, const std::string& shape, const std::vector<Number>& numbers,
          const char* fortran_order = "False") {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran_order, shape);
  header.resize((10 + header.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  Bytes bytes{0x93,
              'N',
              'U',
              'M',
              'P',
              'Y',
              1,
              0,
              static_cast<std::uint8_t>(header.size()),
              static_cast<std::uint8_t>(header.size() >> 8)};
  bytes.insert(bytes.end(), header.begin(), header.end());
  const std::size_t begin = bytes.size();
  bytes.resize(begin + numbers.size() * sizeof(Number));
  std::memcpy(bytes.data() + begin, numbers.data(), numbers.size() * sizeof(Number));
  return bytes;
}

inline void append_little_endian(Bytes& bytes, std::uint64_t word, int count) {
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
}

inline Bytes deflated(const Bytes& content) {
  z_stream stream{};
  ::deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  Bytes compressed(content.size() + 1000);
  stream.next_in = const_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = compressed.data();
  stream.avail_out = static_cast<uInt>(compressed.size());
  ::deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return compressed;
}

// What np.savez writes, and np.savez_compressed if `deflates`.
inline Bytes npz(const std::vector<std::pair<std::string, Bytes>>& arrays, bool deflates) {
  Bytes archive, directory;
  for (const auto& [name, content] : arrays) {
    const std::string file = name + ".npy";
    const Bytes stored = deflates ? deflated(content) : content;
    const std::size_t at = archive.size();
    Bytes entry;  // what the local header and the directory both have
    append_little_endian(entry, 20, 2);
    append_little_endian(entry, 0, 2);
    append_little_endian(entry, deflates ? 8 : 0, 2);
    append_little_endian(entry, 0, 4);
    append_little_endian(entry, ::crc32_z(0, content.data(), content.size()), 4);
    append_little_endian(entry, stored.size(), 4);
    append_little_endian(entry, content.size(), 4);
    append_little_endian(entry, file.size(), 2);
    append_little_endian(entry, 0, 2);
    append_little_endian(archive, 0x04034b50, 4);
    archive.insert(archive.end(), entry.begin(), entry.end());
    archive.insert(archive.end(), file.begin(), file.end());
    archive.insert(archive.end(), stored.begin(), stored.end());
    append_little_endian(directory, 0x02014b50, 4);
    append_little_endian(directory, 20, 2);
    directory.insert(directory.end(), entry.begin(), entry.end());
    append_little_endian(directory, 0, 2 + 2 + 2 + 4);
    append_little_endian(directory, at, 4);
    directory.insert(directory.end(), file.begin(), file.end());
  }
  const std::size_t at = archive.size();
  archive.insert(archive.end(), directory.begin(), directory.end());
  append_little_endian(archive, 0x06054b50, 4);
  append_little_endian(archive, 0, 4);
  append_little_endian(archive, arrays.size(), 2);
  append_little_endian(archive, arrays.size(), 2);
  append_little_endian(archive, directory.size(), 4);
  append_little_endian(archive, at, 4);
  append_little_endian(archive, 0, 2);
  return archive;
}

}  // namespace syncopate::worker
