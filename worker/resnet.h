// Residual networks for small images (He et al. 2016, "Deep residual learning for image recognition", section 4.2):
// 6n + 2 layers, three stages of n blocks with 16, 32 and 64 channels, shortcuts without parameters (option A).
#pragma once

#include <optional>
#include <string>

#include "common/status.h"
#include "worker/chain_builder.h"

namespace syncopate::worker {

// Returns the number of blocks per stage of "resnet20", "resnet32" or "resnet56"; nothing for another name.
std::optional<int> resnet_blocks(const std::string& spec);

// Fails if the image is smaller than 8x8, since the three stages halve it twice.
Status check_resnet_image(ImageShape image);

void add_resnet(ChainBuilder& chain, int blocks, int classes);

}  // namespace syncopate::worker
