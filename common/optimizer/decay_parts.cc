#include "common/optimizer/decay_parts.h"

namespace syncopate {

std::vector<Range> undecayed_ranges(const ParamLayout& layout) {
  std::vector<Range> ranges;
  std::size_t behind = 0;  // where the last of them ends, with the padding behind it
  for (const TensorSpec& tensor : layout.tensors()) {
    if (tensor.shape.size() > 1) continue;
    if (!ranges.empty() && tensor.range.begin == behind) {
      ranges.back().end = tensor.range.end;
    } else {
      ranges.push_back(tensor.range);
    }
    behind = (tensor.range.end + kAlignment - 1) / kAlignment * kAlignment;
  }
  return ranges;
}

std::vector<Range> ranges_within(std::span<const Range> ranges, Range part) {
  std::vector<Range> within;
  for (const Range& range : ranges) {
    const std::size_t begin = std::max(range.begin, part.begin), end = std::min(range.end, part.end);
    if (begin < end) within.push_back({begin - part.begin, end - part.begin});
  }
  return within;
}

}  // namespace syncopate
