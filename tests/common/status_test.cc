#include "common/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace syncopate {
namespace {

class Source {
 public:
  explicit Source(Result<int> answer) : answer_(std::move(answer)) {}

  Result<int> next() {
    ++calls_;
    return answer_;
  }
  int calls() const { return calls_; }

 private:
  Result<int> answer_;
  int calls_ = 0;
};

Status add_next(Source& source, int& sum) {
  SYNCOPATE_ASSIGN_OR_RETURN(const int number, source.next());
  sum += number;
  return {};
}

Result<std::string> next_as_text(Source& source) {
  SYNCOPATE_ASSIGN_OR_RETURN(const int number, source.next());
  return std::to_string(number);
}

Status put_next(Source& source, int& place) {
  SYNCOPATE_ASSIGN_OR_RETURN(place, source.next());
  return {};
}

Result<std::unique_ptr<int>> passed_on(Result<std::unique_ptr<int>> result) {
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<int> number, std::move(result));
  return number;
}

TEST(ResultTest, GivesItsValueToANewVariable) {
  Source source(3);
  int sum = 4;
  EXPECT_TRUE(add_next(source, sum).ok());
  EXPECT_EQ(sum, 7);
  EXPECT_EQ(*next_as_text(source), "3");
}

TEST(ResultTest, GivesItsValueToAVariableThatIsThere) {
  Source source(3);
  int place = 4;
  EXPECT_TRUE(put_next(source, place).ok());
  EXPECT_EQ(place, 3);
}

TEST(ResultTest, EndsAFunctionWithItsStatusIfThereIsNoValue) {
  Source source(Status::not_found("no number"));
  int place = 4;
  for (const Status& status : {add_next(source, place), put_next(source, place), next_as_text(source).status()}) {
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_EQ(status.message(), "no number");
  }
  EXPECT_EQ(place, 4);
}

TEST(ResultTest, IsComputedOnceWhenItsValueIsAssigned) {
  Source source(3), failing(Status::not_found("no number"));
  int place = 0;
  EXPECT_TRUE(put_next(source, place).ok());
  EXPECT_FALSE(put_next(failing, place).ok());
  EXPECT_EQ(source.calls(), 1);
  EXPECT_EQ(failing.calls(), 1);
}

TEST(ResultTest, MovesAValueThatCannotBeCopied) {
  const Result<std::unique_ptr<int>> number = passed_on(std::make_unique<int>(5));
  ASSERT_TRUE(number.ok());
  EXPECT_EQ(**number, 5);
}

}  // namespace
}  // namespace syncopate
