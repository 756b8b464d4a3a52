#include "worker/resnet50.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace syncopate::worker {
namespace {

constexpr int kSmallestSide = 32;
constexpr int kStemChannels = 64;
constexpr int kWidening = 4;  // a block's output has so many times the channels of its 3x3 convolution
constexpr int kBlocks[] = {3, 4, 6, 3};

// relu follows the sum.
void add_bottleneck(ChainBuilder& chain, const std::string& name, int channels, int stride, bool projects) {
  ChainBuilder inner = chain.within(name);
  inner.conv_and_norm(channels, 1, 1, true);
  inner.conv_and_norm(channels, 3, stride, true);
  inner.conv_and_norm(kWidening * channels, 1, 1, false);
  std::optional<ChainBuilder> shortcut;
  if (projects) {
    shortcut.emplace(chain.within(name + ".shortcut"));
    shortcut->conv_and_norm(kWidening * channels, 1, stride, false);
  }
  chain.residual(std::move(inner), std::move(shortcut));
  chain.relu();
}

}  // namespace

Status check_resnet50_image(ImageShape image) {
  if (image.height >= kSmallestSide && image.width >= kSmallestSide && image.channels >= 1) return {};
  return Status::invalid_argument(fmt::format("images of {}x{} are too small; resnet50 needs {}x{} or more",
                                              image.height, image.width, kSmallestSide, kSmallestSide));
}

void add_resnet50(ChainBuilder& chain, int classes) {
  chain.conv_and_norm(kStemChannels, 7, 2, true);
  chain.max_pool(3, 2, 1);
  int stage = 0;
  for (const int blocks : kBlocks) {
    const int channels = kStemChannels << stage++;
    for (int block = 1; block <= blocks; ++block) {
      const bool begins = block == 1;
      add_bottleneck(chain, fmt::format("stage{}.block{}", stage, block), channels, begins && stage > 1 ? 2 : 1,
                     begins);
    }
  }
  chain.mean_pool();
  chain.last_dense(classes);
}

}  // namespace syncopate::worker
