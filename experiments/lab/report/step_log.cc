#include "experiments/lab/report/step_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

namespace syncopate::experiments {
namespace {

static_assert(std::is_trivially_copyable_v<StepRecord>);
constexpr std::size_t kRecordsAWrite = 256;

}  // namespace

StepLog::View::View(View&& other) noexcept : steps_(std::exchange(other.steps_, {})) {}

StepLog::View& StepLog::View::operator=(View&& other) noexcept {
  std::swap(steps_, other.steps_);
  return *this;
}

StepLog::View::~View() {
  if (!steps_.empty()) munmap(const_cast<StepRecord*>(steps_.data()), steps_.size_bytes());
}

StepLog::StepLog(FileDescriptor file, std::string directory)
    : file_(std::move(file)), directory_(std::move(directory)) {
  newest_.reserve(kRecordsAWrite);
}

Result<StepLog> StepLog::create(const std::string& directory) {
  std::string path = directory + "/.steps.XXXXXX";
  FileDescriptor file(mkostemp(path.data(), O_CLOEXEC));
  StepLog log(std::move(file), directory);
  if (!log.file_.open() || unlink(path.c_str()) != 0) return log.failure("be made");
  return log;
}

Status StepLog::add(const StepRecord& step) {
  newest_.push_back(step);
  return newest_.size() < kRecordsAWrite ? Status() : write_newest();
}

Status StepLog::write_newest() {
  const auto bytes = std::as_bytes(std::span(newest_));
  const std::size_t at = written_ * sizeof(StepRecord);
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (count < 0 && errno != EINTR) return failure("be written");
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  written_ += newest_.size();
  newest_.clear();
  return {};
}

Result<StepLog::View> StepLog::all() {
  SYNCOPATE_RETURN_IF_ERROR(write_newest());
  if (written_ == 0) return View();
  void* const memory = mmap(nullptr, written_ * sizeof(StepRecord), PROT_READ, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) return failure("be read");
  return View(std::span(static_cast<const StepRecord*>(memory), written_));
}

Status StepLog::failure(const char* what) const {
  return Status::resource_exhausted(
      fmt::format("{}: the file of the steps' records cannot {}: {}", directory_, what, std::strerror(errno)));
}

}  // namespace syncopate::experiments
