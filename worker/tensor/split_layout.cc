#include "worker/tensor/split_layout.h"

#include <algorithm>
#include <string>

namespace syncopate::worker {
namespace {

// Whether values of that name lie as an arena does.
bool is_of_arena(const std::string& name) {
  return name == state_part::kWeights ||
         std::ranges::find(state_part::kOptimizer, name) != std::end(state_part::kOptimizer);
}

}  // namespace

SplitLayout::SplitLayout(const ModelDraft& draft) : own_(draft.layout) {
  for (std::size_t tensor = 0; tensor < own_.tensors().size(); ++tensor) {
    const auto share = draft.shares.find(tensor);
    shares_.push_back(share != draft.shares.end() ? share->second : TensorShare(own_.tensors()[tensor].shape, {}));
    whole_.add(own_.tensors()[tensor].name, shares_.back().whole());
  }
}

template <typename Visit>
void SplitLayout::for_each(std::size_t tensor, const TensorShare& share, Range range, const Visit& visit) const {
  const std::size_t begin = own_.tensors()[tensor].range.begin, whole = whole_.tensors()[tensor].range.begin;
  share.for_each({range.begin - begin, range.end - begin}, [&](const TensorShare::Stretch& stretch) {
    visit(whole + stretch.begin, begin + stretch.at - range.begin, stretch.size);
  });
}

void SplitLayout::scatter(std::size_t tensor, int part, Range range, std::span<const float> values,
                          std::span<float> whole) const {
  for_each(tensor, shares_[tensor].of_part(part), range, [&](std::size_t there, std::size_t here, std::size_t size) {
    std::ranges::copy(values.subspan(here, size), whole.subspan(there, size).begin());
  });
}

Result<TrainingState> SplitLayout::own_state(const TrainingState& whole) const {
  TrainingState own;
  own.step = whole.step;
  own.counts = whole.counts;
  std::vector<float> arena(whole_.size());
  for (const std::string& name : whole.names()) {
    if (!is_of_arena(name)) {
      for (const Range& piece : whole.pieces(name)) own.put(name, piece.begin, whole.values(name, piece));
      continue;
    }
    SYNCOPATE_RETURN_IF_ERROR(whole.read(name, {0, whole_.size()}, arena));
    const std::span<float> share = own.piece(name, {0, own_.size()});
    std::ranges::fill(share, 0.0f);  // between tensors
    for (std::size_t tensor = 0; tensor < shares_.size(); ++tensor) {
      const Range range = own_.tensors()[tensor].range;
      for_each(tensor, shares_[tensor], range, [&](std::size_t there, std::size_t here, std::size_t size) {
        std::ranges::copy(std::span(arena).subspan(there, size), share.subspan(range.begin + here, size).begin());
      });
    }
  }
  return own;
}

Status SplitLayout::add_to_whole(const TrainingState& own, bool first, TrainingState& whole) const {
  whole.step = own.step;
  for (const auto& [name, values] : own.counts) whole.counts[name] = values;
  std::vector<float> share;
  for (const std::string& name : own.names()) {
    if (!is_of_arena(name)) {
      for (const Range& piece : own.pieces(name)) whole.put(name, piece.begin, own.values(name, piece));
      continue;
    }
    for (std::size_t tensor = 0; tensor < shares_.size(); ++tensor) {
      const Range range = own_.tensors()[tensor].range, there = whole_.tensors()[tensor].range;
      if ((shares_[tensor].is_whole() && !first) || !own.overlaps(name, range)) continue;
      const bool is_last = tensor + 1 == shares_.size();
      const std::size_t padded = is_last ? whole_.size() : whole_.tensors()[tensor + 1].range.begin;
      share.resize(range.size());
      SYNCOPATE_RETURN_IF_ERROR(own.read(name, range, share));
      for_each(tensor, shares_[tensor], range, [&](std::size_t begin, std::size_t at, std::size_t size) {
        // Whoever has a tensor's end writes the zeros behind it.
        const std::size_t end = begin + size;
        const std::span<float> piece = whole.piece(name, {begin, end == there.end ? padded : end});
        std::ranges::copy(std::span(share).subspan(at, size), piece.begin());
        std::ranges::fill(piece.subspan(size), 0.0f);
      });
    }
  }
  return {};
}

}  // namespace syncopate::worker
