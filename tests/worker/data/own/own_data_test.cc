#include "tests/worker/data/own/own_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "worker/data/open_dataset.h"
#include "worker/data/own/csv_fields.h"
#include "worker/data/own/own_dataset.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr OwnOptions kAsItIs{.normalisation = Normalisation::kNone};

Result<DatasetPair> open(const std::string& path, const OwnOptions& options = kAsItIs) {
  return open_dataset(path, "nowhere", 1, options);
}

// Training and test samples together, with their labels, or their targets.
std::multimap<std::vector<float>, float> samples_of(const Result<DatasetPair>& pair) {
  EXPECT_TRUE(pair.ok()) << pair.status().message();
  std::multimap<std::vector<float>, float> samples;
  if (!pair.ok()) return samples;
  for (const Dataset* part : {pair->train.get(), pair->test.get()}) {
    std::vector<float> values(static_cast<std::size_t>(part->form().values())), target(1);
    std::vector<int> label(1);
    for (std::int64_t i = 0; i < part->size(); ++i) {
      part->read(i, 0, {.values = values, .ids = {}, .labels = label, .targets = target});
      samples.emplace(values, part->form().regression ? target[0] : static_cast<float>(label[0]));
    }
  }
  return samples;
}

std::string refusal(const Result<DatasetPair>& pair, Code code = Code::kDataLoss) {
  EXPECT_EQ(pair.status().code(), code) << pair.status().message();
  return pair.status().message();
}

class OwnData : public testing::Test {
 protected:
  std::string table(const std::string& text) { return write_text(folder_, "table.csv", text); }
  std::string refused(const std::string& text) { return refusal(open(table(text))); }

  ScratchFolder folder_;
};

TEST_F(OwnData, OfATableAreItsColumnsAndTheClassesOfTheLast) {
  const Result<DatasetPair> pair = open(table("a,b,kind\n1,2,rose\n3,4.5,daisy\n-1e3,+0,rose\n5,6,daisy\n"));
  EXPECT_THAT(samples_of(pair),
              ElementsAre(std::pair(std::vector{-1000.0f, 0.0f}, 1.0f), std::pair(std::vector{1.0f, 2.0f}, 1.0f),
                          std::pair(std::vector{3.0f, 4.5f}, 0.0f), std::pair(std::vector{5.0f, 6.0f}, 0.0f)));
  EXPECT_THAT(pair->train->class_names(), ElementsAre("daisy", "rose"));
  EXPECT_EQ(pair->train->form().image, (ImageShape{1, 1, 2}));
  EXPECT_EQ(pair->test->size(), 1);
}

TEST_F(OwnData, OfATableMayHaveAMarkQuotesBlanksCarriageReturnsAndEmptyLastLines) {
  const std::string plain = "a,\"b, in cm\",kind\n1,2,\"the \"\"one\"\"\"\n3,4,two\n5,6,two\n";
  const std::string other =
      "\xEF\xBB\xBF\"a\";\"b, in cm\" ; kind\r\n\"1\"; 2 ;\"the \"\"one\"\"\"\r\n3;4;\"two\"\r\n5;6;two\r\n\r\n\n";
  const auto expected = samples_of(open(table(plain)));
  const Result<DatasetPair> pair = open(table(other));
  EXPECT_EQ(samples_of(pair), expected);
  EXPECT_THAT(pair->train->class_names(), ElementsAre("the \"one\"", "two"));
  EXPECT_EQ(samples_of(open(folder_.write_gz("table.tsv.gz", Bytes(plain.begin(), plain.end())))), expected);
}

TEST_F(OwnData, OfATableHaveAnyColumnAsTheTargetAndIgnoreOthers) {
  const std::string path = table("id,kind,a\nx1,7,1\nx2,26,2\nx3,7,3\nx4,26,4\n");
  const Result<DatasetPair> pair =
      open(path, {.target = "kind", .ignore = "id", .normalisation = Normalisation::kNone});
  EXPECT_THAT(samples_of(pair), ElementsAre(std::pair(std::vector{1.0f}, 0.0f), std::pair(std::vector{2.0f}, 1.0f),
                                            std::pair(std::vector{3.0f}, 0.0f), std::pair(std::vector{4.0f}, 1.0f)));
  EXPECT_THAT(pair->train->class_names(), ElementsAre("7", "26"));
  EXPECT_THAT(refusal(open(path, {.target = "size"}), Code::kInvalidArgument),
              HasSubstr("--target=size: " + path + " has no such column; it has id, kind, a"));
  EXPECT_THAT(refusal(open(path, {.ignore = "a"}), Code::kInvalidArgument), HasSubstr("is the column that is to be"));
}

