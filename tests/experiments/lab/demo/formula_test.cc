#include "experiments/lab/demo/formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

// Figures by their paths, parts joined by slashes; every path that ends in `*` stands for all.
class Table : public FigureLookup {
 public:
  Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const override {
    if (path.back() == "*") {
      std::vector<NamedFigure> all;
      for (const auto& [name, number] : numbers) all.push_back({name, {.number = number}});
      return all;
    }
    const auto found = numbers.find(path.back());
    if (path.back() == "missing") return std::vector<NamedFigure>{{"missing", {}}};
    if (found == numbers.end()) return Status::invalid_argument("no such path");
    return std::vector<NamedFigure>{{path.back(), {.number = found->second}}};
  }
  Result<FigureValue> named(const std::string& name) const override {
    if (name == "who") return FigureValue{.text = "ps:async"};
    return Status::invalid_argument(name + ": no such figure");
  }
  const std::map<std::string, double> numbers = {{"a b", 4}, {"c", 10}, {"d", 1}};
};

double number_of(const char* formula) {
  const Result<FigureValue> value = evaluate(formula, Table());
  EXPECT_TRUE(value.ok()) << value.status().message();
  return value.ok() ? value->number.value_or(-999) : -999;
}

TEST(Formula, ComputesAsIsUsual) {
  EXPECT_EQ(number_of("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(number_of("(1 + 2) * -(3 - 4)"), 3);
  EXPECT_EQ(number_of("10 - 2 - 3"), 5) << "from the left";
  EXPECT_EQ(number_of("[run/a b] * 2.5e1"), 100);
  EXPECT_EQ(number_of("max(2, min(8, 5)) + ceil(0.1) + floor(1.9) + round(2.5) + abs(-1) + sqrt(9) + log2(8)"), 17);
}

TEST(Formula, JudgesFiguresAndTexts) {
  EXPECT_EQ(number_of("1 < 2 and not 2 < 1 or 0 == 1"), 1);
  EXPECT_EQ(number_of("[run/c] >= 10 and [run/c] <= 10 and [run/c] != 9"), 1);
  EXPECT_EQ(number_of("who == 'ps:async'"), 1);
  EXPECT_EQ(number_of("who == 'ps:sync' or who < 3"), 0);
  EXPECT_EQ(*evaluate("pick(1 > 2, 'yes', who)", Table())->text, "ps:async");
}

TEST(Formula, HasNoValueWhereOneIsMissing) {
  EXPECT_FALSE(evaluate("[run/missing] + 1", Table())->has_value());
  EXPECT_FALSE(evaluate("1 / 0", Table())->has_value());
  EXPECT_FALSE(evaluate("who * 2", Table())->has_value());
  EXPECT_EQ(number_of("has([run/missing]) + has(who)"), 1);
  EXPECT_EQ(number_of("[run/missing] < 1 or [run/missing] >= 1"), 0) << "what is not known is not claimed";
}

TEST(Formula, LooksAtAllFiguresOfAPath) {
  EXPECT_EQ(number_of("sum([run/*]) + count([run/*])"), 18);
  EXPECT_EQ(number_of("mean([run/*])"), 5);
  EXPECT_EQ(number_of("most([run/*]) - least([run/*])"), 9);
  EXPECT_EQ(*evaluate("name_of_most([run/*])", Table())->text, "c");
  EXPECT_EQ(*evaluate("name_of_least([run/*])", Table())->text, "d");
}

TEST(Formula, SaysWhatIsWrong) {
  const auto message = [](const std::string& formula) { return evaluate(formula, Table()).status().message(); };
  EXPECT_THAT(message("1 +"), HasSubstr("formula '1 +': lacks a value"));
  EXPECT_THAT(message("(1"), HasSubstr("lacks a )"));
  EXPECT_THAT(message("1 2"), HasSubstr("'2' is more than a formula"));
  EXPECT_THAT(message("nobody"), HasSubstr("nobody: no such figure"));
  EXPECT_THAT(message("cube(3)"), HasSubstr("cube: no such function of 1 value"));
  EXPECT_THAT(message("[run/*]"), HasSubstr("a path stands for 3 figures where one is needed"));
  EXPECT_THAT(message("[run"), HasSubstr("lacks a path"));
  EXPECT_THAT(message("1.2.3"), HasSubstr("'1.2.3' is no number"));
  EXPECT_THAT(message(std::string(1000, '(')), HasSubstr("deeper than"));
}

TEST(Filled, PutsFiguresIntoText) {
  const auto text = [](const char* with) { return *filled(with, Table()); };
  EXPECT_EQ(text("no figure"), "no figure");
  EXPECT_EQ(text("{[run/c]} and {[run/c] / 4|1}, {[run/c] / 3|x}"), "10 and 2.5, 3.33x");
  EXPECT_EQ(text("{0.1234|%} of {1234567.8|,}; {1234.5}; {0.01234}"), "12.3 % of 1,234,568; 1,234; 0.0123");
  EXPECT_EQ(text("{who} by {[run/missing]}"), "ps:async by nothing");
  EXPECT_THAT(filled("{1", Table()).status().message(), HasSubstr("lacks a }"));
  EXPECT_THAT(filled("{1|y}", Table()).status().message(), HasSubstr("'y' is no format"));
}

}  // namespace
}  // namespace syncopate::experiments
