// CountedOperation: what one piece of work for a GPU computes, reads and writes. Plain data.
#pragma once

#include <string>

namespace syncopate::worker {

// Who does the work on a GPU: our own kernels, cuBLASLt, cuDNN.
enum class WorkKind { kKernel, kProduct, kConvolution };

// Each value that is read and each that is written counts once, however often an implementation reads it.
struct CountedOperation {
  std::string name;  // with its shape: "dense forward, 64 x 784 -> 256"
  WorkKind kind = WorkKind::kKernel;
  int launches = 1;
  // Multiplications and additions of products, convolutions and attention: a multiply and an add count as two. What
  // else an operation computes is not counted: no GPU takes longer for it than for the bytes.
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;
};

}  // namespace syncopate::worker
