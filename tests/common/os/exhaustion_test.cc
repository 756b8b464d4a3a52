#include "common/os/exhaustion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>
#include <zmq.hpp>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Exhaustion, NamesWhatRanOut) {
  const Status memory = caught([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), Code::kResourceExhausted);
  EXPECT_THAT(memory.message(), StartsWith("out of memory; "));
  const Status size = caught([] { throw std::length_error("vector::reserve"); });
  EXPECT_EQ(size.code(), Code::kResourceExhausted);
  EXPECT_THAT(size.message(), HasSubstr("vector::reserve"));
  const Status thread = caught([] { throw std::system_error(EAGAIN, std::generic_category()); });
  EXPECT_EQ(thread.code(), Code::kResourceExhausted);
  EXPECT_THAT(thread.message(), StartsWith("no thread can be started: "));
  errno = EMFILE;
  const Status descriptors = caught([] { throw zmq::error_t(); });
  EXPECT_EQ(descriptors.code(), Code::kResourceExhausted);
  EXPECT_THAT(descriptors.message(), HasSubstr("; ulimit -n is "));
}

TEST(Exhaustion, TakesAnythingElseForADefect) {
  const Status other = caught([] { throw std::runtime_error("no such shape"); });
  EXPECT_EQ(other.code(), Code::kInternal);
  EXPECT_THAT(other.message(), HasSubstr("no such shape"));
  EXPECT_EQ(caught([] { throw 7; }).code(), Code::kInternal);
}

TEST(Exhaustion, LeavesWhatIsReturnedAsItIs) {
  EXPECT_TRUE(caught([] {}).ok());
  EXPECT_EQ(caught([] { return Status::peer_lost("gone"); }).code(), Code::kPeerLost);
}

}  // namespace
}  // namespace syncopate::experiments