TEST_F(OwnData, OfATableThatIsWrongAreRefusedWithLineColumnAndValue) {
  EXPECT_THAT(refused("a,kind\n1,x\nnan,y\n"), HasSubstr("table.csv: line 3: column 'a' is 'nan', expected a finite"));
  EXPECT_THAT(refused("a,kind\n1,x\n1e39,y\n"), HasSubstr("line 3: column 'a' is '1e39'"));
  EXPECT_THAT(refused("a,kind\nmale,x\n2,y\n"), HasSubstr("line 2: column 'a' is 'male'"));
  EXPECT_THAT(refused("a,kind\n1,x\n,y\n"), HasSubstr("line 3: column 'a' is empty"));
  EXPECT_THAT(refused("a,kind\n1,x\n\n2,y\n"), HasSubstr("line 3: 1 columns, expected 2"));
  EXPECT_THAT(refused("a,kind\n1,x,3\n"), HasSubstr("line 2: 3 columns, expected 2"));
  EXPECT_THAT(refused("a,kind\n1,\"x\n"), HasSubstr("line 2: column 2: quotes that do not end"));
  EXPECT_THAT(refused("a,kind\n1,\"x\"y\n"), HasSubstr("line 2: column 2: 'y' behind the quotes"));
  EXPECT_THAT(refused("1,2\n3,4\n"), HasSubstr("line 1: numbers alone, expected the names"));
  EXPECT_THAT(refused("5.1,3,setosa\n3,4,x\n"),
              HasSubstr("line 1: numbers (5.1, 3), expected the names of the columns"));
  EXPECT_THAT(refused("a,a,kind\n1,2,x\n"), HasSubstr("line 1: the column 'a' is there twice"));
  EXPECT_THAT(refused("kind\nx\n"), HasSubstr("line 1: one column, 'kind'"));
  EXPECT_THAT(refused("a,kind\n"), HasSubstr("holds no samples"));
  EXPECT_THAT(refused("a,kind\n1,x\n2,x\n"), HasSubstr("'kind' has one value"));
  EXPECT_THAT(refused("a,kind\n" + std::string(1 << 17, '1') + ",x\n"), HasSubstr("line 2: longer than 65536 bytes"));
}

TEST_F(OwnData, OfATableWhoseColumnsAreNamedByNumbersAreTakenAndThatIsSaid) {
  const std::string rows = "5,3,x\n4,1,y\n5,2,x\n4,1,y\n5,3,x\n";
  const Result<DatasetPair> numbered = open(table("0,1,kind\n" + rows), {.normalisation = Normalisation::kNone});
  ASSERT_TRUE(numbered.ok()) << numbered.status().message();
  EXPECT_THAT(numbered->notes,
              ElementsAre(HasSubstr("line 1: taken for the names of the columns, though 2 of 3 are numbers (0, 1)")));
  EXPECT_THAT(open(table("a,b,kind\n" + rows))->notes, ElementsAre());
  EXPECT_THAT(open(table("a,1.5,kind\n" + rows))->notes, ElementsAre(HasSubstr("though 1 of 3 are numbers (1.5)")));
}

TEST_F(OwnData, WithNumbersThatAreNotWholeAreRegression) {
  const Result<DatasetPair> pair = open(table("a,price\n1,1.5\n2,2\n3,-4\n4,0\n"));
  EXPECT_TRUE(pair->train->form().regression);
  EXPECT_EQ(pair->train->judgement(), Judgement::kRegression);
  EXPECT_EQ(pair->train->form().classes, 1);
  EXPECT_FALSE(pair->train->fixed_label(0));
  EXPECT_THAT(samples_of(pair), ElementsAre(std::pair(std::vector{1.0f}, 1.5f), std::pair(std::vector{2.0f}, 2.0f),
                                            std::pair(std::vector{3.0f}, -4.0f), std::pair(std::vector{4.0f}, 0.0f)));
}

