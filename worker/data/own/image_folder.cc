#include "worker/data/own/image_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "worker/data/file_bytes.h"
#include "worker/data/own/image_file.h"

namespace syncopate::worker {
namespace {

namespace fs = std::filesystem;

struct ImagePath {
  std::string path;
  std::string class_name;
};

// The entries of a folder, by name.
Result<std::vector<fs::path>> entries_of(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with('.')) paths.push_back(entry.path());
  }
  if (error) return Status::not_found(fmt::format("{}: cannot be read: {}", folder, error.message()));
  std::ranges::sort(paths);
  return paths;
}

Status check_no_other_image(const std::string& path) {
  constexpr std::array kOthers{".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".avif", ".heic"};
  if (std::ranges::none_of(kOthers, [&](const char* ending) { return path.ends_with(ending); })) return {};
  return Status::data_loss(fmt::format("{}: is an image of another kind; PNG and JPEG are read", path));
}

bool has_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

Result<std::vector<ImagePath>> images_in(const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<fs::path> classes, entries_of(folder));
  std::vector<ImagePath> images;
  int folders = 0;
  for (const fs::path& of_class : classes) {
    if (!has_folder(of_class)) {
      if (!is_image_name(of_class.string())) continue;
      return Status::data_loss(
          fmt::format("{}: stands beside the folders of the classes; expected each image in the "
                      "folder of its class",
                      of_class.string()));
    }
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<fs::path> files, entries_of(of_class.string()));
    const std::size_t before = images.size();
    for (const fs::path& file : files) {
      if (has_folder(file)) {
        return Status::data_loss(
            fmt::format("{}: a folder within that of a class; expected images alone", file.string()));
      }
      SYNCOPATE_RETURN_IF_ERROR(check_no_other_image(file.string()));
      if (is_image_name(file.string())) images.push_back({file.string(), of_class.filename().string()});
    }
    if (images.size() == before) {
      return Status::data_loss(fmt::format(
          "{}: has no *.png, *.jpg or *.jpeg; expected a folder of images for each class", of_class.string()));
    }
    ++folders;
  }
  if (folders > 1) return images;
  return Status::data_loss(
      fmt::format("{}: has {}, expected one for each of two or more classes, or train/ and test/ that have these",
                  folder, folders == 0 ? "no folders" : "one folder"));
}

// Images of one part, as they come.
class ImageBytes {
 public:
  explicit ImageBytes(const OwnOptions& options) : size_(options.image_size) {}

  // `colour` is what all images are to have.
  Status add(const ImagePath& image, bool colour) {
    Result<DecodedImage> decoded = decoded_file(image.path);
    if (!decoded.ok()) return decoded.status();
    if (colour) decoded = with_three_channels(*decoded);
    if (size_ > 0) decoded = scaled_image(*decoded, size_, size_);
    if (!shape_) {
      shape_ = decoded->shape;
      first_ = image.path;
    }
    if (decoded->shape != *shape_) {
      return Status::data_loss(fmt::format("{}: {}x{}, and {} is {}x{}; --image-size=N scales all to one size",
                                           image.path, decoded->shape.height, decoded->shape.width, first_,
                                           shape_->height, shape_->width));
    }
    pixels_.insert(pixels_.end(), decoded->pixels.begin(), decoded->pixels.end());
    if (std::ssize(pixels_) > kMostImageBytes) {
      return Status::resource_exhausted(
          fmt::format("{}: images of {}x{}, more than 4 GiB in all; --image-size=N makes them smaller", image.path,
                      shape_->height, shape_->width));
    }
    return {};
  }

  NumberArray take() { return NumberArray::of(std::move(pixels_), *shape_); }

 private:
  static Result<DecodedImage> decoded_file(const std::string& path) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::open(path));
    Result<DecodedImage> decoded = decode_image(file.bytes());
    return decoded.ok() ? std::move(decoded) : decoded.status().in(path);
  }

  friend Result<bool> any_is_colour(const std::vector<ImagePath>& images);

  const int size_;  // 0: as they are
  std::optional<ImageShape> shape_;
  std::string first_;
  std::vector<std::uint8_t> pixels_;
};

// Every image is decoded again afterwards: to keep them would take twice the memory where one of many is grey.
Result<bool> any_is_colour(const std::vector<ImagePath>& images) {
  for (const ImagePath& image : images) {
    SYNCOPATE_ASSIGN_OR_RETURN(const DecodedImage decoded, ImageBytes::decoded_file(image.path));
    if (decoded.shape.channels == 3) return true;
  }
  return false;
}

Result<OwnSamples> read_images(const std::string& folder, const std::vector<ImagePath>& images, bool colour,
                               const OwnOptions& options) {
  ImageBytes bytes(options);
  OwnSamples samples{.path = folder, .values = {}, .target = {.name = "class", .path = folder}};
  for (const ImagePath& image : images) {
    SYNCOPATE_RETURN_IF_ERROR(bytes.add(image, colour));
    samples.target.texts.push_back(image.class_name);
  }
  samples.values = bytes.take();
  return samples;
}

// The folders of the parts; without `train` there are none.
struct Parts {
  std::string train, test;
};

// A folder "train" that has images of its own is a class, unless a test part stands beside it.
Result<Parts> parts_in(const std::string& folder) {
  constexpr std::array<std::string_view, 4> kTest{"test", "val", "valid", "validation"};
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, entries_of(folder));
  Parts parts;
  std::vector<std::string> tests, others;
  std::optional<fs::path> train;
  for (const fs::path& entry : entries) {
    if (!has_folder(entry)) continue;
    const std::string name = entry.filename().string();
    if (name == "train") {
      train = entry;
    } else {
      (std::ranges::find(kTest, name) != kTest.end() ? tests : others).push_back(name);
    }
  }
  if (!train) return parts;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<fs::path> within, entries_of(train->string()));
  if (tests.empty() && std::ranges::none_of(within, has_folder)) return parts;
  parts.train = train->string();
  if (tests.size() > 1 || !others.empty()) {
    const std::string test = tests.empty() ? "" : fmt::format(" --test-data={}/{}", folder, tests.front());
    others.insert(others.begin(), tests.begin(), tests.end());
    return Status::data_loss(
        fmt::format("{0}: has train/ and {1}/ with it, expected one test part beside it, test/ or val/; to "
                    "leave the others out, name what is to be read: --dataset={0}/train{2}",
                    folder, fmt::join(others, "/, "), test));
  }
  if (!tests.empty()) parts.test = folder + "/" + tests.front();
  return parts;
}

}  // namespace

Result<OwnFiles> read_image_folder(const std::string& given, const OwnOptions& options) {
  const std::string folder = given.ends_with('/') ? given.substr(0, given.size() - 1) : given;
  if (!options.target.empty()) {
    return Status::invalid_argument(
        fmt::format("--target={}: the class of an image is the folder that it lies in; leave it out", options.target));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const Parts parts, parts_in(folder));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<ImagePath> train, images_in(parts.train.empty() ? folder : parts.train));
  std::vector<ImagePath> test;
  if (!parts.test.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(test, images_in(parts.test));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const bool colour, any_is_colour(train));
  OwnFiles files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.samples, read_images(folder, train, colour, options));
  if (test.empty()) return files;
  SYNCOPATE_ASSIGN_OR_RETURN(files.test, read_images(parts.test, test, colour, options));
  return files;
}

}  // namespace syncopate::worker
