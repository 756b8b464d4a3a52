#include "experiments/lab/demo/formula.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "common/text/number.h"

namespace syncopate::experiments {
namespace {

constexpr int kDeepest = 50;  // of brackets within each other

FigureValue truth(bool is_true) { return {.number = is_true ? 1 : 0}; }

std::vector<std::string> parts_of_path(std::string_view path) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t slash = path.find('/');
    parts.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return parts;
    path.remove_prefix(slash + 1);
  }
}

std::vector<double> numbers_of(const std::vector<NamedFigure>& figures) {
  std::vector<double> numbers;
  for (const NamedFigure& figure : figures) {
    if (figure.value.number) numbers.push_back(*figure.value.number);
  }
  return numbers;
}

// A function of all figures that a path stands for; none if there is no such function.
std::optional<FigureValue> of_all(const std::string& name, const std::vector<NamedFigure>& figures) {
  const std::vector<double> numbers = numbers_of(figures);
  double total = 0;
  for (const double number : numbers) total += number;
  if (name == "count") return FigureValue{.number = static_cast<double>(numbers.size())};
  const bool names_one = name.starts_with("name_of_");
  if (name != "sum" && name != "mean" && name != "least" && name != "most" && name != "name_of_least" &&
      name != "name_of_most")
    return std::nullopt;
  if (numbers.empty()) return FigureValue();
  if (name == "sum") return FigureValue{.number = total};
  if (name == "mean") return FigureValue{.number = total / static_cast<double>(numbers.size())};
  const double wanted = name.ends_with("least") ? std::ranges::min(numbers) : std::ranges::max(numbers);
  if (!names_one) return FigureValue{.number = wanted};
  const auto one = std::ranges::find_if(
      figures, [&](const NamedFigure& figure) { return figure.value.number && *figure.value.number == wanted; });
  return FigureValue{.text = one->name};
}

// Reads and evaluates at once: a formula is short, and evaluated once.
class FormulaReader {
 public:
  FormulaReader(std::string_view formula, const FigureLookup& figures) : rest_(formula), figures_(figures) {}

  Result<FigureValue> whole() {
    SYNCOPATE_ASSIGN_OR_RETURN(FigureValue value, either());
    skip_blanks();
    if (!rest_.empty()) return wrong(fmt::format("'{}' is more than a formula", rest_));
    return value;
  }

 private:
  static Status wrong(const std::string& what) { return Status::invalid_argument(what); }

  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  bool takes(std::string_view sign) {
    skip_blanks();
    if (!rest_.starts_with(sign)) return false;
    const bool is_word = std::isalpha(static_cast<unsigned char>(sign.back())) != 0;
    if (is_word && rest_.size() > sign.size() && is_of_name(rest_[sign.size()])) return false;
    rest_.remove_prefix(sign.size());
    return true;
  }

