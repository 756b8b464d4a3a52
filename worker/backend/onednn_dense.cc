#include "worker/backend/onednn_dense.h"

#include <algorithm>

namespace syncopate::worker {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// A row-major matrix, or one that is read transposed: then `rows` and `columns` are those of the transposed matrix.
memory::desc matrix(int rows, int columns) { return {{rows, columns}, memory::data_type::f32, Tag::ab}; }
memory::desc transposed(int rows, int columns) { return {{rows, columns}, memory::data_type::f32, Tag::ba}; }

OneDnnPrimitive make_product(const memory::desc& a, const memory::desc& b, const memory::desc& c,
                             const dnnl::engine& engine) {
  const dnnl::matmul::primitive_desc descriptor({a, b, c}, with_own_scratchpad(), engine);
  return OneDnnPrimitive::make<dnnl::matmul>(descriptor, engine,
                                             {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
}

OneDnnPrimitive make_product_and_bias(const memory::desc& a, const memory::desc& b, const memory::desc& bias,
                                      const memory::desc& c, bool relu, const dnnl::engine& engine) {
  dnnl::primitive_attr attributes = with_own_scratchpad();
  if (relu) {
    dnnl::post_ops then;
    then.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
    attributes.set_post_ops(then);
  }
  const dnnl::matmul::primitive_desc descriptor({a, b, bias, c}, attributes, engine);
  return OneDnnPrimitive::make<dnnl::matmul>(
      descriptor, engine, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, c}});
}

}  // namespace

OneDnnDense::OneDnnDense(const DenseShape& s, const dnnl::engine& engine)
    : shape_(s),
      forward_(s.bias ? make_product_and_bias(matrix(s.batch, s.in), transposed(s.in, s.out), matrix(1, s.out),
                                              matrix(s.batch, s.out), s.relu, engine)
                      : make_product(matrix(s.batch, s.in), transposed(s.in, s.out), matrix(s.batch, s.out), engine)),
      backward_weights_(make_product(transposed(s.out, s.batch), matrix(s.batch, s.in), matrix(s.out, s.in), engine)),
      backward_data_(make_product(matrix(s.batch, s.out), matrix(s.out, s.in), matrix(s.batch, s.in), engine)) {}

void OneDnnDense::forward(dnnl::stream& stream, In x, In w, In b, Out y) {
  forward_.bind(DNNL_ARG_SRC, x.data());
  forward_.bind(DNNL_ARG_WEIGHTS, w.data());
  if (shape_.bias) forward_.bind(DNNL_ARG_BIAS, b.data());
  forward_.bind(DNNL_ARG_DST, y.data());
  forward_.run(stream);
}

void OneDnnDense::backward(dnnl::stream& stream, In x, In w, In dy, Out dw, Out dx) {
  if (!dw.empty()) {
    backward_weights_.bind(DNNL_ARG_SRC, dy.data());
    backward_weights_.bind(DNNL_ARG_WEIGHTS, x.data());
    backward_weights_.bind(DNNL_ARG_DST, dw.data());
    backward_weights_.run(stream);
  }
  if (dx.empty()) return;
  backward_data_.bind(DNNL_ARG_SRC, dy.data());
  backward_data_.bind(DNNL_ARG_WEIGHTS, w.data());
  backward_data_.bind(DNNL_ARG_DST, dx.data());
  backward_data_.run(stream);
}

}  // namespace syncopate::worker
