#include "worker/data/digits_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <vector>

#include "common/os/whole_file.h"
#include "worker/data/digits.h"
#include "worker/data/idx_format.h"

namespace syncopate::worker {
namespace {

bool all_there(const std::string& folder) {
  const char* const names[] = {kIdxTrainImages, kIdxTrainLabels, kIdxTestImages, kIdxTestLabels};
  return std::ranges::all_of(names, [&](const char* name) {
    std::error_code ignored;  // what cannot be looked at is not there; making it will say why
    return std::filesystem::is_regular_file(folder + "/" + name, ignored);
  });
}

Status write_idx(const std::string& images_path, const std::string& labels_path, std::uint64_t seed,
                 std::uint64_t first, std::size_t count) {
  std::vector<std::uint8_t> images(kIdxImagesHeaderBytes + count * static_cast<std::size_t>(kDigitShape.values()));
  write_idx_word(images, 0, kIdxImagesMagic);
  write_idx_word(images, 1, static_cast<std::uint32_t>(count));
  write_idx_word(images, 2, static_cast<std::uint32_t>(kDigitShape.height));
  write_idx_word(images, 3, static_cast<std::uint32_t>(kDigitShape.width));
  std::vector<std::uint8_t> labels(kIdxLabelsHeaderBytes + count);
  write_idx_word(labels, 0, kIdxLabelsMagic);
  write_idx_word(labels, 1, static_cast<std::uint32_t>(count));
  render_digits(seed, first, std::span(images).subspan(kIdxImagesHeaderBytes),
                std::span(labels).subspan(kIdxLabelsHeaderBytes));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(images_path, std::as_bytes(std::span(images))));
  return write_whole_file(labels_path, std::as_bytes(std::span(labels)));
}

}  // namespace

std::string digits_folder(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts) {
  return fmt::format("{}/digits-{}-{}-seed{}-v{}", data_dir, counts.train, counts.test, seed, kDigitsVersion);
}

Result<std::string> ensure_digits(const std::string& data_dir, std::uint64_t seed, DigitsCounts counts) {
  const std::string folder = digits_folder(data_dir, seed, counts);
  if (all_there(folder)) return folder;
  // Before the work of drawing: a folder that cannot be made is told at once.
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  SYNCOPATE_RETURN_IF_ERROR(write_idx(folder + "/" + kIdxTrainImages, folder + "/" + kIdxTrainLabels, seed, 0,
                                      static_cast<std::size_t>(counts.train)));
  SYNCOPATE_RETURN_IF_ERROR(write_idx(folder + "/" + kIdxTestImages, folder + "/" + kIdxTestLabels, seed,
                                      kFirstTestDigit, static_cast<std::size_t>(counts.test)));
  return folder;
}

}  // namespace syncopate::worker
