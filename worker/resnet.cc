#include "worker/resnet.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::worker {
namespace {

constexpr int kSmallestImage = 8;
constexpr int kFirstChannels = 16;

// Two convolutions past which the image goes by; relu follows the sum.
void add_block(ChainBuilder& chain, const std::string& name, int channels, int stride) {
  ChainBuilder inner = chain.within(name);
  inner.conv_and_norm(channels, 3, stride, true);
  inner.conv_and_norm(channels, 3, 1, false);
  std::optional<ChainBuilder> shortcut;
  if (stride != 1) {
    shortcut.emplace(chain.within(name + ".shortcut"));
    shortcut->subsample(channels, stride);
  }
  chain.residual(std::move(inner), std::move(shortcut), true);
}

}  // namespace

std::optional<int> resnet_blocks(const std::string& spec) {
  for (const int blocks : {3, 5, 9}) {
    if (spec == fmt::format("resnet{}", 6 * blocks + 2)) return blocks;
  }
  return std::nullopt;
}

Status check_resnet_image(ImageShape image) {
  if (image.height >= kSmallestImage && image.width >= kSmallestImage && image.channels >= 1) return {};
  return Status::invalid_argument(fmt::format("images of {}x{} are too small; a resnet needs {}x{} or more",
                                              image.height, image.width, kSmallestImage, kSmallestImage));
}

void add_resnet(ChainBuilder& chain, int blocks, int classes) {
  chain.conv_and_norm(kFirstChannels, 3, 1, true);
  for (const int stage : {1, 2, 3}) {
    const int channels = kFirstChannels << (stage - 1);
    for (int block = 1; block <= blocks; ++block) {
      const int stride = stage > 1 && block == 1 ? 2 : 1;
      add_block(chain, fmt::format("stage{}.block{}", stage, block), channels, stride);
    }
  }
  chain.mean_pool();
  chain.last_dense(classes);
}

}  // namespace syncopate::worker
