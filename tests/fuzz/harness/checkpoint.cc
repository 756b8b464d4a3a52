// A whole checkpoint: opened, verified and read as a run's processes do. The input says what is changed in one that is
// right: tensors, their names, types, shapes and places, what the manifest says of files, which files there are and
// what is in their place. Sums are made anew, so that what is changed is not found by them.
#include "experiments/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/tables/row_table.h"
#include "experiments/checkpoint/part_writer.h"
#include "ps/server/shard_state.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scratch_file.h"

namespace syncopate::fuzz {
namespace {

namespace fs = std::filesystem;

using experiments::Checkpoint;
using experiments::Manifest;
using experiments::Share;
using experiments::StateForms;
using experiments::StoredBlock;
using experiments::StoredFile;
using experiments::StoredKind;
using experiments::StoredPart;

ParamLayout layout() {
  ParamLayout layout;
  layout.add_table("embedding", 40, 2, {.rows_a_step = 8, .limit = 0.1f});
  layout.add("weight", {3, 7});  // padding behind it
  layout.add("bias", {5});
  return layout;
}

const StateForms& forms() {
  static const StateForms made = [] {
    ParamLayout local;
    local.add("mean", {3});
    return StateForms(layout(), local);
  }();
  return made;
}

void put(TrainingState& state, const std::string& name, Range range, float value) {
  state.put(name, range.begin, std::vector<float>(range.size(), value));
}

TrainingState shard(int number) {
  const Range dense = layout().dense();
  const Range range = number == 0 ? Range{dense.begin, dense.begin + 16} : Range{dense.begin + 16, dense.end};
  TrainingState state;
  state.step = 8;
  put(state, state_part::kWeights, range, 1);  // padding, too, which has a file of its own
  put(state, state_part::kOptimizer[0], range, 2);
  put(state, ps::shard_part::kSum, range, 3);
  const auto key = static_cast<RowKey>(number);
  state.rows[0] = {.row_floats = 4, .keys = {key, key + 2, key + 4}, .values = std::vector<float>(12, 1.5f)};
  ps::put_chunk_counts(range.begin, {.version = 8, .summed = 1, .summed_weight = 1, .clocks = ps::Clocks(2)}, state);
  ps::put_table_counts(0, static_cast<std::size_t>(number), 2, {.version = 8, .clocks = ps::Clocks(2)}, state);
  return state;
}

TrainingState worker(int rank) {
  TrainingState state;
  state.step = 8;
  put(state, state_part::residual_of(rank), layout().dense(), 0.5f);
  put(state, state_part::local_state_of(rank), {0, 3}, 4);
  put(state, "factors", {3, 5}, 6);
  state.counts["draws"] = {rank};
  return state;
}

struct Files {
  Manifest manifest;
  std::map<std::string, std::string> contents;  // by name
};

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

Files make_right() {
  const std::string folder = scratch_folder() + "/right";
  fs::create_directory(folder);
  Files files{.manifest = {.run = "a-run", .step = 8, .facts = {{"model", "small"}}, .parts = {}}, .contents = {}};
  const auto add = [&](const experiments::PartOptions& options, const TrainingState& state) {
    const Result<StoredPart> part = experiments::write_part(options, forms(), state);
    require(part.ok(), "a part is written");
    files.manifest.parts.push_back(*part);
  };
  for (int i = 0; i < 2; ++i) add({.folder = folder, .writer = "shard-" + std::to_string(i)}, shard(i));
  for (int i = 0; i < 2; ++i) {
    const Share share = i == 0 ? Share::kAll : Share::kOwnOnly;
    add({.folder = folder, .writer = "worker-" + std::to_string(i), .share = share, .worker = i}, worker(i));
  }
  for (const StoredPart& part : files.manifest.parts) {
    for (const StoredFile& file : part.files) files.contents[file.name] = content_of(folder + "/" + file.name);
  }
  return files;
}

std::uint64_t any_number(Input& input) {
  constexpr std::uint64_t kEdges[] = {0,          1,          2,         32,         1u << 20,        UINT32_MAX,
                                      1ull << 32, 1ull << 50, INT64_MAX, 1ull << 63, UINT64_MAX - 63, UINT64_MAX};
  switch (input.below(3)) {
    case 0:
      return kEdges[input.below(std::size(kEdges))];
    case 1:
      return kEdges[input.below(std::size(kEdges))] - input.byte();
    default:
      return input.number();
  }
}

std::string any_part(Input& input) {
  const std::string parts[] = {"weights",
                               "optimizer.first",
                               "optimizer.second",
                               "residual.worker0",
                               "local_state.worker1",
                               "factors",
                               "softsync.sum",
                               "weights.replica1",
                               "0",
                               "1",
                               "local_state.",
                               "\x1b[2J",
                               "18446744073709551615",
                               "-1",
                               "weights.replica0"};
  return parts[input.below(std::size(parts))];
}

// Tensors of a file as its header says them, however wrong.
struct Tensor {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct Parsed {
  std::vector<Tensor> tensors;
  std::string data;
};

Parsed parsed(const std::string& content) {
  Parsed file;
  std::uint64_t length = 0;
  if (content.size() < sizeof(length)) return file;
  std::memcpy(&length, content.data(), sizeof(length));
  if (length > content.size() - sizeof(length)) return file;
  const auto header = nlohmann::json::parse(content.substr(sizeof(length), length), nullptr, false);
  file.data = content.substr(sizeof(length) + length);
  if (!header.is_object()) return file;
  try {
    for (const auto& [name, entry] : header.items()) {
      const auto& places = entry.at("data_offsets");
      file.tensors.push_back({name, entry.at("dtype"), entry.at("shape"), places.at(0), places.at(1)});
    }
  } catch (const nlohmann::json::exception&) {  // an earlier change has made something else of it
  }
  return file;
}

std::string written(const Parsed& file) {
  std::string header = "{";
  for (const Tensor& tensor : file.tensors) {
    const auto text = [](const nlohmann::json& json) {
      return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    header += (header.size() > 1 ? "," : "") + text(tensor.name) + R"(:{"dtype":)" + text(tensor.type) +
              R"(,"shape":)" + text(tensor.shape) + R"(,"data_offsets":)" +
              text(std::vector<std::uint64_t>{tensor.begin, tensor.end}) + "}";
  }
  header += "}";
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + file.data;
}

void change_tensor(Input& input, Parsed& file) {
  if (file.tensors.empty()) file.tensors.push_back({"3", "F32", {2}, 0, 8});
  Tensor& tensor = file.tensors[input.below(file.tensors.size())];
  switch (input.below(9)) {
    case 0:
      tensor.name = std::to_string(any_number(input));
      break;
    case 1:
      tensor.name = string_of(input.bytes(input.below(16)));
      break;
    case 2:
      tensor.type = input.coin() ? "I64" : input.coin() ? "F32" : "BF16";
      break;
    case 3:
      tensor.shape.resize(input.below(4));
      for (std::uint64_t& length : tensor.shape) length = any_number(input);
      break;
    case 4:
      tensor.begin = any_number(input);
      break;
    case 5:
      tensor.end = any_number(input);
      break;
    case 6:
      file.tensors.push_back(tensor);
      file.tensors.back().name += "0";
      break;
    case 7:
      std::swap(tensor, file.tensors.back());
      if (input.coin()) file.tensors.pop_back();
      break;
    default: {  // values: keys of rows, and any
      const std::uint64_t value = any_number(input);
      const std::size_t at = input.value<std::uint16_t>();
      if (at + sizeof(value) <= file.data.size()) std::memcpy(file.data.data() + at, &value, sizeof(value));
    }
  }
}

// So that shape, places and data are of one mind again: a change of one of them is not found by the others.
void fit(Parsed& file) {
  std::uint64_t at = 0;
  for (Tensor& tensor : file.tensors) {
    std::uint64_t bytes = tensor.type == "I64" ? 8 : 4;
    for (std::uint64_t& length : tensor.shape) bytes *= length %= 64;
    if (bytes > 4096) {
      tensor.shape = {1};
      bytes = tensor.type == "I64" ? 8 : 4;
    }
    tensor.begin = at;
    tensor.end = at += bytes;
  }
  file.data.resize(at);
}

StoredFile& any_file(Input& input, Manifest& manifest) {
  StoredPart& part = manifest.parts[input.below(manifest.parts.size())];
  if (part.files.empty())
    part.files.push_back({.name = "more.safetensors", .kind = StoredKind::kPieces, .part = "more"});
  return part.files[input.below(part.files.size())];
}

void change_manifest(Input& input, Files& files) {
  StoredFile& file = any_file(input, files.manifest);
  StoredPart& part = files.manifest.parts[input.below(files.manifest.parts.size())];
  switch (input.below(10)) {
    case 0:
      file.part = any_part(input);
      break;
    case 1:
      file.kind = static_cast<StoredKind>(input.below(3));
      break;
    case 2:
      file.name = input.coin() ? "../../etc/passwd" : file.part + ".safetensors";
      break;
    case 3:
      file.pieces.push_back({any_number(input), any_number(input)});
      break;
    case 4:
      for (Range& piece : file.pieces) (input.coin() ? piece.begin : piece.end) = any_number(input);
      break;
    case 5: {
      StoredFile again = file;
      again.name = "again.safetensors";
      files.contents[again.name] = files.contents[file.name];
      part.files.push_back(std::move(again));
      break;
    }
    case 6:
      part.writer = input.coin() ? "worker-0" : "shard-1";
      part.step = static_cast<std::int64_t>(any_number(input));
      break;
    case 7:
      for (auto& [name, values] : part.counts) {
        if (!values.empty()) values[input.below(values.size())] = static_cast<std::int64_t>(any_number(input));
      }
      break;
    case 8:
      files.manifest.parts.erase(files.manifest.parts.begin() +
                                 static_cast<std::ptrdiff_t>(input.below(files.manifest.parts.size())));
      if (files.manifest.parts.empty()) files.manifest.parts.emplace_back().writer = "worker-0";
      break;
    default:
      files.manifest.step = static_cast<std::int64_t>(any_number(input));
  }
}

// Sums as they should be, as far as what is said can be found at all.
void mend(Files& files) {
  const StateForms& model = forms();
  for (StoredPart& part : files.manifest.parts) {
    for (StoredFile& file : part.files) {
      const std::string& content = files.contents[file.name];
      file.bytes = content.size();
      const experiments::ArenaForm* const form = model.form_of(file.part);
      if (file.kind != StoredKind::kArena || form == nullptr) {
        file.sums = experiments::sums_of(content, experiments::Digests::kNo);
        continue;
      }
      file.sums = experiments::sums_of(form->header(), experiments::Digests::kNo);
      file.blocks.clear();
      for (const Range& piece : file.pieces) {
        if (piece.begin >= piece.end || piece.end > 4096) continue;
        for (const Range& block : experiments::blocks_of(piece)) {
          experiments::Checksum checksum;
          for (const auto& stretch : form->stretches(block)) {
            const std::string_view bytes = std::string_view(content).substr(
                std::min<std::size_t>(stretch.offset, content.size()), stretch.range.size() * sizeof(float));
            checksum.add(std::as_bytes(std::span(bytes)));
          }
          file.blocks.push_back({block, {.checksum = checksum.value()}});
        }
      }
    }
  }
}

std::string resealed(std::string body) {
  return "{\"checksum\": \"" + experiments::checksum_text(experiments::checksum_of(body)) +
         "\",\n\"manifest\": " + body + "}\n";
}

// Text of a manifest in the place of some other text of it.
void change_text(Input& input, std::string& text) {
  const Result<experiments::SealedManifest> sealed = experiments::open_seal(text);
  if (!sealed.ok()) return;
  std::string body(sealed->body);
  const std::size_t at = input.value<std::uint16_t>() % (body.size() + 1);
  body.replace(at, std::min<std::size_t>(input.below(24), body.size() - at), string_of(input.bytes(input.below(24))));
  text = resealed(body);
}

// Something else in the place of a file.
void put_something_else(Input& input, const std::string& path, std::uint64_t bytes) {
  std::error_code ignored;
  if (input.below(6) != 0) fs::remove(path, ignored);
  switch (input.below(5)) {
    case 0:
      return;
    case 1:
      return fs::create_symlink("/dev/zero", path, ignored);
    case 2:
      return (void)mkfifo(path.c_str(), 0600);
    case 3:
      return (void)fs::create_directory(path, ignored);
    default:  // without blocks on the disk
      std::ofstream(path, std::ios::app).close();
      fs::resize_file(path, std::min(bytes, std::uint64_t{1} << 43), ignored);
  }
}

void check_state(const TrainingState& state) {
  const std::size_t most = layout().size();
  for (const std::string& name : state.names()) {
    std::size_t reached = 0;
    for (const Range& piece : state.pieces(name)) {
      require(piece.begin >= reached && piece.end >= piece.begin && piece.end <= most, "pieces are the model's");
      reached = piece.end;
    }
  }
  for (const auto& [table, rows] : state.rows) {
    require(table == 0 && rows.row_floats % 2 == 0 && rows.values.size() == rows.keys.size() * rows.row_floats,
            "rows are the table's");
    for (std::size_t i = 0; i < rows.keys.size(); ++i) {
      require(rows.keys[i] < 40 && (i == 0 || rows.keys[i] > rows.keys[i - 1]), "keys ascend, and are of rows");
    }
    RowTable made({.table = 0, .width = 2, .optimizer = {.kind = OptimizerKind::kMomentum}});
    (void)made.restore(rows);
  }
  (void)ps::chunk_counts(layout().dense(), 2, 1, state);
  (void)ps::table_counts(0, 0, 2, 2, state);
}

void read_as_processes_do(const std::string& folder) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (!checkpoint.ok()) return;
  const StateForms& model = forms();
  (void)checkpoint->verify(model);
  const Range dense = layout().dense();
  const experiments::CheckpointSelection readers[] = {{.worker = 0},
                                                      {.worker = 1, .alone = true},
                                                      {.ranges = std::vector<Range>{{dense.begin, dense.begin + 16}},
                                                       .row = [](std::size_t, RowKey key) { return key % 2 == 0; }}};
  for (const experiments::CheckpointSelection& wanted : readers) {
    TrainingState state;
    if (checkpoint->read(model, wanted, state).ok()) check_state(state);
  }
}

// A folder with these files and nothing else. What has been there since the last time is not written again.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) { fs::create_directory(path_); }

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

