// The pure parts of PowerSGD (Vogels, Karimireddy, Jaggi 2019, "PowerSGD: practical low-rank gradient compression",
// algorithm 1): one step of the power iteration approximates a matrix M by P·Qᵀ, and only the factors are sent.
//
//   fill_empty_columns(Q)       all columns at first; later Q is that of the last step (warm start)
//   P = M·Q;   P summed over ranks;   orthogonalize(P)
//   Q = Mᵀ·P;  Q summed over ranks;   the sum of all M is about P·Qᵀ
//
// M is rows × columns, row by row. P has rows × rank and Q columns × rank elements, both column by column. Sums are
// computed in an order that depends only on the shape, so that ranks with the same factors get the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace syncopate::power_sgd {

struct Shape {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t rank = 0;

  std::size_t elements() const { return rows * columns; }
  std::size_t left_elements() const { return rows * rank; }      // in P
  std::size_t right_elements() const { return columns * rank; }  // in Q
  bool operator==(const Shape&) const = default;
};

// Returns how a tensor is approximated: as (first dimension, all others). Empty if it has fewer than 2 dimensions, or
// if its factors together have at least as many elements as the tensor: such a tensor is sent uncompressed.
std::optional<Shape> shape_of(std::span<const std::int64_t> dimensions, int rank);

// Draws those columns of Q anew from `key` that are zero, as all are at first and those of a matrix of lower rank
// become: a zero column would stay zero forever. `columns` elements each.
void fill_empty_columns(std::uint64_t key, std::size_t columns, std::span<float> right);

// P = M·Q
void left_factor(const Shape& shape, std::span<const float> matrix, std::span<const float> right,
                 std::span<float> left);

// Makes the columns of P, of `rows` elements each, orthonormal by the modified Gram-Schmidt process (Golub and Van
// Loan, "Matrix computations", algorithm 5.2.6). A column that depends on the ones before it, up to rounding, becomes
// zero. NaN stays, and spreads.
void orthogonalize(std::size_t rows, std::span<float> left);

// Q = Mᵀ·P
void right_factor(const Shape& shape, std::span<const float> matrix, std::span<const float> left,
                  std::span<float> right);

// M = P·Qᵀ
void reconstruct(const Shape& shape, std::span<const float> left, std::span<const float> right,
                 std::span<float> matrix);

// M -= P·Qᵀ: the remainder is what the factors have lost.
void subtract_product(const Shape& shape, std::span<const float> left, std::span<const float> right,
                      std::span<float> matrix);

}  // namespace syncopate::power_sgd
