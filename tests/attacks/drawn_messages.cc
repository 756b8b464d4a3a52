#include "tests/attacks/drawn_messages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "common/hash.h"
#include "common/transport/socket_frame.h"
#include "common/transport/zmq_frame.h"
#include "experiments/cluster/control/control.pb.h"
#include "ps/wire.pb.h"
#include "tests/fuzz/mutation.h"
#include "tests/support/rejection_lines.h"

namespace syncopate::attacks {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using testing_support::raw_connection;
using testing_support::send_with_files;

constexpr std::size_t kMostSockets = 16;
constexpr std::size_t kMostConnections = 32;
constexpr int kDeepest = 4;

std::int64_t drawn_number(Random& random) {
  switch (random.below(4)) {
    case 0:
      return static_cast<std::int64_t>(random.below(4));
    case 1:
      return static_cast<std::int64_t>(random.below(300)) - 5;
    case 2:
      return random.below(2) == 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
    default:
      return static_cast<std::int64_t>(random.next());
  }
}

double drawn_real(Random& random) {
  constexpr std::array<double, 5> kOdd = {0, -1, 1e300, std::numeric_limits<double>::infinity(),
                                          std::numeric_limits<double>::quiet_NaN()};
  return random.below(2) == 0 ? kOdd[random.below(kOdd.size())] : random.uniform(-2, 2);
}

std::string drawn_bytes(Random& random, std::size_t most) {
  std::string bytes(random.below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

// Text, since protobuf takes no other for its strings.
std::string drawn_text(Random& random) {
  constexpr std::array<const char*, 6> kTexts = {"", "data@0", "data@1", "\x1b[31mred\x1b[2J", "../../etc", "training"};
  return random.below(3) == 0 ? std::string(random.below(5000), 'a') : kTexts[random.below(kTexts.size())];
}

// Draws one value, or one more of a list.
void draw_field(Message& message, const FieldDescriptor& field, Random& random, int depth) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  const bool is_list = field.is_repeated();
  const auto put = [&](auto set, auto add, auto value) {
    is_list ? (reflection.*add)(&message, &field, value) : (reflection.*set)(&message, &field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&R::SetInt32, &R::AddInt32, static_cast<std::int32_t>(drawn_number(random)));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&R::SetInt64, &R::AddInt64, drawn_number(random));
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&R::SetUInt32, &R::AddUInt32, static_cast<std::uint32_t>(drawn_number(random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&R::SetUInt64, &R::AddUInt64, static_cast<std::uint64_t>(drawn_number(random)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&R::SetDouble, &R::AddDouble, drawn_real(random));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&R::SetFloat, &R::AddFloat, static_cast<float>(drawn_real(random)));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&R::SetBool, &R::AddBool, random.below(2) == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&R::SetEnumValue, &R::AddEnumValue, static_cast<int>(drawn_number(random)));
    case FieldDescriptor::CPPTYPE_STRING: {
      const bool is_text = field.type() == FieldDescriptor::TYPE_STRING;
      const std::string value = is_text ? drawn_text(random) : drawn_bytes(random, 100);
      return is_list ? reflection.AddString(&message, &field, value) : reflection.SetString(&message, &field, value);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      if (depth >= kDeepest) return;
      Message& part =
          *(is_list ? reflection.AddMessage(&message, &field) : reflection.MutableMessage(&message, &field));
      return draw_fields(part, random, depth + 1);
    }
  }
}

// What true peers say first: ZeroMQ's greetings and the commands behind them, of every mechanism, and our own hellos.
std::string zmtp_greeting(const char* mechanism) {
  std::string text("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0", 12);
  text += mechanism;
  text.resize(64);
  return text;
}
std::string zmtp_command(const std::string& name, const std::string& body) {
  return '\x04' + std::string(1, static_cast<char>(1 + name.size() + body.size())) + static_cast<char>(name.size()) +
         name + body;
}
std::string zmtp_property(const std::string& name, const std::string& value) {
  return static_cast<char>(name.size()) + name + std::string("\0\0\0", 3) + static_cast<char>(value.size()) + value;
}

template <typename T>
std::string bytes_of(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::vector<std::string> openings(std::uint64_t run) {
  const std::string dealer = zmtp_property("Socket-Type", "DEALER") + zmtp_property("Identity", "worker-1");
  const Hello hello{.run = run, .from = 1, .to = 0};
  const FrameHead frame{.header_bytes = 40, .payload_bytes = 4096};
  return {
      zmtp_greeting("NULL") + zmtp_command("READY", dealer) + std::string("\0\x04", 2) + "text",
      zmtp_greeting("NULL") + zmtp_command("READY", zmtp_property("Socket-Type", "PUSH")) + std::string("\x01\x02") +
          "ab",
      zmtp_greeting("PLAIN") + zmtp_command("HELLO",
                                            "\x08"
                                            "worker-1"
                                            "\x06"
                                            "secret"),
      zmtp_greeting("CURVE") + zmtp_command("HELLO", std::string("\x01\0", 2) + std::string(192, 'k')),
      zmtp_greeting("GSSAPI") + zmtp_command("INITIATE", std::string(30, 't')),
      bytes_of(hello) + bytes_of(frame) + std::string(400, 'p'),
  };
}

}  // namespace

void draw_fields(Message& message, Random& random, int depth) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.containing_oneof() != nullptr && !field.has_presence()) continue;
    const std::uint64_t times = field.is_repeated() ? random.below(4) : (random.below(4) == 0 ? 0 : 1);
    for (std::uint64_t time = 0; time < times; ++time) draw_field(message, field, random, depth);
  }
}

