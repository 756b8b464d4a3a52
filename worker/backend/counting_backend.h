// The counting backend: writes down what each operation is for a GPU, and computes nothing. A model that is made on it
// and runs one pass thereby lists the work of the pass, launch by launch, as CudaBackend gives it to a GPU that adds
// biases within products.
#pragma once

#include <memory>
#include <vector>

#include "worker/backend/compute_backend.h"
#include "worker/backend/counted_operation.h"

namespace syncopate::worker {

// What it allocates takes addresses and no memory, as that of make_address_backend(true); nothing may read or write
// there, and upload() does nothing. Its element_type() is `type`. Each operation is appended to `operations`, which
// must outlive the backend.
std::unique_ptr<ComputeBackend> make_counting_backend(ElementType type, std::vector<CountedOperation>& operations);

}  // namespace syncopate::worker
