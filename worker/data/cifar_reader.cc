#include "worker/data/cifar_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "common/random.h"
#include "worker/data/file_bytes.h"

namespace syncopate::worker {
namespace {

constexpr int kImageSide = 32;
constexpr std::size_t kPlane = kImageSide * kImageSide;
constexpr std::size_t kRecordBytes = 1 + 3 * kPlane;

// One channel of a row of an image, cropped and normalised, into a row of `to`, where channels lie together.
void show_row(const std::uint8_t* row, const Crop& crop, std::size_t channel, float* to) {
  const float scale = 1 / (255 * kCifarDeviation[channel]), shift = -kCifarMean[channel] / kCifarDeviation[channel];
  // What of the row is to be seen.
  const int begin = std::max(0, crop.left - kCropPadding),
            end = std::min(kImageSide, kImageSide + crop.left - kCropPadding);
  const int step = crop.flipped ? -3 : 3;
  const int first = begin - crop.left + kCropPadding;
  float* place = to + 3 * (crop.flipped ? kImageSide - 1 - first : first) + channel;
  for (int x = begin; x < end; ++x, place += step) *place = static_cast<float>(row[x]) * scale + shift;
}

class CifarDataset final : public ImageDataset {
 public:
  CifarDataset(std::vector<FileBytes> files, std::int64_t records_per_file, std::optional<std::uint64_t> crop_seed)
      : ImageDataset(kCifarShape, kCifarClasses),
        files_(std::move(files)),
        records_per_file_(records_per_file),
        crop_seed_(crop_seed) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()) * records_per_file_; }

  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const override {
    assert(scratch.size() >= 3 * kPlane);
    const std::span<const std::uint8_t> planes = record(index).subspan(1);
    for (std::size_t pixel = 0; pixel < kPlane; ++pixel) {
      scratch[3 * pixel] = planes[pixel];
      scratch[3 * pixel + 1] = planes[kPlane + pixel];
      scratch[3 * pixel + 2] = planes[2 * kPlane + pixel];
    }
    return scratch.first(3 * kPlane);
  }
  int label(std::int64_t index) const override { return record(index)[0]; }

  void read(std::int64_t index, std::int64_t epoch, const SampleRoom& to) const override {
    read(index, crop_seed_ ? draw_crop(*crop_seed_, epoch, index) : Crop(), to);
  }
  void read_plain(std::int64_t index, const SampleRoom& to) const override { read(index, Crop(), to); }

 private:
  void read(std::int64_t index, const Crop& crop, const SampleRoom& to) const {
    const std::uint8_t* const planes = record(index).data() + 1;
    if (crop.top != kCropPadding || crop.left != kCropPadding) std::ranges::fill(to.values, 0.0f);
    for (int y = 0; y < kImageSide; ++y) {
      const int from = y + crop.top - kCropPadding;
      if (from < 0 || from >= kImageSide) continue;
      for (std::size_t channel = 0; channel < 3; ++channel) {
        show_row(planes + channel * kPlane + from * kImageSide, crop, channel, to.values.data() + 3 * kImageSide * y);
      }
    }
    to.labels[0] = label(index);
  }

  std::span<const std::uint8_t> record(std::int64_t index) const {
    assert(index >= 0 && index < size());
    const FileBytes& file = files_[static_cast<std::size_t>(index / records_per_file_)];
    return file.bytes().subspan(static_cast<std::size_t>(index % records_per_file_) * kRecordBytes, kRecordBytes);
  }

  std::vector<FileBytes> files_;
  std::int64_t records_per_file_;
  std::optional<std::uint64_t> crop_seed_;
};

Status check(const FileBytes& file, std::int64_t records) {
  const std::size_t found = file.bytes().size(), expected = static_cast<std::size_t>(records) * kRecordBytes;
  if (found != expected) {
    return Status::data_loss(fmt::format("{}: {}: {} bytes, expected {} ({} records of {})", file.path(),
                                         found < expected ? "truncated" : "trailing bytes", found, expected, records,
                                         kRecordBytes));
  }
  for (std::size_t at = 0; at < expected; at += kRecordBytes) {
    const int label = file.bytes()[at];
    if (label >= kCifarClasses) {
      return Status::data_loss(fmt::format("{}: label {} of record {}, expected 0 to {}", file.path(), label,
                                           at / kRecordBytes, kCifarClasses - 1));
    }
  }
  return Status();
}

}  // namespace

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

Result<std::unique_ptr<ImageDataset>> open_cifar10(std::span<const std::string> paths, std::int64_t records_per_file,
                                                   std::optional<std::uint64_t> crop_seed) {
  std::vector<FileBytes> files;
  for (const std::string& path : paths) {
    SYNCOPATE_ASSIGN_OR_RETURN(FileBytes file, FileBytes::open(path));
    SYNCOPATE_RETURN_IF_ERROR(check(file, records_per_file));
    files.push_back(std::move(file));
  }
  return std::unique_ptr<ImageDataset>(std::make_unique<CifarDataset>(std::move(files), records_per_file, crop_seed));
}

}  // namespace syncopate::worker
