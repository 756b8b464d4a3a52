#include "worker/recommender/make_recommender.h"

#include <fmt/format.h>

#include <string_view>

#include "worker/data/text_lines.h"
#include "worker/recommender/ncf.h"
#include "worker/recommender/wide_deep.h"

namespace syncopate::worker {
namespace {

constexpr int kMostDimensions = 1024;

Result<RecommenderShape> parse(const std::string& spec, int batch_size) {
  RecommenderShape shape{.name = spec, .batch_size = batch_size};
  std::string_view rest = std::string_view(spec).substr(family_of(spec).size());
  if (rest.ends_with(kDenseSuffix)) {
    shape.kind = EmbeddingKind::kDense;
    rest.remove_suffix(kDenseSuffix.size());
  }
  if (rest.empty()) return shape;
  const std::optional<int> dimensions = parse_number<int>(rest.substr(1));
  if (!dimensions || *dimensions < 1 || *dimensions > kMostDimensions) {
    return invalid_model(spec, fmt::format("'{}' must be the width of an embedding, 1 to {}, as in {}:16",
                                           rest.substr(1), kMostDimensions, family_of(spec)));
  }
  shape.dimensions = *dimensions;
  return shape;
}

Status check_form(const std::string& spec, const SampleForm& form) {
  const bool is_ncf = family_of(spec) == kNcf;
  const bool pairs = form.ids.size() == 2 && form.id_columns() == 2;
  if (form.classes == 2 && form.labels == 1 && (is_ncf ? pairs : !form.ids.empty())) return {};
  return invalid_model(
      spec, fmt::format("learns from {} whether it is so or not, as in --dataset={}; the data has {} fields of "
                        "ids, {} ids a sample, and {} classes",
                        is_ncf ? "a user and an item" : "ids", is_ncf ? "ratings" : "clicks", form.ids.size(),
                        form.id_columns(), form.classes));
}

Status check_size(const RecommenderShape& shape, const SampleForm& form, int row_width) {
  if (shape.kind == EmbeddingKind::kSparse) return {};
  std::int64_t values = 0;
  for (const IdField& field : form.ids) values += field.range * row_width;
  if (values <= kMostDenseEmbeddings) return {};
  return Status::invalid_argument(
      fmt::format("--embeddings=dense: tables of {} values are too large for ordinary tensors, of which each has a "
                  "gradient; at most {}, or --embeddings=sparse",
                  values, kMostDenseEmbeddings));
}

}  // namespace

Result<std::unique_ptr<Model>> make_recommender(const std::string& spec, const SampleForm& form, int batch_size,
                                                ComputeBackend& backend) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RecommenderShape shape, parse(spec, batch_size));
  SYNCOPATE_RETURN_IF_ERROR(check_form(spec, form));
  const bool is_ncf = family_of(spec) == kNcf;
  SYNCOPATE_RETURN_IF_ERROR(check_size(shape, form, is_ncf ? Ncf::row_width(shape) : WideDeep::row_width(shape)));
  std::unique_ptr<Model> model;
  if (is_ncf) {
    model = std::make_unique<Ncf>(shape, form, backend);
  } else {
    model = std::make_unique<WideDeep>(shape, form, backend);
  }
  SYNCOPATE_RETURN_IF_ERROR(backend.status().in("--model=" + spec));
  return model;
}

}  // namespace syncopate::worker
