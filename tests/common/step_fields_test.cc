#include "common/step_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include "tests/support/build_paths.h"

namespace syncopate {
namespace {

using testing::HasSubstr;

const StepField& field_named(const std::string& column) {
  for (const StepField& field : step_fields()) {
    if (field.column != nullptr && field.column == column) return field;
  }
  ADD_FAILURE() << "there is no column " << column;
  return step_fields().front();
}

std::string cell_of(const std::string& column, const StepRecord& record) {
  std::string cell;
  append_cell(field_named(column), record, TimePoint(), cell);
  return cell;
}

bool is_read(const std::string& column, const std::string& cell) {
  StepRecord record;
  return read_cell(field_named(column), cell, record);
}

// Each sets what it gets, and nothing of another.
TEST(StepFields, AreEachADifferentPartOfARecord) {
  StepRecord record;
  std::int64_t next = 1;
  for (const StepField& field : step_fields()) field.set(next++, record);
  next = 1;
  for (const StepField& field : step_fields()) EXPECT_EQ(field.get(record), next++);
}

TEST(StepFields, AreReadFromStepsCsvAsTheyWereWritten) {
  StepRecord record;
  std::int64_t next = 1;
  for (const StepField& field : step_fields()) {
    if (field.kind == StepField::Kind::kReal) {
      field.set(std::bit_cast<std::int64_t>(0.25 * static_cast<double>(next++)), record);
    } else {
      field.set(next++ * 1000, record);
    }
  }
  StepRecord read;
  for (const StepField& field : step_fields()) {
    if (field.column == nullptr) continue;
    std::string cell;
    append_cell(field, record, TimePoint(), cell);
    EXPECT_TRUE(read_cell(field, cell, read)) << field.column << ": " << cell;
    EXPECT_EQ(field.get(read), field.get(record)) << field.column << ": " << cell;
  }
}

TEST(StepFields, HaveEmptyCellsForWhatIsNotKnown) {
  StepRecord record;
  record.samples = 10;
  record.accuracy = std::numeric_limits<double>::quiet_NaN();
  record.loss = record.accuracy;
  EXPECT_EQ(cell_of("core_wait_us", record), "");
  EXPECT_EQ(cell_of("compute_core_wait_us", record), "");
  EXPECT_EQ(cell_of("last_shard", record), "");
  EXPECT_EQ(cell_of("accuracy", record), "");
  EXPECT_EQ(cell_of("loss", record), "nan") << "of a run that has diverged";
  record.samples = 0;
  EXPECT_EQ(cell_of("loss", record), "");
  record.core_wait = Duration(1500);
  EXPECT_EQ(cell_of("core_wait_us", record), "1.5");
  EXPECT_EQ(cell_of("compute_core_wait_us", record), "0.0");
  StepRecord read;
  EXPECT_TRUE(read_cell(field_named("core_wait_us"), "", read));
  EXPECT_FALSE(read.core_wait.has_value());
  EXPECT_TRUE(read_cell(field_named("loss"), "", read));
  EXPECT_TRUE(std::isnan(read.loss));
}

TEST(StepFields, AreNotReadFromWhatNobodyCanCalculateWith) {
  for (const char* const cell : {"", "a while", "1 ", "inf", "nan", "1e300", "-1e300"}) {
    EXPECT_FALSE(is_read("total_us", cell)) << cell;
    EXPECT_FALSE(is_read("bytes_out", cell)) << cell;
    EXPECT_FALSE(is_read("end_s", cell)) << cell;
  }
  EXPECT_FALSE(is_read("step", "-1"));
  EXPECT_FALSE(is_read("dropped", "nan"));
  EXPECT_FALSE(is_read("last_shard", "5000000000")) << "no 32 bits hold it";
  EXPECT_TRUE(is_read("last_shard", "5"));
  EXPECT_TRUE(is_read("loss", "inf"));
}

TEST(StepFields, AreExplainedColumnByColumn) {
  std::ifstream file(testing_support::source_directory() + "/results/README.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = page.find("## steps.csv"), end = page.find("\n## ", begin);
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin, end - begin);
  for (const StepField& field : step_fields()) {
    if (field.column == nullptr) continue;
    EXPECT_THAT(section, HasSubstr(std::string("`") + field.column + "`"));
  }
}

}  // namespace
}  // namespace syncopate
