// EmbeddingKind: whether an embedding is a row-sparse table or an ordinary tensor (row_embedding.h).
#pragma once

namespace syncopate::worker {

enum class EmbeddingKind { kSparse, kDense };

}  // namespace syncopate::worker