TEST_F(OwnData, WithManyWholeNumbersMustSayWhatTheyAre) {
  std::string text = "a,price\n";
  for (int i = 0; i < 200; ++i) text += fmt::format("{},{}\n", i, 1000 + i);
  const std::string path = table(text);
  EXPECT_THAT(refusal(open(path), Code::kInvalidArgument),
              HasSubstr("'price' has 200 different whole numbers; say what they are: --task=classes or"));
  EXPECT_TRUE(open(path, {.task = Task::kRegression})->train->form().regression);
  EXPECT_THAT(refusal(open(path, {.task = Task::kClasses}), Code::kInvalidArgument),
              HasSubstr("'price' has 200 different numbers in 200 samples, and a class needs several samples; "
                        "--task=regression predicts numbers"));
  EXPECT_THAT(
      refusal(open(table("a,price\n1,1.5\n2,2\n3,-4\n4,0\n"), {.task = Task::kClasses}), Code::kInvalidArgument),
      HasSubstr("'price' has 4 different numbers in 4 samples"));
  EXPECT_THAT(refusal(open(table("a,price\n1,15\n2,2\n3,4\n4,0\n"))),
              HasSubstr("a class that no training sample has; if these are numbers to predict, say --task=regression"));
  EXPECT_EQ(
      open(table("a,size\n1,1.5\n2,2\n3,1.5\n4,2\n5,1.5\n6,2\n"), {.task = Task::kClasses})->train->form().classes, 2);
  EXPECT_THAT(refusal(open(table("a,kind\n1,x\n2,y\n"), {.task = Task::kRegression}), Code::kInvalidArgument),
              HasSubstr("--task=regression: " + path + ": line 2: column 'kind' is 'x', expected numbers"));
}

TEST_F(OwnData, AreSplitByTheSeedAlone) {
  EXPECT_EQ(drawn_test_samples(150, 0.2, 1), drawn_test_samples(150, 0.2, 1));
  EXPECT_NE(drawn_test_samples(150, 0.2, 1), drawn_test_samples(150, 0.2, 2));
  EXPECT_EQ(drawn_test_samples(150, 0.2, 1).size(), 30u);
  EXPECT_EQ(drawn_test_samples(3, 0.01, 1).size(), 1u);
  EXPECT_THAT(refusal(open(table("a,kind\n1,x\n")), Code::kDataLoss), HasSubstr("one value"));
}

TEST_F(OwnData, AreNormalisedByTheTrainingPartAlone) {
  const std::string train = table("a,b,y\n1,5,0.5\n3,5,2.5\n5,5,4.5\n");
  const std::string test = write_text(folder_, "test.csv", "a,b,y\n7,5,10.5\n");
  const double deviation = std::sqrt(8.0 / 3);
  const Result<DatasetPair> standard = open(train, {.test_data = test});
  ASSERT_TRUE(standard.ok()) << standard.status().message();
  EXPECT_DOUBLE_EQ(standard->train->target_scale().mean, 2.5);
  EXPECT_DOUBLE_EQ(standard->train->target_scale().deviation, deviation);
  const auto samples = samples_of(standard);
  EXPECT_FLOAT_EQ(samples.begin()->first[0], static_cast<float>(-2 / deviation));
  EXPECT_EQ(samples.begin()->first[1], 0.0f);
  EXPECT_FLOAT_EQ(std::prev(samples.end())->first[0], static_cast<float>(4 / deviation));
  EXPECT_FLOAT_EQ(std::prev(samples.end())->second, static_cast<float>(8 / deviation));
  const auto ranged = samples_of(open(train, {.test_data = test, .normalisation = Normalisation::kMinMax}));
  EXPECT_FLOAT_EQ(std::prev(ranged.end())->first[0], 1.5f);
}

