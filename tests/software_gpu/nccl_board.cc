#include "tests/software_gpu/nccl_board.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace software_gpu {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRanksBytes = (sizeof(NcclBoard::Rank) * NcclBoard::kMostRanks + kPage - 1) / kPage * kPage;

// A child that nobody has waited for is as good as gone.
bool is_alive(int pid) {
  if (kill(pid, 0) != 0) return errno != ESRCH;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');
  return end_of_name != std::string::npos && end_of_name + 2 < line.size() && line[end_of_name + 2] != 'Z';
}

}  // namespace

NcclBoard::NcclBoard(const std::string& name, int rank, int size, int device)
    : path_("/software-gpu-" + name), rank_(rank), size_(size) {
  const int file = shm_open(path_.c_str(), O_CREAT | O_RDWR, 0600);
  const std::size_t bytes = kRanksBytes + kMostBytes * static_cast<std::size_t>(size);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    std::perror("software GPU: shared memory for NCCL");
    std::abort();
  }
  memory_ = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0));
  close(file);
  const char* const host = std::getenv("NCCL_HOSTID");
  std::snprintf(me().host, sizeof(me().host), "%s", host == nullptr ? "" : host);
  me().device = device;
  me().pid = getpid();
}

NcclBoard::Rank& NcclBoard::rank(int number) const { return reinterpret_cast<Rank*>(memory_)[number]; }

float* NcclBoard::slot(int number) const {
  return reinterpret_cast<float*>(memory_ + kRanksBytes + kMostBytes * static_cast<std::size_t>(number));
}

bool NcclBoard::all_have_come() const {
  for (int each = 0; each < size_; ++each) {
    if (rank(each).pid == 0) return false;
  }
  return true;
}

bool NcclBoard::all_connect() const {
  for (int each = 0; each < size_; ++each) {
    if (!rank(each).connects) return false;
  }
  return true;
}

std::string NcclBoard::duplicates() const {
  for (int one = 0; one < size_; ++one) {
    for (int other = 0; other < one; ++other) {
      if (rank(one).device != rank(other).device || std::strcmp(rank(one).host, rank(other).host) != 0) continue;
      return "rank " + std::to_string(one) + " and rank " + std::to_string(other);
    }
  }
  return "";
}

bool NcclBoard::has_lost_a_rank() const {
  for (int each = 0; each < size_; ++each) {
    const int pid = rank(each).pid;
    // It may have left in order since its number was read.
    if (pid > 0 && each != rank_ && !is_alive(pid) && rank(each).pid == pid) return true;
  }
  return false;
}

void NcclBoard::take_name_away() const { shm_unlink(path_.c_str()); }

}  // namespace software_gpu
