// StoredReader: reads a file of a checkpoint that one process has written for itself, once, from its beginning to its
// end. All bytes that it returns are included in the sums: the caller may use them only once finish() has succeeded. It
// allocates no memory for what the file claims to hold.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/checkpoint/content_hash.h"
#include "experiments/checkpoint/data_file.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/checkpoint/safetensors.h"

namespace syncopate::experiments {

// Fails with data loss, naming the file, unless `found` equals what was written.
Status check_sums(const ContentSums& found, const ContentSums& written, const std::string& path,
                  const std::string& what);

class StoredReader {
 public:
  // Reads the header. Fails with data loss unless the file has the length in the manifest, and is safetensors.
  static Result<StoredReader> open(const std::string& path, const StoredFile& stored);

  const std::string& path() const { return file_.path(); }
  const std::vector<PlacedTensor>& tensors() const { return tensors_; }
  // Reads the next bytes of values. Fails with data loss if there are no more.
  Status next(std::span<std::byte> bytes);
  // Reads the rest. Fails with data loss unless all that was read is what was written.
  Status finish();

 private:
  StoredReader(DataFile file, const StoredFile& stored)
      : file_(std::move(file)), written_(stored.sums), hash_(stored.sums.digests()) {}

  Status read_header();

  DataFile file_;
  ContentSums written_;
  ContentHash hash_;
  std::uint64_t reached_ = 0;
  std::vector<PlacedTensor> tensors_;
};

}  // namespace syncopate::experiments