// Seconds since 1970, of which single precision tells apart those that are 128 seconds from each other.
TEST_F(OwnData, ThatAreLargeBesideTheirDifferencesKeepThese) {
  const std::string train =
      table("time,y\n1700000000,1700000000.5\n1700000010,1700000002.5\n1700000020,1700000004.5\n");
  const std::string test = write_text(folder_, "test.csv", "time,y\n1700000025,1700000002.5\n");
  const auto samples = samples_of(open(train, {.test_data = test}));
  const double deviation = std::sqrt(200.0 / 3), of_target = std::sqrt(8.0 / 3);
  ASSERT_EQ(samples.size(), 4u);
  EXPECT_FLOAT_EQ(samples.begin()->first[0], static_cast<float>(-10 / deviation));
  EXPECT_FLOAT_EQ(samples.begin()->second, static_cast<float>(-2 / of_target));
  EXPECT_FLOAT_EQ(std::prev(samples.end())->first[0], static_cast<float>(15 / deviation));
  EXPECT_NEAR(std::prev(samples.end())->second, 0, 1e-6);
  const auto ranged = samples_of(open(train, {.test_data = test, .normalisation = Normalisation::kMinMax}));
  EXPECT_FLOAT_EQ(std::next(ranged.begin())->first[0], 0.5f);
  const std::vector<std::int64_t> nanoseconds{1700000000'000'000'000, 1700000010'000'000'000};
  const Bytes times = npy<std::int64_t>("<i8", "(2, 1)", nanoseconds), labels = npy<std::int8_t>("|i1", "(2,)", {0, 1});
  const auto of_numpy = samples_of(
      open(folder_.write("times.npz",
                         npz({{"x_train", times}, {"y_train", labels}, {"x_test", times}, {"y_test", labels}}, false)),
           OwnOptions()));
  EXPECT_FLOAT_EQ(of_numpy.begin()->first[0], -1.0f);
  EXPECT_FLOAT_EQ(std::prev(of_numpy.end())->first[0], 1.0f);
}

TEST_F(OwnData, WithATextAmongNumbersOfTheTargetAreRefusedWithItsLine) {
  for (const char* text : {"NA", "nan", "N/A", "null", "?", "-", "1e39"}) {
    EXPECT_THAT(refused(fmt::format("a,price\n1,1.5\n2,{}\n3,2.5\n", text)),
                HasSubstr(fmt::format(
                    "table.csv: line 3: column 'price' is '{}', expected a number within 3.4e38 as others are", text)));
  }
  EXPECT_THAT(refused("a,price\n1,1.5\n2,5 EUR\n3,2.5\n"), HasSubstr("line 3: column 'price' is '5 EUR'"));
  EXPECT_THAT(refused("a,kind\n1,0\n2,1\n3,NA\n4,1\n"), HasSubstr("line 4: column 'kind' is 'NA'")) << "classes";
  EXPECT_THAT(refused("a,kind\n1,more\n2,1\n3,NA\n4,0\n"), HasSubstr("column 'kind' is 'NA'")) << "beside a word";
  EXPECT_THAT(refused("a,price\n1,1.5\n2,\n"), HasSubstr("line 3: column 'price' is empty"));
  const std::string whole = table("a,price\n1,1.5\n2,2.5\n3,3.5\n");
  EXPECT_THAT(refusal(open(whole, {.test_data = write_text(folder_, "test.csv", "a,price\n1,NA\n")})),
              HasSubstr("test.csv: line 2: column 'price' is 'NA'"));
  const std::string mixed = table("a,price\n1,7\n2,few\n3,8\n4,few\n5,7\n6,8\n");
  EXPECT_THAT(refusal(open(mixed, {.task = Task::kRegression})), HasSubstr("line 3: column 'price' is 'few'"));
  EXPECT_THAT(open(mixed)->train->class_names(), ElementsAre("7", "8", "few")) << "few whole numbers and words";
  EXPECT_THAT(open(table("a,part\n1,none\n2,left\n3,none\n4,left\n"))->train->class_names(),
              ElementsAre("left", "none"));
  EXPECT_EQ(open(table("a,kind\n1,0\n2,NA\n3,NA\n4,0\n5,0\n"), {.task = Task::kClasses})->train->form().classes, 2);
}

