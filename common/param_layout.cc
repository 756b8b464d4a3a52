#include "common/param_layout.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "common/hash.h"

namespace syncopate {
namespace {

std::size_t align_up(std::size_t elements) { return (elements + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::size_t ParamLayout::add(std::string name, std::vector<std::int64_t> shape) {
  std::size_t elements = 1;
  for (std::int64_t dimension : shape) {
    assert(dimension >= 1);
    elements *= static_cast<std::size_t>(dimension);
  }
  tensors_.push_back({std::move(name), std::move(shape), {size_, size_ + elements}});
  dense_end_ = size_ = align_up(size_ + elements);
  return tensors_.size() - 1;
}

std::size_t ParamLayout::add_table(std::string name, std::int64_t rows, std::int64_t width, const TableSpec& table) {
  assert(tables_ == tensors_.size());
  assert(rows >= 1 && rows <= std::int64_t{1} << 32 && width >= 1 && table.rows_a_step >= 1);
  const std::size_t room = static_cast<std::size_t>(table.rows_a_step) * static_cast<std::size_t>(width);
  tensors_.push_back({std::move(name), {rows, width}, {size_, size_ + room}, table});
  tensors_.back().table->number = tables_;
  dense_begin_ = dense_end_ = size_ = align_up(size_ + room);
  return tables_++;
}

ParamLayout ParamLayout::selection(const std::vector<bool>& keeps_table, bool keeps_dense) const {
  assert(keeps_table.size() == tables_);
  ParamLayout layout = *this;
  layout.tensors_.clear();
  for (std::size_t table = 0; table < tables_; ++table) {
    if (keeps_table[table]) layout.tensors_.push_back(tensors_[table]);
  }
  layout.tables_ = layout.tensors_.size();
  if (keeps_dense) {
    layout.tensors_.insert(layout.tensors_.end(), tensors_.begin() + static_cast<std::ptrdiff_t>(tables_),
                           tensors_.end());
  } else {
    layout.dense_end_ = layout.size_ = dense_begin_;
  }
  return layout;
}

ParamLayout ParamLayout::part(std::span<const Range> places) const {
  assert(tables_ == 0 && !places.empty());
  ParamLayout layout = *this;
  std::erase_if(layout.tensors_, [&](const TensorSpec& tensor) {
    return std::ranges::none_of(places, [&](Range place) { return overlap(place, tensor.range); });
  });
  layout.dense_begin_ = places.front().begin;
  layout.dense_end_ = places.back().end;
  return layout;
}

std::vector<Range> ParamLayout::dense_places() const {
  std::vector<Range> places;
  for (std::size_t tensor = tables_; tensor < tensors_.size(); ++tensor) {
    const Range range{tensors_[tensor].range.begin, align_up(tensors_[tensor].range.end)};
    if (places.empty() || places.back().end != range.begin) places.push_back(range);
    places.back().end = range.end;
  }
  return places;
}

std::size_t ParamLayout::parameter_count() const {
  std::size_t count = 0;
  for (const TensorSpec& tensor : tensors_) {
    count += tensor.table ? tensor.rows() * tensor.width() : tensor.range.size();
  }
  return count;
}

std::uint64_t ParamLayout::hash() const {
  Fnv hash;
  for (const TensorSpec& tensor : tensors_) {
    hash.add(tensor.name);
    hash.add(tensor.shape.size());
    for (std::int64_t dimension : tensor.shape) hash.add(static_cast<std::uint64_t>(dimension));
    hash.add(tensor.range.begin);
    if (tensor.table) {
      hash.add(static_cast<std::uint64_t>(tensor.table->rows_a_step));
      hash.add(std::bit_cast<std::uint32_t>(tensor.table->limit));
    }
  }
  hash.add(size_);
  return hash.value();
}

std::vector<Range> buckets_in_backward_order(const ParamLayout& layout, std::size_t bucket_bytes) {
  const std::size_t limit = bucket_bytes / sizeof(float);
  const std::vector<TensorSpec>& tensors = layout.tensors();
  std::vector<Range> buckets;
  std::size_t end = layout.dense().end;  // of the bucket being filled
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const bool is_first = i == 0;
    const std::size_t before = is_first ? 0 : align_up(tensors[i - 1].range.end);
    const bool has_gap = before < tensors[i].range.begin;
    if (is_first || has_gap || tensors[i - 1].table || end - tensors[i - 1].range.begin > limit) {
      buckets.push_back(tensors[i].table ? tensors[i].padded() : Range{tensors[i].range.begin, end});
      end = before;
    }
  }
  return buckets;
}

std::vector<Range> balanced_ranges(std::size_t size, std::size_t count) {
  assert(count >= 1);
  const std::size_t units = align_up(size) / kAlignment;
  std::vector<Range> ranges(count);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t share = units / count + (i < units % count ? 1 : 0);
    const std::size_t end = std::min(size, begin + share * kAlignment);
    ranges[i] = {begin, end};
    begin = end;
  }
  return ranges;
}

BackwardProgress::BackwardProgress(const ParamLayout& layout, std::vector<Range> buckets)
    : buckets_(std::move(buckets)) {
  for (const TensorSpec& tensor : layout.tensors()) complete_from_.push_back(tensor.range.begin);
}

}  // namespace syncopate
