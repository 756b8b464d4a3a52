// Opens IDX files (idx_format.h) as an ImageDataset of grey images in ten classes.
#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {

// Plain files are mapped, files whose names end in ".gz" are inflated. Everything is checked here: magic, dimensions,
// exact sizes, equal numbers of labels and images, labels 0 to 9. kNotFound or kDataLoss name the file, what was found
// and what was expected.
Result<std::unique_ptr<ImageDataset>> open_idx(const std::string& images_path, const std::string& labels_path,
                                               PixelScale scale = PixelScale::kShifted);

// Returns the images' shape, from the header of their file only. Fails as open_idx does.
Result<ImageShape> read_idx_shape(const std::string& images_path);
inline constexpr int kIdxClasses = 10;

}  // namespace syncopate::worker