  static bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  Result<FigureValue> either() {
    SYNCOPATE_ASSIGN_OR_RETURN(FigureValue left, both());
    while (takes("or")) {
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, both());
      left = truth(left.is_true() || right.is_true());
    }
    return left;
  }

  Result<FigureValue> both() {
    SYNCOPATE_ASSIGN_OR_RETURN(FigureValue left, comparison());
    while (takes("and")) {
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, comparison());
      left = truth(left.is_true() && right.is_true());
    }
    return left;
  }

  Result<FigureValue> comparison() {
    SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue left, terms());
    for (const char* sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!takes(sign)) continue;
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, terms());
      return compared(left, sign, right);
    }
    return left;
  }

  static FigureValue compared(const FigureValue& left, std::string_view sign, const FigureValue& right) {
    if (!left.has_value() || !right.has_value()) return truth(false);
    if (sign == "==" || sign == "!=") return truth((left == right) == (sign == "=="));
    if (!left.number || !right.number) return truth(false);
    const double a = *left.number, b = *right.number;
    return truth(sign == "<" ? a < b : sign == ">" ? a > b : sign == "<=" ? a <= b : a >= b);
  }

  static FigureValue computed(const FigureValue& left, char sign, const FigureValue& right) {
    if (!left.number || !right.number) return {};
    const double a = *left.number, b = *right.number;
    const double value = sign == '+' ? a + b : sign == '-' ? a - b : sign == '*' ? a * b : a / b;
    return std::isfinite(value) ? FigureValue{.number = value} : FigureValue();
  }

  Result<FigureValue> terms() {
    SYNCOPATE_ASSIGN_OR_RETURN(FigureValue left, factors());
    while (true) {
      const char sign = takes("+") ? '+' : takes("-") ? '-' : '\0';
      if (sign == '\0') return left;
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, factors());
      left = computed(left, sign, right);
    }
  }

  Result<FigureValue> factors() {
    SYNCOPATE_ASSIGN_OR_RETURN(FigureValue left, one());
    while (true) {
      const char sign = takes("*") ? '*' : takes("/") ? '/' : '\0';
      if (sign == '\0') return left;
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, one());
      left = computed(left, sign, right);
    }
  }

  Result<FigureValue> one() {
    if (++depth_ > kDeepest) return wrong(fmt::format("is deeper than {} brackets", kDeepest));
    Result<FigureValue> value = one_within();
    --depth_;
    return value;
  }

  Result<FigureValue> one_within() {
    if (takes("not")) {
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue value, one());
      return truth(!value.is_true());
    }
    if (takes("-")) {
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue value, one());
      return computed({.number = 0}, '-', value);
    }
    if (takes("(")) {
      SYNCOPATE_ASSIGN_OR_RETURN(FigureValue value, either());
      if (!takes(")")) return wrong("lacks a )");
      return value;
    }
    skip_blanks();
    if (rest_.starts_with('[')) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<NamedFigure> found, path());
      if (found.size() == 1) return found.front().value;
      return wrong(fmt::format("a path stands for {} figures where one is needed", found.size()));
    }
    if (rest_.starts_with('\'')) return quoted();
    if (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) return number();
    return word();
  }

  Result<FigureValue> quoted() {
    const std::size_t end = rest_.find('\'', 1);
    if (end == std::string_view::npos) return wrong("lacks a '");
    FigureValue value{.text = std::string(rest_.substr(1, end - 1))};
    rest_.remove_prefix(end + 1);
    return value;
  }

  Result<FigureValue> number() {
    const std::size_t end = std::min(rest_.find_first_not_of("0123456789.e"), rest_.size());
    const std::optional<double> value = parse_number<double>(rest_.substr(0, end));
    if (!value || !std::isfinite(*value)) return wrong(fmt::format("'{}' is no number", rest_.substr(0, end)));
    rest_.remove_prefix(end);
    return FigureValue{.number = *value};
  }

  Result<std::vector<NamedFigure>> path() {
    skip_blanks();
    const std::size_t end = rest_.find(']');
    if (!rest_.starts_with('[') || end == std::string_view::npos) return wrong("lacks a path, as in [run/row/figure]");
    const std::vector<std::string> parts = parts_of_path(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return figures_.at(parts);
  }

  Result<FigureValue> word() {
    std::size_t length = 0;
    while (length < rest_.size() && is_of_name(rest_[length])) ++length;
    if (length == 0) return wrong(fmt::format("lacks a value before '{}'", rest_));
    const std::string name(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (!takes("(")) return figures_.named(name);
    skip_blanks();
    if (of_all(name, {})) {
      SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<NamedFigure> found, path());
      if (!takes(")")) return wrong("lacks a )");
      return *of_all(name, found);
    }
    std::vector<FigureValue> arguments;
    do {
      SYNCOPATE_ASSIGN_OR_RETURN(FigureValue argument, either());
      arguments.push_back(std::move(argument));
    } while (takes(","));
    if (!takes(")")) return wrong("lacks a )");
    return called(name, arguments);
  }

  static Result<FigureValue> called(const std::string& name, const std::vector<FigureValue>& arguments) {
    const std::size_t count = arguments.size();
    if (name == "has" && count == 1) return truth(arguments[0].has_value());
    if (name == "pick" && count == 3) return arguments[0].is_true() ? arguments[1] : arguments[2];
    const bool takes_one =
        name == "abs" || name == "round" || name == "ceil" || name == "floor" || name == "sqrt" || name == "log2";
    const bool takes_two = name == "min" || name == "max";
    if (!(takes_one && count == 1) && !(takes_two && count == 2)) {
      return wrong(fmt::format("{}: no such function of {} value{}", name, count, count == 1 ? "" : "s"));
    }
    const auto lacks = [](const FigureValue& value) { return !value.number; };
    if (std::ranges::any_of(arguments, lacks)) return FigureValue();
    const double a = *arguments[0].number;
    const double value = name == "abs"     ? std::abs(a)
                         : name == "round" ? std::round(a)
                         : name == "ceil"  ? std::ceil(a)
                         : name == "floor" ? std::floor(a)
                         : name == "sqrt"  ? std::sqrt(a)
                         : name == "log2"  ? std::log2(a)
                         : name == "min"   ? std::min(a, *arguments[1].number)
                                           : std::max(a, *arguments[1].number);
    return std::isfinite(value) ? FigureValue{.number = value} : FigureValue();
  }

  std::string_view rest_;
  const FigureLookup& figures_;
  int depth_ = 0;
};

std::string with_commas(double value) {
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return (std::round(value) < 0 ? "-" : "") + digits;
}

// Empty: no such format.
std::optional<std::string> formatted(const FigureValue& value, std::string_view format) {
  constexpr std::string_view kFormats = ",%x0123456";
  if (format.size() > 1 || (!format.empty() && kFormats.find(format) == std::string_view::npos)) return std::nullopt;
  if (value.text) return *value.text;
  if (!value.number) return "nothing";
  const double number = *value.number;
  if (format.empty()) return std::abs(number) >= 1000 ? with_commas(number) : fmt::format("{:.3g}", number);
  if (format == ",") return with_commas(number);
  if (format == "%") return fmt::format("{:.1f} %", 100 * number);
  if (format == "x") return fmt::format("{:.2f}x", number);
  return fmt::format("{:.{}f}", number, format.front() - '0');
}

}  // namespace

Result<FigureValue> evaluate(std::string_view formula, const FigureLookup& figures) {
  Result<FigureValue> value = FormulaReader(formula, figures).whole();
  if (!value.ok()) return value.status().in(fmt::format("formula '{}'", formula));
  return value;
}

Result<std::string> filled(std::string_view text, const FigureLookup& figures) {
  std::string done;
  while (true) {
    const std::size_t open = text.find('{');
    done += text.substr(0, open);
    if (open == std::string_view::npos) return done;
    const std::size_t close = text.find('}', open);
    if (close == std::string_view::npos) {
      return Status::invalid_argument(fmt::format("'{}': lacks a }}", text.substr(open)));
    }
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const std::size_t bar = inside.rfind('|');
    const std::string_view format = bar == std::string_view::npos ? "" : inside.substr(bar + 1);
    SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue value, evaluate(inside.substr(0, bar), figures));
    const std::optional<std::string> shown = formatted(value, format);
    if (!shown) {
      return Status::invalid_argument(
          fmt::format("{{{}}}: '{}' is no format; there are , % x and 0 to 6", inside, format));
    }
    done += *shown;
    text.remove_prefix(close + 1);
  }
}

}  // namespace syncopate::experiments
