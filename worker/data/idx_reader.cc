#include "worker/data/idx_reader.h"

#include <fmt/format.h>

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "worker/data/file_bytes.h"
#include "worker/data/idx_format.h"

namespace syncopate::worker {
namespace {

constexpr std::uint32_t kLargestSide = 4096;  // pixels; also keeps products within 64 bits

class IdxDataset final : public ImageDataset {
 public:
  IdxDataset(FileBytes images, FileBytes labels, ImageShape shape, PixelScale scale)
      : ImageDataset(shape, kIdxClasses, scale),
        images_file_(std::move(images)),
        labels_file_(std::move(labels)),
        pixels_(images_file_.bytes().subspan(kIdxImagesHeaderBytes)),
        labels_(labels_file_.bytes().subspan(kIdxLabelsHeaderBytes)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }

  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t>) const override {
    assert(index >= 0 && index < size());
    const auto values = static_cast<std::size_t>(shape().values());
    return pixels_.subspan(static_cast<std::size_t>(index) * values, values);
  }
  int label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }

 private:
  FileBytes images_file_, labels_file_;
  std::span<const std::uint8_t> pixels_, labels_;
};

using Header = std::span<const std::uint8_t>;

// `bytes` are the file's, or its first.
Status check_header(const std::string& path, Header bytes, std::uint32_t magic, std::size_t header_bytes,
                    const char* kind) {
  if (bytes.size() < header_bytes) {
    return Status::data_loss(fmt::format("truncated: {} bytes, the header alone has {}", bytes.size(), header_bytes))
        .in(path);
  }
  const std::uint32_t found = read_idx_word(bytes, 0);
  if (found != magic) {
    return Status::data_loss(fmt::format("magic 0x{:08x}, expected 0x{:08x} (IDX {})", found, magic, kind)).in(path);
  }
  if (read_idx_word(bytes, 1) == 0)
    return Status::data_loss(fmt::format("holds 0 {}, expected at least 1", kind)).in(path);
  return Status();
}

Result<ImageShape> shape_in(const std::string& path, Header bytes) {
  SYNCOPATE_RETURN_IF_ERROR(check_header(path, bytes, kIdxImagesMagic, kIdxImagesHeaderBytes, "images"));
  const std::uint32_t height = read_idx_word(bytes, 2), width = read_idx_word(bytes, 3);
  if (height == 0 || width == 0 || height > kLargestSide || width > kLargestSide) {
    return Status::data_loss(
               fmt::format("images of {}x{} pixels, expected sides of 1 to {}", height, width, kLargestSide))
        .in(path);
  }
  return ImageShape{static_cast<int>(height), static_cast<int>(width), 1};
}

Status check_size(const FileBytes& file, std::uint64_t expected, const std::string& because) {
  const std::uint64_t found = file.bytes().size();
  if (found == expected) return Status();
  return Status::data_loss(fmt::format("{}: {} bytes, expected {} ({})",
                                       found < expected ? "truncated" : "trailing bytes", found, expected, because))
      .in(file.path());
}

Status check_images(const FileBytes& file, ImageShape shape) {
  const std::uint64_t count = read_idx_word(file.bytes(), 1);
  const auto pixels = static_cast<std::uint64_t>(shape.values());
  return check_size(file, kIdxImagesHeaderBytes + count * pixels,
                    fmt::format("{} images of {}x{}", count, shape.height, shape.width));
}

Status check_labels(const FileBytes& file) {
  SYNCOPATE_RETURN_IF_ERROR(check_header(file.path(), file.bytes(), kIdxLabelsMagic, kIdxLabelsHeaderBytes, "labels"));
  const std::uint64_t count = read_idx_word(file.bytes(), 1);
  SYNCOPATE_RETURN_IF_ERROR(check_size(file, kIdxLabelsHeaderBytes + count, fmt::format("{} labels", count)));
  const std::span<const std::uint8_t> labels = file.bytes().subspan(kIdxLabelsHeaderBytes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= kIdxClasses) {
      return Status::data_loss(fmt::format("label {} of sample {}, expected 0 to {}", labels[i], i, kIdxClasses - 1))
          .in(file.path());
    }
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<ImageDataset>> open_idx(const std::string& images_path, const std::string& labels_path,
                                               PixelScale scale) {
  SYNCOPATE_ASSIGN_OR_RETURN(FileBytes images, FileBytes::open(images_path));
  SYNCOPATE_ASSIGN_OR_RETURN(FileBytes labels, FileBytes::open(labels_path));
  SYNCOPATE_ASSIGN_OR_RETURN(const ImageShape shape, shape_in(images_path, images.bytes()));
  SYNCOPATE_RETURN_IF_ERROR(check_images(images, shape));
  SYNCOPATE_RETURN_IF_ERROR(check_labels(labels));
  const std::uint32_t image_count = read_idx_word(images.bytes(), 1), label_count = read_idx_word(labels.bytes(), 1);
  if (image_count != label_count) {
    return Status::data_loss(
               fmt::format("{} labels, expected {}, one for each image of {}", label_count, image_count, images_path))
        .in(labels_path);
  }
  return std::unique_ptr<ImageDataset>(
      std::make_unique<IdxDataset>(std::move(images), std::move(labels), shape, scale));
}

Result<ImageShape> read_idx_shape(const std::string& images_path) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> header,
                             read_first_bytes(images_path, kIdxImagesHeaderBytes));
  return shape_in(images_path, header);
}

}  // namespace syncopate::worker
