// ArenaForm: where each element of an arena lies in a safetensors file that has the layout's tensors by their names.
// Header and places follow from the layout alone, so that several processes can write ranges of one file, each without
// knowing of the others. Row-sparse tables and padding are not in it. Pure.
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

  // Elements [begin, end) of the arena, without padding, and where the first of them lies in the file.
  struct Stretch {
    Range range;
    std::uint64_t offset = 0;
  };

  const std::string& header() const { return header_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  Range arena() const { return arena_; }  // without tables
  std::vector<Stretch> stretches(Range range) const;
  // What of `range` is not in the file.
  std::vector<Range> gaps(Range range) const;

 private:
  std::string header_;
  std::vector<Stretch> tensors_;
  std::uint64_t file_bytes_ = 0;
  Range arena_;
};

// `range` cut where checksums are: blocks begin at multiples of a mebibyte of the arena, so that who wants a part of it
// reads and checks little more than that.
std::vector<Range> blocks_of(Range range);

// The worker to whom a part of that name alone belongs, as "residual.worker1" does to 1; -1: everybody's.
int owner_of(const std::string& part);
// How a part that is everybody's is called where each worker has its own: "weights.replica1". And the other way round:
// what the owner knows a part as.
std::string replica_part(const std::string& part, int worker);
std::string name_to_owner(const std::string& part);
// The file of values that have a layout, which all processes share.
std::string arena_file(const std::string& part);

// The forms of what a TrainingState may have.
class StateForms {
 public:
  // Of the model's weights, and of what it keeps beside them.
  StateForms(const ParamLayout& layout, const ParamLayout& local_layout);

  // Of the part of that name; null where it has no layout.
  const ArenaForm* form_of(const std::string& part) const;
  const ParamLayout& layout() const { return layout_; }
  std::size_t local_size() const { return local_size_; }  // elements of what is kept beside the weights

 private:
  ParamLayout layout_;
  std::size_t local_size_;
  ArenaForm weights_;
  ArenaForm local_;
};

}  // namespace syncopate::experiments