TEST_F(OwnData, OfTwoFilesMustFitEachOther) {
  const std::string train = table("a,kind\n1,x\n2,y\n");
  const auto refused = [&](const std::string& text) {
    return refusal(open(train, {.test_data = write_text(folder_, "test.csv", text)}));
  };
  EXPECT_THAT(refused("a,kind\n1,x\n2,z\n"),
              HasSubstr("test.csv: line 3: column 'kind' is 'z', a class that no training"));
  EXPECT_THAT(refused("b,kind\n1,x\n"), HasSubstr("column 'b' where"));
  EXPECT_THAT(refused("a,b,kind\n1,2,x\n"), HasSubstr("samples of 2 values, expected 1 values"));
  const std::string arrays = folder_.write(
      "test.npz",
      npz({{"X", npy<float>("<f4", "(2, 1)", {1, 2})}, {"kind", npy<char32_t>("<U1", "(2,)", {U'x', U'y'})}}, false));
  EXPECT_THAT(refusal(open(train, {.target = "kind", .test_data = arrays})),
              HasSubstr("0 named columns, expected 1 as"));
}

TEST_F(OwnData, OfNumPyAreReadInAnyTypeAndOrder) {
  const Bytes test = npy<double>("<f8", "(2, 2)", {1, 2, 3, 4});
  const auto both = [&](const Bytes& values) {
    const Bytes of_labels = npy<std::int8_t>("|i1", "(2,)", {30, 40});
    return samples_of(open(folder_.write(
        "both.npz",
        npz({{"x_train", values}, {"y_train", of_labels}, {"x_test", test}, {"y_test", of_labels}}, false))));
  };
  std::multimap<std::vector<float>, float> four{{{1, 2}, 0}, {{1, 2}, 0}, {{3, 4}, 1}, {{3, 4}, 1}};
  EXPECT_EQ(both(npy<double>("<f8", "(2, 2)", {1, 2, 3, 4})), four);
  EXPECT_EQ(both(npy<float>("<f4", "(2, 2)", {1, 2, 3, 4})), four);
  EXPECT_EQ(both(npy<std::uint16_t>("<f2", "(2, 2)", {0x3c00, 0x4000, 0x4200, 0x4400})), four);
  EXPECT_EQ(both(npy<std::int16_t>(">i2", "(2, 2)", {0x100, 0x200, 0x300, 0x400})), four);
  EXPECT_EQ(both(npy<std::uint64_t>("<u8", "(2, 2)", {1, 2, 3, 4})), four);
  EXPECT_EQ(both(npy<double>("<f8", "(2, 2)", {1, 3, 2, 4}, "True")), four) << "Fortran's order";
}

TEST_F(OwnData, OfNumPyMayHaveTheirChannelsFirstOrLast) {
  // Two samples of 5x6 pixels and 3 channels: value = 100 y + 10 x + c.
  std::vector<float> last, first;
  for (int sample = 0; sample < 2; ++sample) {
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 6; ++x)
        for (int c = 0; c < 3; ++c) last.push_back(static_cast<float>(100 * y + 10 * x + c));
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 6; ++x) first.push_back(static_cast<float>(100 * y + 10 * x + c));
  }
  const Bytes labels = npy<std::uint8_t>("|u1", "(2,)", {0, 1});
  const auto pair_of = [&](const Bytes& values) {
    return open(folder_.write(
        "images.npz", npz({{"x_train", values}, {"y_train", labels}, {"x_test", values}, {"y_test", labels}}, true)));
  };
  const Result<DatasetPair> channels_last = pair_of(npy<float>("<f4", "(2, 5, 6, 3)", last));
  EXPECT_EQ(channels_last->train->form().image, (ImageShape{5, 6, 3}));
  EXPECT_EQ(samples_of(channels_last), samples_of(pair_of(npy<float>("<f4", "(2, 3, 5, 6)", first))));
}