  void fill(const std::map<std::string, std::string>& contents) {
    for (const auto& [name, content] : written_) {
      if (!contents.contains(name)) fs::remove_all(path(name));
    }
    for (const auto& [name, content] : contents) {
      const auto before = written_.find(name);
      if (before == written_.end() || before->second != content) std::ofstream(path(name), std::ios::binary) << content;
    }
    written_ = contents;
  }
  // What is there is not what was written.
  void forget(const std::string& name) {
    written_.erase(name);
    forgotten_.push_back(name);
  }
  void clean() {
    for (const std::string& name : forgotten_) fs::remove_all(path(name));
    forgotten_.clear();
  }

 private:
  const std::string path_;
  std::map<std::string, std::string> written_;  // by name
  std::vector<std::string> forgotten_;
};

const Harness checkpoint("checkpoint", [](Bytes bytes) {
  static const Files right = make_right();
  Input input(bytes);
  Files files = right;
  bool is_mended = true;
  for (int i = 0; i < 8 && !input.empty(); ++i) {
    const StoredFile file = any_file(input, files.manifest);
    std::string& content = files.contents[file.name];
    switch (input.below(6)) {
      case 0:
      case 1: {
        Parsed tensors = parsed(content);
        change_tensor(input, tensors);
        if (input.coin()) fit(tensors);
        content = written(tensors);
        break;
      }
      case 2:
        change_manifest(input, files);
        break;
      case 3: {
        const std::size_t at = input.value<std::uint16_t>();
        if (at < content.size()) content[at] = static_cast<char>(input.byte());
        break;
      }
      case 4:
        content.resize(input.below(200));
        break;
      default:
        is_mended = input.coin();
    }
  }
  if (is_mended) mend(files);
  if (input.coin()) any_file(input, files.manifest).bytes = any_number(input);
  std::string text = experiments::to_text(files.manifest);
  if (input.coin()) change_text(input, text);
  static Folder folder(scratch_folder() + "/step-000008");
  std::erase_if(files.contents, [](const auto& file) { return file.first.find('/') != std::string::npos; });
  files.contents[experiments::kManifestFile] = text;
  folder.fill(files.contents);
  if (input.coin()) {
    const StoredFile file = any_file(input, files.manifest);
    if (file.name.find('/') == std::string::npos) {
      put_something_else(input, folder.path(file.name), file.bytes);
      folder.forget(file.name);
    }
  }
  read_as_processes_do(folder.path());
  folder.clean();
});

}  // namespace
}  // namespace syncopate::fuzz
