#include "common/device/gpu_inventory.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

// CUDA's header is not there where there is no toolkit: what is used of the driver's interface is declared here. Its
// names carry their versions, so that their types do not change (CUDA Driver API, sections 6.2 to 6.5).

namespace syncopate {
namespace {

using DriverResult = int;  // CUresult
using DeviceHandle = int;  // CUdevice

constexpr DriverResult kSuccess = 0;
constexpr int kCapabilityMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kCapabilityMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR

struct Driver {
  DriverResult (*error_name)(DriverResult, const char**) = nullptr;
  DriverResult (*init)(unsigned) = nullptr;
  DriverResult (*device_count)(int*) = nullptr;
  DriverResult (*device)(DeviceHandle*, int) = nullptr;
  DriverResult (*device_name)(char*, int, DeviceHandle) = nullptr;
  DriverResult (*device_memory)(std::size_t*, DeviceHandle) = nullptr;
  DriverResult (*device_attribute)(int*, int, DeviceHandle) = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

Result<Driver> load_driver() {
  // Never closed: the driver is not made to be unloaded.
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return Status::not_found(fmt::format("no NVIDIA driver on this machine: libcuda.so.1 cannot be loaded ({})",
                                         why == nullptr ? "no reason given" : why));
  }
  Driver driver;
  if (find(library, "cuGetErrorName", driver.error_name) && find(library, "cuInit", driver.init) &&
      find(library, "cuDeviceGetCount", driver.device_count) && find(library, "cuDeviceGet", driver.device) &&
      find(library, "cuDeviceGetName", driver.device_name) &&
      find(library, "cuDeviceTotalMem_v2", driver.device_memory) &&
      find(library, "cuDeviceGetAttribute", driver.device_attribute)) {
    return driver;
  }
  return Status::not_found("libcuda.so.1 is not an NVIDIA driver that can be used: it lacks functions");
}

Status refusal(const Driver& driver, const char* call, DriverResult result) {
  const char* name = nullptr;
  const bool named = driver.error_name(result, &name) == kSuccess && name != nullptr;
  std::string message = fmt::format("the NVIDIA driver finds no GPU ({}: {})", call,
                                    named ? std::string(name) : fmt::format("error {}", result));
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    message += fmt::format("; CUDA_VISIBLE_DEVICES=\"{}\" may hide some", visible);
  }
  return Status::not_found(message);
}

Result<Gpu> describe(const Driver& driver, int index) {
  DeviceHandle device = 0;
  if (const DriverResult result = driver.device(&device, index)) return refusal(driver, "cuDeviceGet", result);
  Gpu gpu;
  char name[256] = {};
  if (const DriverResult result = driver.device_name(name, sizeof(name) - 1, device)) {
    return refusal(driver, "cuDeviceGetName", result);
  }
  gpu.name = name;
  if (const DriverResult result = driver.device_memory(&gpu.memory_bytes, device)) {
    return refusal(driver, "cuDeviceTotalMem", result);
  }
  for (const auto& [attribute, value] :
       {std::pair(kCapabilityMajor, &gpu.major), std::pair(kCapabilityMinor, &gpu.minor)}) {
    if (const DriverResult result = driver.device_attribute(value, attribute, device)) {
      return refusal(driver, "cuDeviceGetAttribute", result);
    }
  }
  return gpu;
}

}  // namespace

std::string describe(const Gpu& gpu, int index) {
  constexpr std::size_t kGiB = std::size_t{1} << 30, kMiB = std::size_t{1} << 20;
  const bool is_large = gpu.memory_bytes >= kGiB;
  return fmt::format("{} (GPU {}, {} {})", gpu.name, index, gpu.memory_bytes / (is_large ? kGiB : kMiB),
                     is_large ? "GiB" : "MiB");
}

Result<std::vector<Gpu>> find_gpus() {
  SYNCOPATE_ASSIGN_OR_RETURN(const Driver driver, load_driver());
  if (const DriverResult result = driver.init(0)) return refusal(driver, "cuInit", result);
  int count = 0;
  if (const DriverResult result = driver.device_count(&count)) return refusal(driver, "cuDeviceGetCount", result);
  if (count <= 0) return refusal(driver, "cuDeviceGetCount", 100);  // CUDA_ERROR_NO_DEVICE
  std::vector<Gpu> gpus;
  for (int index = 0; index < count; ++index) {
    SYNCOPATE_ASSIGN_OR_RETURN(Gpu gpu, describe(driver, index));
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

}  // namespace syncopate
