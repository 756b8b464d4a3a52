#include "worker/backend/onednn_conv.h"

namespace syncopate::worker {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

OneDnnPrimitive make_reorder(const memory::desc& from, const memory::desc& to, const dnnl::engine& engine) {
  const dnnl::reorder::primitive_desc descriptor(engine, from, engine, to, with_own_scratchpad());
  return OneDnnPrimitive::make<dnnl::reorder>(descriptor, engine, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

float* data_of(const memory& buffer) { return static_cast<float*>(buffer.get_data_handle()); }

}  // namespace

struct OneDnnConv::Descriptors {
  Descriptors(const ConvShape& s, const dnnl::engine& engine)
      : x({s.batch, s.in, s.height, s.width}, kFloat, Tag::nhwc),
        y({s.batch, s.out, s.out_height(), s.out_width()}, kFloat, Tag::nhwc),
        bias(s.bias ? memory::desc({s.out}, kFloat, Tag::x) : memory::desc()),
        arena_weights({s.out, s.in, s.kernel, s.kernel}, kFloat, Tag::ohwi),
        stride({s.stride, s.stride}),
        padding({s.padding, s.padding}),
        any_weights({s.out, s.in, s.kernel, s.kernel}, kFloat, Tag::any),
        forward({dnnl::prop_kind::forward_training, kAlgorithm, x, any_weights, bias, y, stride, padding, padding},
                with_own_scratchpad(), engine),
        backward_weights({kAlgorithm, x, any_weights, bias, y, stride, padding, padding}, with_own_scratchpad(), engine,
                         forward),
        backward_data({kAlgorithm, x, any_weights, y, stride, padding, padding}, with_own_scratchpad(), engine,
                      forward) {}

  static constexpr auto kAlgorithm = dnnl::algorithm::convolution_direct;

  memory::desc x, y, bias, arena_weights;
  memory::dims stride, padding;
  memory::desc any_weights;
  dnnl::convolution_forward::primitive_desc forward;
  dnnl::convolution_backward_weights::primitive_desc backward_weights;
  dnnl::convolution_backward_data::primitive_desc backward_data;
};

OneDnnConv::OneDnnConv(const ConvShape& shape, const dnnl::engine& engine)
    : OneDnnConv(shape, engine, Descriptors(shape, engine)) {}

OneDnnConv::OneDnnConv(const ConvShape& shape, const dnnl::engine& engine, const Descriptors& d)
    : shape_(shape),
      forward_{OneDnnPrimitive::make<dnnl::convolution_forward>(d.forward, engine,
                                                                {{DNNL_ARG_SRC, d.x},
                                                                 {DNNL_ARG_WEIGHTS, d.forward.weights_desc()},
                                                                 {DNNL_ARG_BIAS, d.bias},
                                                                 {DNNL_ARG_DST, d.y}}),
               memory(d.forward.weights_desc(), engine),
               make_reorder(d.arena_weights, d.forward.weights_desc(), engine)},
      backward_weights_{OneDnnPrimitive::make<dnnl::convolution_backward_weights>(
                            d.backward_weights, engine,
                            {{DNNL_ARG_SRC, d.x},
                             {DNNL_ARG_DIFF_DST, d.y},
                             {DNNL_ARG_DIFF_WEIGHTS, d.backward_weights.diff_weights_desc()},
                             {DNNL_ARG_DIFF_BIAS, d.bias}}),
                        memory(d.backward_weights.diff_weights_desc(), engine),
                        make_reorder(d.backward_weights.diff_weights_desc(), d.arena_weights, engine)},
      backward_data_{
          OneDnnPrimitive::make<dnnl::convolution_backward_data>(
              d.backward_data, engine,
              {{DNNL_ARG_DIFF_DST, d.y}, {DNNL_ARG_WEIGHTS, d.backward_data.weights_desc()}, {DNNL_ARG_DIFF_SRC, d.x}}),
          memory(d.backward_data.weights_desc(), engine),
          make_reorder(d.arena_weights, d.backward_data.weights_desc(), engine)} {}

void OneDnnConv::forward(dnnl::stream& stream, In x, In w, In b, Out y) {
  forward_.reorder.bind(DNNL_ARG_FROM, w.data());
  forward_.reorder.bind(DNNL_ARG_TO, data_of(forward_.weights));
  forward_.reorder.run(stream);
  forward_.primitive.bind(DNNL_ARG_SRC, x.data());
  forward_.primitive.bind(DNNL_ARG_WEIGHTS, data_of(forward_.weights));
  if (shape_.bias) forward_.primitive.bind(DNNL_ARG_BIAS, b.data());
  forward_.primitive.bind(DNNL_ARG_DST, y.data());
  forward_.primitive.run(stream);
}

void OneDnnConv::backward(dnnl::stream& stream, In x, In w, In dy, Out dw, Out db, Out dx) {
  if (!dw.empty()) {
    backward_weights_.primitive.bind(DNNL_ARG_SRC, x.data());
    backward_weights_.primitive.bind(DNNL_ARG_DIFF_DST, dy.data());
    backward_weights_.primitive.bind(DNNL_ARG_DIFF_WEIGHTS, data_of(backward_weights_.weights));
    if (shape_.bias) backward_weights_.primitive.bind(DNNL_ARG_DIFF_BIAS, db.data());
    backward_weights_.primitive.run(stream);
    backward_weights_.reorder.bind(DNNL_ARG_FROM, data_of(backward_weights_.weights));
    backward_weights_.reorder.bind(DNNL_ARG_TO, dw.data());
    backward_weights_.reorder.run(stream);
  }
  if (dx.empty()) return;
  backward_data_.reorder.bind(DNNL_ARG_FROM, w.data());
  backward_data_.reorder.bind(DNNL_ARG_TO, data_of(backward_data_.weights));
  backward_data_.reorder.run(stream);
  backward_data_.primitive.bind(DNNL_ARG_DIFF_DST, dy.data());
  backward_data_.primitive.bind(DNNL_ARG_WEIGHTS, data_of(backward_data_.weights));
  backward_data_.primitive.bind(DNNL_ARG_DIFF_SRC, dx.data());
  backward_data_.primitive.run(stream);
}

}  // namespace syncopate::worker
