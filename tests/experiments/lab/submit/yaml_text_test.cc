#include "experiments/lab/submit/yaml_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace syncopate::experiments {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

TEST(YamlText, WritesWhatAPersonWould) {
  const ordered_json document = {{"kind", "Job"},
                                 {"spec", {{"completions", 2}, {"suspend", false}}},
                                 {"args", ordered_json::array({"--mode=ps", "--hosts=a:1,b:1", "/work"})},
                                 {"emptyDir", ordered_json::object()}};
  EXPECT_EQ(yaml_text({document, {{"kind", "Service"}}}),
            "---\nkind: Job\nspec:\n  completions: 2\n  suspend: false\nargs:\n  - --mode=ps\n  - --hosts=a:1,b:1\n"
            "  - /work\nemptyDir: {}\n---\nkind: Service\n");
}

TEST(YamlText, QuotesATextThatAReaderWouldTakeForSomethingElse) {
  for (const char* text : {"1",          "-1",   "1e3",       ".5",          "0x1F",         "1:30",
                           "2026-01-01", "true", "Yes",       "NO",          "off",          "null",
                           "~",          "y",    "",          "- a",         "a: b",         "a #b",
                           "#a",         "a:",   "&a",        "*a",          "!a",           "|",
                           ">",          "%a",   "@a",        "`a",          "[a",           "{a",
                           "a\nkind: b", "it's", "say \"a\"", "back\\slash", "tab\t",        " a",
                           "a ",         "---",  "ä",         "\xc2\x85",    "\xef\xbb\xbf", "\xf0\x9f\x98\x80"}) {
    const std::string yaml = yaml_text({{{"text", text}}});
    EXPECT_THAT(yaml, testing::StartsWith("---\ntext: \"")) << text;
    EXPECT_EQ(YAML::Load(yaml)["text"].as<std::string>(), text);
  }
}

}  // namespace
}  // namespace syncopate::experiments
