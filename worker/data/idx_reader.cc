#include "worker/data/idx_reader.h"

#include <fmt/format.h>

#include <cassert>
#include <cstdint>
#include <span>
#include <utility>

#include "worker/data/file_bytes.h"
#include "worker/data/idx_format.h"

namespace syncopate::worker {
namespace {

constexpr int kClasses = 10;
constexpr std::uint32_t kLargestSide = 4096;  // pixels; also keeps products within 64 bits

class IdxDataset : public Dataset {
 public:
  IdxDataset(FileBytes images, FileBytes labels, ImageShape shape)
      : images_file_(std::move(images)),
        labels_file_(std::move(labels)),
        pixels_(images_file_.bytes().subspan(kIdxImagesHeaderBytes)),
        labels_(labels_file_.bytes().subspan(kIdxLabelsHeaderBytes)),
        shape_(shape) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  ImageShape shape() const override { return shape_; }
  int classes() const override { return kClasses; }

  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t>) const override {
    assert(index >= 0 && index < size());
    const auto values = static_cast<std::size_t>(shape_.values());
    return pixels_.subspan(static_cast<std::size_t>(index) * values, values);
  }
  int label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }

 private:
  FileBytes images_file_, labels_file_;
  std::span<const std::uint8_t> pixels_, labels_;
  ImageShape shape_;
};

Status data_loss(const FileBytes& file, const std::string& what) {
  return Status(Code::kDataLoss, fmt::format("{}: {}", file.path(), what));
}

Status check_header(const FileBytes& file, std::uint32_t magic, std::size_t header_bytes, const char* kind) {
  if (file.bytes().size() < header_bytes) {
    return data_loss(file,
                     fmt::format("truncated: {} bytes, the header alone has {}", file.bytes().size(), header_bytes));
  }
  const std::uint32_t found = read_idx_word(file.bytes(), 0);
  if (found != magic) {
    return data_loss(file, fmt::format("magic 0x{:08x}, expected 0x{:08x} (IDX {})", found, magic, kind));
  }
  if (read_idx_word(file.bytes(), 1) == 0) return data_loss(file, fmt::format("holds 0 {}, expected at least 1", kind));
  return Status();
}

Status check_size(const FileBytes& file, std::uint64_t expected, const std::string& because) {
  const std::uint64_t found = file.bytes().size();
  if (found == expected) return Status();
  return data_loss(file, fmt::format("{}: {} bytes, expected {} ({})",
                                     found < expected ? "truncated" : "trailing bytes", found, expected, because));
}

Status check_images(const FileBytes& file) {
  SYNCOPATE_RETURN_IF_ERROR(check_header(file, kIdxImagesMagic, kIdxImagesHeaderBytes, "images"));
  const std::uint64_t count = read_idx_word(file.bytes(), 1);
  const std::uint64_t height = read_idx_word(file.bytes(), 2), width = read_idx_word(file.bytes(), 3);
  if (height == 0 || width == 0 || height > kLargestSide || width > kLargestSide) {
    return data_loss(file,
                     fmt::format("images of {}x{} pixels, expected sides of 1 to {}", height, width, kLargestSide));
  }
  return check_size(file, kIdxImagesHeaderBytes + count * height * width,
                    fmt::format("{} images of {}x{}", count, height, width));
}

Status check_labels(const FileBytes& file) {
  SYNCOPATE_RETURN_IF_ERROR(check_header(file, kIdxLabelsMagic, kIdxLabelsHeaderBytes, "labels"));
  const std::uint64_t count = read_idx_word(file.bytes(), 1);
  SYNCOPATE_RETURN_IF_ERROR(check_size(file, kIdxLabelsHeaderBytes + count, fmt::format("{} labels", count)));
  const std::span<const std::uint8_t> labels = file.bytes().subspan(kIdxLabelsHeaderBytes);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= kClasses) {
      return data_loss(file, fmt::format("label {} of sample {}, expected 0 to {}", labels[i], i, kClasses - 1));
    }
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_idx(const std::string& images_path, const std::string& labels_path) {
  Result<FileBytes> images = FileBytes::open(images_path);
  if (!images.ok()) return images.status();
  Result<FileBytes> labels = FileBytes::open(labels_path);
  if (!labels.ok()) return labels.status();
  SYNCOPATE_RETURN_IF_ERROR(check_images(*images));
  SYNCOPATE_RETURN_IF_ERROR(check_labels(*labels));
  const std::uint32_t image_count = read_idx_word(images->bytes(), 1), label_count = read_idx_word(labels->bytes(), 1);
  if (image_count != label_count) {
    return data_loss(*labels, fmt::format("{} labels, expected {}, one for each image of {}", label_count, image_count,
                                          images_path));
  }
  const ImageShape shape{static_cast<int>(read_idx_word(images->bytes(), 2)),
                         static_cast<int>(read_idx_word(images->bytes(), 3)), 1};
  return std::unique_ptr<Dataset>(std::make_unique<IdxDataset>(std::move(*images), std::move(*labels), shape));
}

}  // namespace syncopate::worker
