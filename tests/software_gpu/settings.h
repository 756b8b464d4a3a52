// What a software GPU is asked to be, by environment variables. README.md lists them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace software_gpu {

// In which order streams, blocks and threads that may run do so.
enum class Order { kDrawn, kFirst, kLast };

struct Settings {
  int devices = 1;                            // SOFTWARE_GPU_DEVICES
  std::uint64_t seed = 1;                     // SOFTWARE_GPU_SEED: of all that is drawn
  Order order = Order::kDrawn;                // SOFTWARE_GPU_ORDER: drawn, first, last
  std::size_t memory = std::size_t{8} << 30;  // SOFTWARE_GPU_MEMORY_MIB, of each device
  std::uint64_t fails_at = 0;                 // SOFTWARE_GPU_FAILS_AT: the piece of work with an ECC error; 0: none
  std::string counts = {};                    // SOFTWARE_GPU_COUNTS: a file to which the calls are appended at the end

  // What some seeds have, so that the product must do without, or with something else.
  bool fuses_epilogues() const { return seed % 3 != 0; }
  bool refuses_first_algorithm() const { return seed % 2 == 0; }
  std::size_t convolution_workspace() const { return seed % 5 == 0 ? std::size_t{100} << 20 : std::size_t{1} << 20; }
};

const Settings& settings();

}  // namespace software_gpu
