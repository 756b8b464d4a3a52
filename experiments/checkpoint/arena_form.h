// ArenaForm: where each element of an arena lies in a safetensors file that holds the layout's tensors by their names.
// The header and the offsets follow from the layout alone, so that several processes can write ranges of one file
// without coordination. Row-sparse tables and padding are not in the file. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/param_layout.h"

namespace syncopate::experiments {

class ArenaForm {
 public:
  explicit ArenaForm(const ParamLayout& layout, const std::map<std::string, std::string>& metadata = {});

  // Elements [begin, end) of the arena, without padding, and the offset of the first of them in the file.
  struct Stretch {
    Range range;
    std::uint64_t offset = 0;
  };

  const std::string& header() const { return header_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  Range arena() const { return arena_; }  // without tables
  std::vector<Stretch> stretches(Range range) const;
  // Returns the parts of `range` that are not in the file.
  std::vector<Range> gaps(Range range) const;

 private:
  std::string header_;
  std::vector<Stretch> tensors_;
  std::uint64_t file_bytes_ = 0;
  Range arena_;
};

// Cuts `range` into blocks that have checksums of their own. Blocks begin at multiples of a mebibyte of the arena, so
// that a reader that needs a part reads and checks little more than that part.
std::vector<Range> blocks_of(Range range);

// Returns the worker that alone owns a part of that name, as worker 1 owns "residual.worker1"; -1: all share it.
int owner_of(const std::string& part);
// The first returns the name of a shared part where each worker has its own: "weights.replica1". The second is its
// inverse: it returns the name by which the owner knows a part.
std::string replica_part(const std::string& part, int worker);
std::string name_to_owner(const std::string& part);
// Returns the name of the file of a part that has a layout. All processes share it.
std::string arena_file(const std::string& part);

// The forms of the parts that a TrainingState may have.
class StateForms {
 public:
  // Takes the layout of the model's weights, and of what it keeps besides them.
  StateForms(const ParamLayout& layout, const ParamLayout& local_layout);

  // Returns the form of the part of that name; null if the part has no layout.
  const ArenaForm* form_of(const std::string& part) const;
  const ParamLayout& layout() const { return layout_; }
  std::size_t local_size() const { return local_size_; }  // elements of what the model keeps besides its weights

 private:
  ParamLayout layout_;
  std::size_t local_size_;
  ArenaForm weights_;
  ArenaForm local_;
};

}  // namespace syncopate::experiments
