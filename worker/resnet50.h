// ResNet-50 (He et al. 2016, "Deep residual learning for image recognition", table 1 and figure 5 right): a stem of a
// 7x7 convolution and a max pool, four stages of 3, 4, 6 and 3 bottlenecks of 1x1, 3x3 and 1x1 convolutions, a mean
// over the image and a classifier. Where a stage begins, the shortcut is a 1x1 convolution and batch norm (option B).
// The stride of a stage's first block is that of its 3x3 convolution, as in torchvision (known as v1.5); the paper has
// it in the first 1x1. Tensors have torchvision's order and sizes.
//
// For colour images of 224x224 and 1000 classes it has 25,557,032 weights, and forward makes 4.09 · 10^9
// multiplications and as many additions.
#pragma once

#include "common/status.h"
#include "worker/chain_builder.h"

namespace syncopate::worker {

// Fails if the image is smaller than 32x32, since it is halved five times.
Status check_resnet50_image(ImageShape image);

void add_resnet50(ChainBuilder& chain, int classes);

}  // namespace syncopate::worker
