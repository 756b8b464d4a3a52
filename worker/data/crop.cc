#include "worker/data/crop.h"

#include "common/random.h"

namespace syncopate::worker {

Crop draw_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t index) {
  constexpr std::uint64_t kStreamOfCrops = 0x63726F70ull << 24;  // apart from those of weights and order
  Random epoch_seeds(seed, kStreamOfCrops + static_cast<std::uint64_t>(epoch));
  Random random(epoch_seeds.next(), static_cast<std::uint64_t>(index));
  constexpr std::uint64_t kPlaces = 2 * kCropPadding + 1;
  Crop crop;
  crop.top = static_cast<int>(random.below(kPlaces));
  crop.left = static_cast<int>(random.below(kPlaces));
  crop.flipped = random.below(2) == 1;
  return crop;
}

}  // namespace syncopate::worker
