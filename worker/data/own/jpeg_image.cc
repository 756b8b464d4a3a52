#include <fmt/format.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>

#include "worker/data/own/image_decoders.h"

namespace syncopate::worker {
namespace {

// The library reports an error by a call that must not return, so it jumps out of the library, past frames of C alone.
struct JpegFailure {
  jpeg_error_mgr manager{};  // first, so that the library's pointer to it is one to this
  std::jmp_buf leave{};
  char message[JMSG_LENGTH_MAX] = {};
};

void on_error(j_common_ptr common) {
  auto* const failure = reinterpret_cast<JpegFailure*>(common->err);
  failure->manager.format_message(common, failure->message);
  std::longjmp(failure->leave, 1);
}

// What the library only warns of, and goes on with pixels of its own making, is damage: truncated data, say.
void on_message(j_common_ptr common, int level) {
  if (level < 0) on_error(common);
}

// A few bytes can ask for passes without end over a large image.
void on_progress(j_common_ptr common) {
  constexpr int kMostScans = 500;
  if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number > kMostScans) on_error(common);
}

// Calls `step` and returns whether the library came back from it. `step` must own nothing.
template <typename Step>
bool carried_out(JpegFailure& failure, Step step) {
  if (setjmp(failure.leave) != 0) return false;
  step();
  return true;
}

class JpegReading {
 public:
  JpegReading() {
    jpeg_.err = ::jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = on_error;
    failure_.manager.emit_message = on_message;
    created_ = carried_out(failure_, [this] { jpeg_create_decompress(&jpeg_); });
    progress_.progress_monitor = on_progress;
    jpeg_.progress = &progress_;
    // Progressive files keep all coefficients: twice the bytes of the largest image is enough.
    if (created_) jpeg_.mem->max_memory_to_use = 6L * kLongestImageSide * kLongestImageSide;
  }
  JpegReading(const JpegReading&) = delete;
  JpegReading& operator=(const JpegReading&) = delete;
  ~JpegReading() {
    if (created_) ::jpeg_destroy_decompress(&jpeg_);
  }

  bool created() const { return created_; }
  JpegFailure& failure() { return failure_; }
  jpeg_decompress_struct& jpeg() { return jpeg_; }

 private:
  JpegFailure failure_;
  jpeg_decompress_struct jpeg_{};
  jpeg_progress_mgr progress_{};
  bool created_ = false;
};

}  // namespace

Result<DecodedImage> decode_jpeg(std::span<const std::uint8_t> bytes) {
  JpegReading reading;
  JpegFailure& failure = reading.failure();
  jpeg_decompress_struct& jpeg = reading.jpeg();
  const auto broken = [&] { return Status::data_loss(fmt::format("no sound JPEG: {}", failure.message)); };
  if (!reading.created()) return broken();
  if (!carried_out(failure, [&] {
        ::jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
        (void)::jpeg_read_header(&jpeg, TRUE);
      })) {
    return broken();
  }
  SYNCOPATE_RETURN_IF_ERROR(check_image_sides(jpeg.image_height, jpeg.image_width));
  const bool is_grey = jpeg.jpeg_color_space == JCS_GRAYSCALE;
  if (!is_grey && jpeg.num_components != 3) {
    return Status::data_loss(fmt::format("a JPEG of {} channels, expected grey or colour", jpeg.num_components));
  }
  const std::size_t row = std::size_t{jpeg.image_width} * (is_grey ? 1 : 3);
  DecodedImage decoded{
      .shape = {static_cast<int>(jpeg.image_height), static_cast<int>(jpeg.image_width), is_grey ? 1 : 3},
      .pixels = std::vector<std::uint8_t>(row * jpeg.image_height)};
  std::uint8_t* const pixels = decoded.pixels.data();
  if (!carried_out(failure, [&] {
        jpeg.out_color_space = is_grey ? JCS_GRAYSCALE : JCS_RGB;
        (void)::jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < jpeg.output_height) {
          JSAMPROW to = pixels + row * jpeg.output_scanline;
          (void)::jpeg_read_scanlines(&jpeg, &to, 1);
        }
        (void)::jpeg_finish_decompress(&jpeg);
      })) {
    return broken();
  }
  return decoded;
}

}  // namespace syncopate::worker