DrawnMessages::DrawnMessages(testing_support::VisibleRun run, std::uint64_t seed)
    : run_(std::move(run)), random_(seed), context_(1) {}

DrawnMessages::~DrawnMessages() = default;

void DrawnMessages::throw_at(const std::string& place) {
  if (place.starts_with("seqpacket")) return throw_parcel(place);
  switch (random_.below(place == run_.control ? 4 : 5)) {
    case 0:
      return throw_bytes(place);
    case 1:
      return throw_opening(place);
    case 2:
    case 3:
      return throw_control(place);
    default:
      return throw_data(place);
  }
}

void DrawnMessages::throw_bytes(const std::string& place) {
  FileDescriptor connection = raw_connection(place);
  const std::string bytes = drawn_bytes(random_, 400);
  (void)send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  keep(std::move(connection));
}

void DrawnMessages::throw_opening(const std::string& place) {
  const std::vector<std::string> all = openings(run_hash());
  const std::string& one = all[random_.below(all.size())];
  const std::string& other = all[random_.below(all.size())];
  const auto bytes = [](const std::string& text) {
    return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  std::vector<std::uint8_t> said(bytes(one).begin(), bytes(one).end());
  if (random_.below(4) != 0) said = fuzz::mutated(bytes(one), bytes(other), random_);
  FileDescriptor connection = raw_connection(place);
  (void)send(connection.get(), said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  keep(std::move(connection));
}

// A hello and then a message of a drawn kind, or the other way round.
void DrawnMessages::throw_control(const std::string& place) {
  using experiments::control::ToCoordinator;
  ToCoordinator hello, message;
  hello.mutable_hello()->set_run_id(run_.id);
  hello.mutable_hello()->set_pid(harmless_pid());
  hello.mutable_hello()->set_host("here");
  const google::protobuf::OneofDescriptor& kinds = *ToCoordinator::descriptor()->oneof_decl(0);
  const FieldDescriptor& kind =
      *kinds.field(static_cast<int>(random_.below(static_cast<std::uint64_t>(kinds.field_count()))));
  draw_fields(*message.GetReflection()->MutableMessage(&message, &kind), random_);
  if (message.has_hello()) message.mutable_hello()->set_pid(harmless_pid());
  zmq::socket_t& socket = new_socket(zmq::socket_type::dealer);
  socket.set(zmq::sockopt::routing_id, name());
  if (random_.below(4) == 0) {
    socket.set(zmq::sockopt::plain_username, name());
    socket.set(zmq::sockopt::plain_password, "secret");
  }
  socket.connect(place);
  if (random_.below(8) != 0) (void)socket.send(zmq::buffer(hello.SerializeAsString()), zmq::send_flags::dontwait);
  std::string head = message.SerializeAsString();
  if (random_.below(8) == 0) head += drawn_bytes(random_, 20);
  const std::uint64_t frames = random_.below(4);
  if (!socket.send(zmq::buffer(head),
                   zmq::send_flags::dontwait | (frames == 0 ? zmq::send_flags::none : zmq::send_flags::sndmore)))
    return;
  for (std::uint64_t left = frames; left > 0; --left) {
    const std::vector<float> weights(random_.below(40000), 1e3F);
    (void)socket.send(zmq::buffer(weights),
                      zmq::send_flags::dontwait | (left == 1 ? zmq::send_flags::none : zmq::send_flags::sndmore));
  }
}

void DrawnMessages::throw_data(const std::string& place) {
  std::string header = drawn_bytes(random_, 60);
  if (random_.below(3) != 0) {
    ps::wire::Header message;
    auto& push = *message.mutable_push();
    push.set_chunk(random_.below(3));
    push.set_clock(drawn_number(random_));
    push.set_version(drawn_number(random_));
    push.set_learning_rate(drawn_real(random_));
    header = message.SerializeAsString();
  }
  const std::vector<float> payload(random_.below(2) == 0 ? 25456 : random_.below(30000), 1e3F);
  const ZmqPreamble preamble{.from = static_cast<std::uint32_t>(random_.below(5)),
                             .run = run_hash(),
                             .number = random_.below(3),
                             .payload_bytes = payload.size() * sizeof(float)};
  zmq::socket_t& socket = new_socket(zmq::socket_type::push);
  socket.connect(place);
  if (!socket.send(zmq::buffer(bytes_of(preamble) + header), zmq::send_flags::dontwait | zmq::send_flags::sndmore))
    return;
  (void)socket.send(zmq::buffer(payload), zmq::send_flags::dontwait);
}

// As shared memory's links pass them over: a few numbers, and descriptors with them.
void DrawnMessages::throw_parcel(const std::string& place) {
  struct {
    std::uint32_t kind, sender;
    std::uint64_t run, number;
  } parcel{static_cast<std::uint32_t>(random_.below(4)), static_cast<std::uint32_t>(random_.below(4)), run_hash(),
           random_.below(3)};
  std::string said = bytes_of(parcel) + drawn_bytes(random_, 40);
  if (random_.below(3) != 0) said.resize(sizeof(parcel));
  const FileDescriptor file(memfd_create("an intruder's", MFD_CLOEXEC)), zero(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  if (random_.below(2) == 0) (void)!ftruncate(file.get(), static_cast<off_t>(random_.below(1 << 20)));
  const std::array<int, 3> files{file.get(), zero.get(), file.get()};
  FileDescriptor connection = raw_connection(place);
  send_with_files(connection, said, std::span(files).first(random_.below(files.size() + 1)));
  keep(std::move(connection));
}

std::string DrawnMessages::name() {
  constexpr std::array<const char*, 7> kNames = {"worker-0",  "worker-1",    "server-0", "evaluator-0",
                                                 "standby-0", "worker-4711", "nobody"};
  return kNames[random_.below(kNames.size())];
}

std::int64_t DrawnMessages::harmless_pid() {
  constexpr std::array<std::int64_t, 4> kNobody = {0, -1, 1 << 30, std::numeric_limits<std::int64_t>::max()};
  return random_.below(2) == 0 ? getpid() : kNobody[random_.below(kNobody.size())];
}

std::uint64_t DrawnMessages::run_hash() {
  return random_.below(8) == 0 ? random_.next() : hash_of(run_.id + "/data@0");
}

zmq::socket_t& DrawnMessages::new_socket(zmq::socket_type type) {
  if (sockets_.size() >= kMostSockets) sockets_.pop_front();
  zmq::socket_t& socket = sockets_.emplace_back(context_, type);
  socket.set(zmq::sockopt::linger, 0);
  return socket;
}

void DrawnMessages::keep(FileDescriptor connection) {
  if (connections_.size() >= kMostConnections) connections_.pop_front();
  connections_.push_back(std::move(connection));
}

}  // namespace syncopate::attacks
