#include "prediction/published_table.h"

#include <gtest/gtest.h>

namespace syncopate::prediction {
namespace {

TEST(PublishedTable, ReadsQuotedValuesAndNotes) {
  const auto rows = read_table("name,gpus,note\n\"a, \"\"b\"\"\",16,data=real; update=ps\nc,2,\n");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].text("name"), "a, \"b\"");
  EXPECT_EQ((*rows)[0].number("gpus"), 16);
  EXPECT_EQ((*rows)[0].noted("data"), "real");
  EXPECT_EQ((*rows)[0].noted("update"), "ps");
  EXPECT_EQ((*rows)[1].noted("data"), "");
}

TEST(PublishedTable, SaysWhichLineIsWrong) {
  EXPECT_EQ(read_table("a,b\n1\n").status().message(), "line 2: has 1 values, not 2 as the first");
  EXPECT_EQ(read_table("a,b\n1,2\n1,\"2\n").status().message(), "line 3: a quote is not closed");
}

TEST(PublishedTable, NamesTheSourceOfEveryRow) {
  for (const char* name : {"nccl_emulated_links", "piz_daint", "tensorflow_page", "mxnet_p2_16xlarge", "horovod",
                           "dlperf_bert", "convergence", "device_steps"}) {
    const std::vector<PublishedRow> rows = published_table(name);
    EXPECT_GT(rows.size(), 10u) << name;
    for (const PublishedRow& row : rows) EXPECT_FALSE(row.text("source").empty()) << name;
  }
}

}  // namespace
}  // namespace syncopate::prediction
