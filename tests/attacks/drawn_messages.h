// DrawnMessages: what an intruder throws at the places where a run listens, drawn from a seed: bytes, changed copies of
// what true peers say first, and well-formed messages with drawn contents.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <deque>
#include <string>
#include <zmq.hpp>

#include "common/os/file_descriptor.h"
#include "common/random.h"
#include "tests/support/visible_run.h"

namespace syncopate::attacks {

// Gives some of the message's fields drawn values, and some of its parts.
void draw_fields(google::protobuf::Message& message, Random& random, int depth = 0);

class DrawnMessages {
 public:
  DrawnMessages(testing_support::VisibleRun run, std::uint64_t seed);
  ~DrawnMessages();

  // One of them to a place that `listening_places` names. Waits for nobody.
  void throw_at(const std::string& place);

 private:
  void throw_bytes(const std::string& place);
  void throw_opening(const std::string& place);  // a changed one
  void throw_control(const std::string& place);
  void throw_data(const std::string& place);
  void throw_parcel(const std::string& place);

  std::string name();  // of a process, or of none
  // Returns a pid of no process, or of this one: a run that believes it would kill the process it names.
  std::int64_t harmless_pid();
  std::uint64_t run_hash();
  zmq::socket_t& new_socket(zmq::socket_type type);
  void keep(FileDescriptor connection);

  const testing_support::VisibleRun run_;
  Random random_;
  zmq::context_t context_;
  // The newest ones, so that what was sent has time to arrive.
  std::deque<zmq::socket_t> sockets_;
  std::deque<FileDescriptor> connections_;
};

}  // namespace syncopate::attacks
