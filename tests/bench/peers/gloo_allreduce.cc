// Gloo's allreduce over tcp on loopback, float32, in place: what allreduce_bench starts as a peer, a process a rank.
//
//   gloo_allreduce RANK SIZE STORE_DIRECTORY ring|bcube|halving-doubling SECONDS BYTES...
//
// Rank 0 prints the mean seconds of an operation, a line a size.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Compiled here for this machine: Gloo's own is for any.
void sum(void* result, const void* a, const void* b, std::size_t count) {
  auto* to = static_cast<float*>(result);
  const auto* x = static_cast<const float*>(a);
  const auto* y = static_cast<const float*>(b);
  for (std::size_t i = 0; i < count; ++i) to[i] = x[i] + y[i];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]);
  const std::string algorithm = argv[4];
  const double seconds = std::atof(argv[5]);
  gloo::transport::tcp::attr attributes;
  attributes.iface = "lo";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(argv[3]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  std::uint32_t tag = 0;
  const auto barrier = [&] {
    gloo::BarrierOptions options(context);
    options.setTag(1u << 20);
    gloo::barrier(options);
  };
  for (int at = 6; at < argc; ++at) {
    std::vector<float> buffer(std::strtoull(argv[at], nullptr, 10) / sizeof(float));
    std::unique_ptr<gloo::AllreduceHalvingDoubling<float>> halving;
    if (algorithm == "halving-doubling") {
      halving = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, std::vector<float*>{buffer.data()},
                                                                        static_cast<int>(buffer.size()));
    }
    const auto all_reduce = [&] {
      if (halving) return halving->run();
      gloo::AllreduceOptions options(context);
      options.setOutput(buffer.data(), buffer.size());
      options.setReduceFunction(sum);
      options.setTag(++tag & 0xffff);
      options.setAlgorithm(algorithm == "ring" ? gloo::AllreduceOptions::Algorithm::RING
                                               : gloo::AllreduceOptions::Algorithm::BCUBE);
      gloo::allreduce(options);
    };
    const auto timed = [&](int operations) {
      barrier();
      const double begin = now();
      for (int i = 0; i < operations; ++i) all_reduce();
      return (now() - begin) / operations;
    };
    timed(2);
    std::fill(buffer.begin(), buffer.end(), static_cast<float>(rank + 1));
    all_reduce();
    if (buffer.back() != static_cast<float>(size * (size + 1) / 2)) return 1;
    std::fill(buffer.begin(), buffer.end(), 0.0f);
    int operations = static_cast<int>(std::clamp(seconds / timed(3), 3.0, 20000.0));
    gloo::BroadcastOptions same(context);
    same.setOutput(&operations, 1);
    same.setRoot(0);
    same.setTag(1u << 21);
    gloo::broadcast(same);
    const double mean = timed(operations);
    if (rank == 0) std::printf("%.9f\n", mean);
    std::fflush(stdout);
  }
  barrier();
  return 0;
}
