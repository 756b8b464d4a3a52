#include "experiments/lab/report/html_text.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(HtmlText, CannotLeaveItsPlace) {
  EXPECT_EQ(html_text("<script>a & b</script>"), "&lt;script&gt;a &amp; b&lt;/script&gt;");
  EXPECT_EQ(html_text("\" onload='x'"), "&quot; onload=&#39;x&#39;");
}

TEST(HtmlText, HasNoControlCharacters) { EXPECT_EQ(html_text("a\x1b[2J\n\xff"), "a\\x1b[2J\\n\\xff"); }

TEST(HtmlText, KeepsOtherText) { EXPECT_EQ(html_text("ps:sync, 4 µs, 1.16x"), "ps:sync, 4 µs, 1.16x"); }

}  // namespace
}  // namespace syncopate::experiments
