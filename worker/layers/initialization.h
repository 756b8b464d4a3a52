// Initialization: the distribution that the initial weights of a dense or convolution layer are drawn from. Biases
// begin at zero. "Fan in" and "fan out" are the numbers of inputs of an output and of outputs of an input.
#pragma once

#include <string_view>

namespace syncopate::worker {

// He-uniform, U(±sqrt(6 / fan in)), preserves the variance through a ReLU (He et al. 2015, section 2.2). LeCun-uniform,
// U(±sqrt(3 / fan in)), preserves it through a linear layer (LeCun et al. 1998, section 4.6). Glorot-uniform,
// U(±sqrt(6 / (fan in + fan out))), is between what the values and what the gradients need (Glorot and Bengio 2010,
// equation 16); it is the default of Keras's Dense and Conv2D.
enum class Initialization { kHeUniform, kLeCunUniform, kGlorotUniform };

// What a whole model begins with: kByLayer is He-uniform for layers under ReLU and LeCun-uniform for the last; the
// others are the same for all layers.
enum class WeightInit { kByLayer, kHe, kGlorot, kLeCun };

// Returns what a layer begins with whose own choice is `by_layer`.
constexpr Initialization initialization_of(WeightInit init, Initialization by_layer) {
  switch (init) {
    case WeightInit::kByLayer:
      return by_layer;
    case WeightInit::kHe:
      return Initialization::kHeUniform;
    case WeightInit::kGlorot:
      return Initialization::kGlorotUniform;
    case WeightInit::kLeCun:
      return Initialization::kLeCunUniform;
  }
  return by_layer;
}

// Behind the spec of a model that make_model takes: what its weights begin with, as in "mlp:784-10:init=glorot".
inline constexpr std::string_view kInitSuffix = ":init=";

}  // namespace syncopate::worker