TEST_F(OwnData, OfAnArchiveAreFoundByTheirNames) {
  const Bytes values = npy<float>("<f4", "(4, 1)", {1, 2, 3, 4});
  const Bytes texts = npy<char32_t>("<U2", "(4,)", {U'a', U'b', U'a', U'b', U'\u00e9', 0, U'\u00e9', 0});
  for (const bool deflates : {false, true}) {
    const Result<DatasetPair> pair = open(folder_.write("a.npz", npz({{"X", values}, {"kind", texts}}, deflates)),
                                          {.target = "kind", .normalisation = Normalisation::kNone});
    EXPECT_THAT(samples_of(pair), ElementsAre(std::pair(std::vector{1.0f}, 0.0f), std::pair(std::vector{2.0f}, 0.0f),
                                              std::pair(std::vector{3.0f}, 1.0f), std::pair(std::vector{4.0f}, 1.0f)));
    EXPECT_THAT(pair->train->class_names(), ElementsAre("ab", "\xC3\xA9"));
  }
  const std::string path = folder_.write("b.npz", npz({{"p", values}, {"q", values}, {"y", values}}, false));
  EXPECT_THAT(refusal(open(path), Code::kInvalidArgument), HasSubstr("several could be the values; it has p, q, y"));
  EXPECT_THAT(refusal(open(path, {.target = "z"}), Code::kInvalidArgument), HasSubstr("--target=z: there is no such"));
}

TEST_F(OwnData, OfAnArchiveHaveOneTestPart) {
  const Bytes values = npy<float>("<f4", "(2, 1)", {1, 2}), labels = npy<std::int8_t>("|i1", "(2,)", {0, 1});
  const std::vector<std::pair<std::string, Bytes>> train{{"x_train", values}, {"y_train", labels}};
  const auto opened = [&](std::vector<std::pair<std::string, Bytes>> more) {
    more.insert(more.begin(), train.begin(), train.end());
    return open(folder_.write("parts.npz", npz(more, false)));
  };
  EXPECT_EQ(opened({{"x_val", values}, {"y_val", labels}})->test->size(), 2);
  EXPECT_EQ(opened({{"x_test", values}, {"y_test", labels}})->train->size(), 2);
  EXPECT_THAT(refusal(opened({{"x_test", values}}), Code::kInvalidArgument),
              HasSubstr("only one of x_test and y_test"));
  EXPECT_THAT(refusal(opened({{"x_test", values}, {"y_test", labels}, {"x_val", values}, {"y_val", labels}}),
                      Code::kInvalidArgument),
              HasSubstr("2 parts beside x_train could be the test ("));
}

