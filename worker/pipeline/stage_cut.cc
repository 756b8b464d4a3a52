#include "worker/pipeline/stage_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace syncopate::worker {
namespace {

// The layers from one that may begin a stage to before the next such one.
struct Block {
  std::size_t first_layer = 0;
  double cost = 0;
};

std::vector<Block> blocks_of(std::span<const LayerFacts> layers) {
  std::vector<Block> blocks;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool has_tensors = layers[i].tensors_end > std::exchange(tensors, layers[i].tensors_end);
    if (blocks.empty() || (has_tensors && !layers[i].in_place)) blocks.push_back({.first_layer = i});
    blocks.back().cost += layers[i].cost;
  }
  return blocks;
}

// Returns the first block of each stage, by the table of the least greatest cost of the first n blocks in k stages.
std::vector<std::size_t> firsts_of(const std::vector<Block>& blocks, std::size_t stages) {
  std::vector<double> up_to{0};
  for (const Block& block : blocks) up_to.push_back(up_to.back() + block.cost);
  std::vector<std::vector<double>> least(stages + 1,
                                         std::vector<double>(up_to.size(), std::numeric_limits<double>::infinity()));
  std::vector<std::vector<std::size_t>> begins(stages + 1, std::vector<std::size_t>(up_to.size()));
  least[0][0] = 0;
  for (std::size_t k = 1; k <= stages; ++k) {
    for (std::size_t end = k; end < up_to.size(); ++end) {
      for (std::size_t begin = k - 1; begin < end; ++begin) {
        const double greatest = std::max(least[k - 1][begin], up_to[end] - up_to[begin]);
        if (greatest >= least[k][end]) continue;
        least[k][end] = greatest;
        begins[k][end] = begin;
      }
    }
  }
  std::vector<std::size_t> firsts(stages);
  for (std::size_t k = stages, end = blocks.size(); k > 0; --k) firsts[k - 1] = end = begins[k][end];
  return firsts;
}

}  // namespace

std::vector<LayerFacts> layers_by_tensors(std::span<const LayerFacts> layers, const ParamLayout& layout,
                                          std::span<const double> costs) {
  std::vector<LayerFacts> costed(layers.begin(), layers.end());
  for (std::size_t tensor = 0; layers.empty() && tensor < costs.size(); ++tensor) {
    const Range range = layout.tensors()[tensor].range;
    costed.push_back({.tensors_end = tensor + 1, .reads = range, .late_gradients = {range}});
  }
  std::size_t tensor = 0;
  for (LayerFacts& layer : costed) {
    layer.cost = 0;
    for (; tensor < layer.tensors_end; ++tensor) layer.cost += costs[tensor];
  }
  return costed;
}

Range StageCut::chunk(int number, const ParamLayout& layout) const {
  const auto begin_of = [&](std::size_t tensor) {
    return tensor < layout.tensors().size() ? layout.tensors()[tensor].range.begin : layout.size();
  };
  const auto at = static_cast<std::size_t>(number);
  return {begin_of(tensors[at]), begin_of(tensors[at + 1])};
}

std::vector<Range> StageCut::own(int stage, const ParamLayout& layout) const {
  std::vector<Range> own;
  for (int c = 0; c < chunks(); ++c) own.push_back(chunk(c * stages + stage, layout));
  return own;
}

Result<StageCut> cut_into_stages(std::span<const LayerFacts> layers, const ParamLayout& layout, int stages,
                                 int chunks) {
  const std::vector<Block> blocks = blocks_of(layers);
  const int parts = stages * chunks;
  if (blocks.size() < static_cast<std::size_t>(parts)) {
    return Status::invalid_argument(
        fmt::format("has {} layers that a {} can begin with, and cannot be cut into {} {}; {} at most", blocks.size(),
                    chunks > 1 ? "chunk" : "stage", parts, chunks > 1 ? "chunks" : "stages", blocks.size()));
  }
  StageCut cut{.layers = {}, .tensors = {}, .shared = {}, .stages = stages};
  for (const std::size_t block : firsts_of(blocks, static_cast<std::size_t>(parts))) {
    const std::size_t layer = blocks[block].first_layer;
    cut.layers.push_back(layer);
    cut.tensors.push_back(layer == 0 ? 0 : layers[layer - 1].tensors_end);
  }
  cut.layers.push_back(layers.size());
  cut.tensors.push_back(layout.tensors().size());
  for (int number = 0; number < parts; ++number) {
    const auto at = static_cast<std::size_t>(number);
    for (std::size_t layer = cut.layers[at]; layer < cut.layers[at + 1]; ++layer) {
      const Range reads = layers[layer].reads;
      for (std::size_t tensor = 0; tensor < cut.tensors[at]; ++tensor) {
        const Range range = layout.tensors()[tensor].range;
        if (reads.begin > range.begin || range.end > reads.end) continue;
        const auto behind = std::ranges::upper_bound(cut.tensors, tensor);
        const int owner = static_cast<int>(behind - cut.tensors.begin()) - 1;
        if (owner % stages == number % stages) {
          return Status::invalid_argument(fmt::format(
              "shares {} among chunks of one stage; take another number of chunks", layout.tensors()[tensor].name));
        }
        cut.shared.push_back({.tensor = tensor,
                              .range = range,
                              .owner = owner % stages,
                              .borrower = number % stages,
                              .owner_chunk = owner / stages,
                              .borrower_chunk = number / stages});
      }
    }
  }
  return cut;
}

}  // namespace syncopate::worker