TEST_F(OwnData, OfNumPyThatAreWrongAreRefused) {
  const Bytes sound = npy<float>("<f4", "(2, 2)", {1, 2, 3, 4});
  const std::string labels = folder_.write("y.npy", npy<std::int64_t>("<i8", "(2,)", {0, 1}));
  const auto refused = [&](const Bytes& values) {
    return refusal(open(folder_.write("x.npy", values), {.target = labels}));
  };
  for (std::size_t size = 1; size < sound.size(); ++size) {
    const std::string message = refused(Bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_THAT(message, HasSubstr("x.npy: ")) << size;
  }
  EXPECT_THAT(refused(npy<float>("<f4", "(2, 2)", {1, 2, 3, 4, 5})), HasSubstr("trailing bytes"));
  EXPECT_THAT(refused(npy<float>("<f4", "(2, 2)", {1, 2, NAN, 4})), HasSubstr("value 0 of sample 1 is nan"));
  EXPECT_THAT(refused(npy<float>("<f4", "(4611686018427387904, 8)", {1})), HasSubstr("truncated"));
  EXPECT_THAT(refused(npy<float>("<f4", "(2, -2)", {1})), HasSubstr("holds no numbers"));
  EXPECT_THAT(refused(npy<float>("<f4", "()", {1})), HasSubstr("a single number"));
  EXPECT_THAT(refused(npy<float>("<f4", "(1, 1, 1, 1, 1)", {1})), HasSubstr("5 dimensions"));
  EXPECT_THAT(refused(npy<float>("|O", "(2, 2)", {1, 2, 3, 4})), HasSubstr("Python objects"));
  EXPECT_THAT(refused(npy<float>("<c8", "(2, 1)", {1, 2, 3, 4})), HasSubstr("expected numbers"));
  EXPECT_THAT(refused(npy<float>("<f4", "(4,)", {1, 2, 3, 4})), HasSubstr("y.npy: 2 labels, expected 4"));
  EXPECT_THAT(refusal(open(folder_.path("x.npy")), Code::kInvalidArgument), HasSubstr("--target names the .npy file"));
}

TEST_F(OwnData, OfADamagedArchiveAreRefused) {
  const Bytes values = npy<float>("<f4", "(2, 2)", {1, 2, 3, 4}), labels = npy<std::int64_t>("<i8", "(2,)", {0, 1});
  for (const bool deflates : {false, true}) {
    const Bytes sound = npz({{"x", values}, {"y", labels}}, deflates);
    for (std::size_t size = 1; size < sound.size(); size += 7) {
      const Bytes cut(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_THAT(refusal(open(folder_.write("cut.npz", cut))), HasSubstr("cut.npz: "));
    }
    Bytes damaged = sound;
    damaged[40] ^= 1;
    EXPECT_THAT(refusal(open(folder_.write("damaged.npz", damaged))), HasSubstr("damaged.npz: "));
  }
}

TEST_F(OwnData, OfIdxMayHaveAnyTypeDepthAndNumberOfClasses) {
  // 26 samples of 1x2 pixels and 3 channels, as big-endian floats, and labels 1 to 26.
  Bytes values, labels;
  for (int sample = 0; sample < 26; ++sample) {
    labels.push_back(static_cast<std::uint8_t>(sample + 1));
    for (int i = 0; i < 6; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(sample) + static_cast<float>(i) / 8);
      for (int shift = 24; shift >= 0; shift -= 8) values.push_back(static_cast<std::uint8_t>(bits >> shift));
    }
  }
  const Bytes images = idx({0xD04, 26, 1, 2, 3}, values), of_labels = idx({0x801, 26}, labels);
  folder_.write("set/letters-train-images-idx4-float", images);
  folder_.write("set/letters-train-labels-idx1-ubyte", of_labels);
  folder_.write("set/letters-test-images-idx4-float", images);
  folder_.write("set/letters-test-labels-idx1-ubyte", of_labels);
  const Result<DatasetPair> pair = open(folder_.path("set") + "/");
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->form().classes, 26);
  EXPECT_EQ(pair->train->form().image, (ImageShape{1, 2, 3}));
  const auto samples = samples_of(pair);
  EXPECT_EQ(samples.size(), 52u);
  EXPECT_EQ(std::prev(samples.end())->first, (std::vector{25.0f, 25.125f, 25.25f, 25.375f, 25.5f, 25.625f}));
  EXPECT_EQ(std::prev(samples.end())->second, 25.0f);
  const std::string files = folder_.write("few-images-idx4", idx({0xD04, 1, 1, 2, 3}, values));
  EXPECT_THAT(refusal(open(files, {.target = folder_.path("set/letters-train-labels-idx1-ubyte")})),
              HasSubstr("trailing bytes: 624 bytes of numbers, expected 1x1x2x3 numbers of 4 bytes"));
  EXPECT_THAT(refusal(open(folder_.write("other-idx3", idx({0x703, 1, 1, 1}, {1})), {.target = files})),
              HasSubstr("magic 0x00000703"));
}

TEST_F(OwnData, AreKnownByTheirPathsAndRefusedWithWhatIsRead) {
  EXPECT_THAT(refusal(open(folder_.write("a.xlsx", {1})), Code::kInvalidArgument), HasSubstr("must be *.csv, *.tsv"));
  EXPECT_THAT(refusal(open(folder_.path("none.csv")), Code::kNotFound), HasSubstr("there is no such file"));
  EXPECT_THAT(refusal(open(folder_.path("none/")), Code::kNotFound), HasSubstr("there is no such folder"));
  EXPECT_THAT(refusal(open("nist"), Code::kInvalidArgument), HasSubstr("or a path of your own data"));
}

TEST(CsvFields, AreCutAtSeparatorsOutsideOfQuotes) {
  std::vector<std::string> fields;
  EXPECT_EQ(split_csv("a, \"b,\"\"c\"\"\" ,,d ", ',', fields), "");
  EXPECT_THAT(fields, ElementsAre("a", "b,\"c\"", "", "d"));
  EXPECT_EQ(split_csv("a\t\tb", '\t', fields), "");
  EXPECT_THAT(fields, ElementsAre("a", "", "b"));
}

}  // namespace
}  // namespace syncopate::worker
