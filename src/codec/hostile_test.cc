// Files that were made, not damaged: whatever B.18 refuses is kDamaged, whatever other writers of
// safetensors may do is accepted, and nothing costs more than the file's own size.

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "codec/block_codec.h"
#include "codec/safetensors_header.h"
#include "testing/proves.h"
#include "testing/test_images.h"

namespace kvkeep {
namespace {

using Bytes = std::vector<std::byte>;

// Eight bytes of data in two tensors: a pair.
constexpr std::string_view kTensors =
    R"("layer_0_state_0":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
    R"("layer_0_state_1":{"dtype":"F32","shape":[],"data_offsets":[4,8]})";
constexpr std::string_view kBase =
    R"("omlx_cache_format_version":"3","block_hash":"0102","num_layers":"1")";
constexpr std::string_view kCount = R"(,"layer_0_state_count":"2")";

Bytes file_of(std::string_view header, size_t data_bytes = 8) {
  return testing::raw_file(header, Bytes(data_bytes, std::byte{1}));
}

std::string header_of(std::string_view tensors, std::string_view metadata) {
  return "{" + std::string(tensors) + R"(,"__metadata__":{)" + std::string(metadata) + "}}";
}

// The base file with other metadata behind its version, hash and layer count.
std::string with_metadata(std::string_view more) {
  return header_of(kTensors, std::string(kBase) + std::string(more));
}

std::string with_tensors(std::string_view tensors) {
  return header_of(tensors, std::string(kBase) + std::string(kCount));
}

void expect_damaged(BytesView file, std::string_view name) {
  const Status status = testing::decode(file).status();
  EXPECT_EQ(status.code(), Code::kDataLoss) << name << ": " << status.to_string();
  EXPECT_EQ(status.miss_reason(), MissReason::kDamaged) << name << ": " << status.to_string();
  EXPECT_FALSE(status.message().empty());
}

void expect_served(BytesView file, std::string_view name) {
  const auto image = testing::decode(file);
  EXPECT_TRUE(image.ok()) << name << ": " << image.status().to_string();
}

TEST(Hostile, TheBaseFileIsServed) {
  expect_served(file_of(with_metadata(kCount)), "base");
  expect_served(file_of(with_tensors(kTensors)), "base");
}

TEST(Hostile, LengthsAreBelievedOnlyIfTheFileIsThatLong) {
  testing::proves("STATE-12", "SCAN-10");
  const std::string header = with_metadata(kCount);
  Bytes file = file_of(header);
  for (const uint64_t n :
       {uint64_t{0}, uint64_t{1}, uint64_t{7}, header.size() - 1, header.size() + 1,
        file.size() - 8, file.size() - 7, file.size(), uint64_t{99'999'999}, uint64_t{100'000'000},
        uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    store_le<uint64_t>(file.data(), n);
    expect_damaged(file, std::to_string(n));
  }
}

TEST(Hostile, FilesTooShortForAHeader) {
  for (size_t size = 0; size <= 8; ++size) {
    expect_damaged(Bytes(size, std::byte{0}), std::to_string(size));
  }
  expect_damaged(file_of("", 0), "empty header");
}

TEST(Hostile, HeadersThatAreNotJsonObjects) {
  const std::string good = with_metadata(kCount);
  const std::string nested = std::string(50'000, '[') + std::string(50'000, ']');
  const std::vector<std::string> headers = {std::string("null"),
                                            std::string("[]"),
                                            std::string("7"),
                                            std::string("\"x\""),
                                            std::string("        "),
                                            std::string("{"),
                                            std::string("{}}"),
                                            good + "\n",
                                            good + "\t",
                                            good + std::string(1, '\0'),
                                            good + "x",
                                            " " + good,
                                            "\xef\xbb\xbf" + good,
                                            good.substr(0, good.size() - 1),
                                            good + good,
                                            "{\"a\":" + nested + "}",
                                            nested,
                                            "{\"a\":{\"b\":{\"c\":{\"d\":1}}}}",
                                            "{\"a\":NaN}",
                                            "{'a':1}",
                                            "{\"a\":1,}",
                                            std::string("{\"a\0\":1}", 8),
                                            "{\"a\":\"\xff\"}",
                                            "{\"\xc3(\":1}",
                                            std::string(200'000, '{')};
  for (const std::string& header : headers) {
    expect_damaged(file_of(header), header.substr(0, 40));
  }
}

TEST(Hostile, TensorDescriptions) {
  const auto tensor = [](std::string_view body) {
    return R"("layer_0_state_0":)" + std::string(body) +
           R"(,"layer_0_state_1":{"dtype":"U8","shape":[4],"data_offsets":[4,8]})";
  };
  for (const std::string_view body :
       {R"(null)",
        R"([])",
        R"("U8")",
        R"({})",
        R"({"dtype":"U8","shape":[4]})",
        R"({"dtype":"U8","data_offsets":[0,4]})",
        R"({"shape":[4],"data_offsets":[0,4]})",
        R"({"dtype":"F64","shape":[4],"data_offsets":[0,4]})",
        R"({"dtype":"u8","shape":[4],"data_offsets":[0,4]})",
        R"({"dtype":7,"shape":[4],"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":["4"],"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":[[4]],"data_offsets":[0,4]})",
        R"({"dtype":"U8","shape":[4],"data_offsets":[0]})",
        R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})",
        R"({"dtype":"U8","shape":[4],"data_offsets":[-4,0]})",
        R"({"dtype":"U8","shape":[4],"data_offsets":[0,4e0]})",
        R"({"dtype":"U8","shape":[4],"data_offsets":{"0":0,"1":4}})",
        R"({"dtype":"U8","shape":[4],"data_offsets":[0,4],"more":1})",
        R"({"dtype":"U8","shape":[4],"shape":[4],"data_offsets":[0,4]})",
        R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})"}) {
    expect_damaged(file_of(with_tensors(tensor(body))), body);
  }
  expect_served(file_of(with_tensors(tensor(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})"))),
                "good");
}

TEST(Hostile, ARangeThatIsNotWhatTheShapeTakes) {
  testing::proves("ENC-10");
  for (const std::string_view shape : {"[3]", "[5]", "[2]", "[8]", "[0]", "[1,3]"}) {
    expect_damaged(file_of(with_tensors(
                       R"("layer_0_state_0":{"dtype":"U8","shape":)" + std::string(shape) +
                       R"(,"data_offsets":[0,4]},)"
                       R"("layer_0_state_1":{"dtype":"F32","shape":[],"data_offsets":[4,8]})")),
                   shape);
  }
}

TEST(Hostile, Shapes) {
  const auto shape = [](std::string_view text) {
    return file_of(
        with_tensors(R"("layer_0_state_0":{"dtype":"U16","shape":)" + std::string(text) +
                     R"(,"data_offsets":[0,8]},)"
                     R"("layer_0_state_1":{"dtype":"U8","shape":[0],"data_offsets":[8,8]})"));
  };
  expect_served(shape("[4]"), "[4]");
  expect_served(shape("[1,4,1]"), "[1,4,1]");
  for (const std::string_view text :
       {"[]", "[3]", "[5]", "[0]", "[4,0]", "[18446744073709551615]", "[18446744073709551616]",
        "[9223372036854775808]", "[4294967296,4294967296]", "[4611686018427387906,2]",
        "[9223372036854775807,2,2]", "[2147483648,2147483648,4]", "[65536,65536,65536,65536,4]"}) {
    expect_damaged(shape(text), text);
  }
}

TEST(Hostile, Ranges) {
  const auto ranges = [](std::string_view a, std::string_view b) {
    return file_of(with_tensors(
        R"("layer_0_state_0":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
        R"(},"layer_0_state_1":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(b) + "}"));
  };
  expect_served(ranges("[0,4]", "[4,8]"), "in order");
  expect_served(ranges("[4,8]", "[0,4]"), "the other way round");
  const std::vector<std::pair<std::string_view, std::string_view>> bad = {
      {"[0,4]", "[0,4]"},
      {"[0,4]", "[3,7]"},
      {"[0,4]", "[5,9]"},
      {"[1,5]", "[4,8]"},
      {"[0,4]", "[8,12]"},
      {"[4,0]", "[4,8]"},
      {"[0,4]", "[8,4]"},
      {"[0,8]", "[8,8]"},
      {"[0,3]", "[3,8]"},
      {"[0,4]", "[18446744073709551612,18446744073709551616]"},
      {"[0,4]", "[18446744073709551611,18446744073709551615]"},
  };
  for (const auto& [a, b] : bad) expect_damaged(ranges(a, b), b);
  expect_damaged(file_of(with_tensors(kTensors), 7), "data too short");
  expect_damaged(file_of(with_tensors(kTensors), 9), "data too long");
  const std::string gap = R"("layer_0_state_0":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                          R"("layer_0_state_1":{"dtype":"F32","shape":[],"data_offsets":[4,8]})";
  expect_damaged(file_of(with_tensors(gap)), "gap");
}

TEST(Hostile, DuplicatesAtEveryLevel) {
  testing::proves("RUL-68");
  const std::string tensors(kTensors);
  expect_damaged(file_of("{" + tensors + "," + tensors + "}"), "tensors");
  expect_damaged(file_of(with_metadata(std::string(kCount) + R"(,"num_layers":"1")")), "metadata");
  expect_damaged(file_of(with_metadata(std::string(kCount) + R"(,"num_layer\u0073":"1")")),
                 "escaped");
  const std::string metadata =
      R"("__metadata__":{)" + std::string(kBase) + std::string(kCount) + "}";
  expect_damaged(file_of("{" + metadata + "," + tensors + "," + metadata + "}"), "two maps");
}

TEST(Hostile, MetadataMaps) {
  testing::proves("DEF-40");
  const std::string tensors(kTensors);
  expect_damaged(file_of("{" + tensors + "}"), "no metadata");
  expect_damaged(file_of("{" + tensors + R"(,"__metadata__":null})"), "null");
  expect_damaged(file_of("{" + tensors + R"(,"__metadata__":{}})"), "empty");
  expect_damaged(file_of("{" + tensors + R"(,"__metadata__":[]})"), "a list");
  expect_damaged(file_of("{" + tensors + R"(,"__metadata__":"x"})"), "a text");
  for (const std::string_view value :
       {"1", "null", "true", "{}", "[]", "\"\\ud800\"", "\"\\udc00\"", "\"\x01\"", "\"\\x\""}) {
    expect_damaged(file_of(with_metadata(std::string(kCount) + ",\"k\":" + std::string(value))),
                   value);
  }
}

TEST(Hostile, BlockKeysAndCounts) {
  testing::proves("META-06");
  const auto with = [](std::string_view metadata) {
    return file_of(header_of(kTensors, R"("omlx_cache_format_version":"3")" +
                                           std::string(metadata) + std::string(kCount)));
  };
  const std::string layers = R"(,"num_layers":"1")";
  expect_served(with(layers + R"(,"block_hash":"0f")"), "one byte");
  for (const std::string& hex : {std::string(), std::string("0"), std::string("0F"),
                                 std::string("zz"), std::string(" 0f "), std::string(240, 'a')}) {
    expect_damaged(with(layers + R"(,"block_hash":")" + hex + "\""), hex);
  }
  expect_damaged(with(layers), "no hash");
  const std::string hash = R"(,"block_hash":"0f")";
  for (const std::string_view key : {"token_count", "num_layers", "block_size"}) {
    for (const std::string_view value : {"", "x", "-1", "+1", " 1", "1 ", "1.0", "1e0", "0x1",
                                         "4294967296", "99999999999999999999"}) {
      const std::string other = key == "num_layers" ? "" : layers;
      expect_damaged(
          with(hash + other + ",\"" + std::string(key) + "\":\"" + std::string(value) + "\""),
          value);
    }
  }
  expect_damaged(with(hash), "tensors without layers");
}

TEST(Hostile, StateKeys) {
  testing::proves("STATE-12", "TQ-12");
  for (const std::string_view keys :
       {"", R"(,"layer_0_state_count":"")", R"(,"layer_0_state_count":"-1")",
        R"(,"layer_0_state_count":"3")", R"(,"layer_0_state_count":"1000001")",
        R"(,"layer_0_state_count":"18446744073709551616")", R"(,"layer_0_state_count":"2.0")",
        R"(,"layer_0_sub_count":"1")", R"(,"layer_0_sub_count":"x")",
        R"(,"layer_0_sub_count":"1000000")",
        R"(,"layer_0_state_count":"2","layer_0_state_0_nested":"future")",
        R"(,"layer_0_state_count":"2","layer_0_state_0_nested":"")",
        R"(,"layer_0_state_count":"2","layer_0_state_0_nested":"tuple")",
        R"(,"layer_0_state_count":"3","layer_0_state_2_zero_dim":"0")",
        R"(,"layer_0_turboquant_v2":"1")",
        R"(,"layer_0_turboquant_v2":"1","layer_0_tq_key_type":"Other")",
        R"(,"layer_0_turboquant_v2":"1","layer_0_tq_key_type":"TurboQuantMSEState")"}) {
    expect_damaged(file_of(with_metadata(keys)), keys);
  }
}

TEST(Hostile, ShapesOfTensorsWithoutElements) {
  testing::proves("DEF-44");
  const auto file = [](std::string_view shape) {
    return file_of(with_metadata(std::string(kCount) + R"(,"layer_0_state_0_zero_dim":")" +
                                 std::string(shape) + "\""));
  };
  const std::string zero16 = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
  for (const std::string& shape :
       {std::string("0"), std::string("1,1,64,0"), std::string("9223372036854775807,0"), zero16}) {
    expect_served(file(shape), shape);
  }
  for (const std::string& shape :
       {std::string(), std::string("4"), std::string("4,"), std::string(",0"), std::string("0, 1"),
        std::string("0,-1"), std::string("0;1"), std::string("0,9223372036854775808"),
        std::string("0,99999999999999999999"), zero16 + ",0"}) {
    expect_damaged(file(shape), shape);
  }
}

TEST(Hostile, TurboQuantFieldLists) {
  testing::proves("TQ-12");
  const std::string tensors =
      R"("layer_0_tq_k_norms":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
      R"("layer_0_tq_k_indices":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},)"
      R"("layer_0_tq_v_norms":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},)"
      R"("layer_0_tq_v_indices":{"dtype":"U8","shape":[2],"data_offsets":[6,8]})";
  const auto with = [&](std::string_view key_fields, std::string_view type = "KVCache") {
    return file_of(header_of(
        tensors,
        std::string(kBase) + R"(,"layer_cache_types":"[\")" + std::string(type) +
            R"(\"]","layer_0_turboquant_v2":"1","layer_0_tq_key_type":"TurboQuantMSEState",)"
            R"("layer_0_tq_value_type":"TurboQuantMSEState","layer_0_tq_key_fields":")" +
            std::string(key_fields) + R"(","layer_0_tq_value_fields":"norms,indices")"));
  };
  expect_served(with("norms,indices"), "good");
  for (const std::string_view fields : {"", "norms", "norms,indices,", "norms,indices,more",
                                        "indices,norms", "norms, indices", "norms,other"}) {
    expect_damaged(with(fields), fields);
  }
  expect_damaged(with("norms,indices", "CacheList"), "type CacheList");
}

TEST(Hostile, NestingIsBounded) {
  testing::proves("STATE-04", "STATE-12");
  const auto with_levels = [](size_t levels) {
    std::string name = "layer_0_state_0";
    std::string keys = R"(,"layer_0_state_count":"1")";
    for (size_t i = 0; i < levels; ++i) {
      keys += ",\"" + name + R"(_nested":"tuple",")" + name + R"(_state_count":"1")";
      name += "_state_0";
    }
    return file_of(header_of("\"" + name + R"(":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})",
                             std::string(kBase) + keys));
  };
  expect_served(with_levels(1), "1");
  expect_served(with_levels(32), "32");
  expect_damaged(with_levels(33), "33");
  expect_damaged(with_levels(300), "300");
}

TEST(Hostile, OptionalMetadataThatIsMalformedIsAbsent) {
  const auto info = [](std::string_view more) {
    const auto image =
        testing::decode(file_of(with_metadata(std::string(kCount) + std::string(more))));
    EXPECT_TRUE(image.ok()) << more << image.status().to_string();
    return (*image)->header();
  };
  for (const std::string_view json :
       {"", "x", "{}", "[1]", "[[\\\"a\\\"]]", "[\\\"a\\\",]", "null", "[\\\"\\\\ud800\\\"]"}) {
    EXPECT_FALSE(info(R"(,"layer_cache_types":")" + std::string(json) + "\"").info.layer_types)
        << json;
  }
  std::string deep(40, '[');
  deep += "1" + std::string(40, ']');
  for (const std::string& json :
       {std::string(), std::string("7"), std::string("[7]"),
        std::string("[[18446744073709551615]]"), std::string("[[1e999]]"), std::string("[{}]"),
        std::string("[[{}]]"), deep, std::string(100000, '[')}) {
    EXPECT_FALSE(info(R"(,"layer_meta_states":")" + json + "\"").info.meta_states)
        << json.substr(0, 50);
  }
  const auto states = info(R"(,"layer_meta_states":"[null, [], [1]]")").info.meta_states;
  ASSERT_TRUE(states);
  EXPECT_TRUE((*states)[0].empty());
  for (const std::string_view time : {"", "x", "nan", "inf", "1e999", "[1]", "\\\"1\\\""}) {
    EXPECT_FALSE(info(R"(,"created_at":")" + std::string(time) + "\"").created_at) << time;
  }
  EXPECT_EQ(info(R"(,"created_at":"12.5")").created_at, 12.5);
}

TEST(Hostile, FilesOfOtherWritersAreServed) {
  testing::proves("STATE-08", "RUL-67");
  const std::string metadata = R"("__metadata__":{)" + std::string(kBase) + std::string(kCount) +
                               R"(,"format":"pt","sub":"\u0000\ud83d\ude00"})";
  const std::string tensors(kTensors);
  expect_served(file_of("{" + metadata + "," + tensors + "}"), "metadata first");
  expect_served(file_of("{\n \"layer_0_state_1\" : {\"shape\":[ ], \"data_offsets\":[4, 8], "
                        "\"dtype\":\"F32\"},\n" +
                        metadata + "," +
                        R"("layer_0_state_0":{"shape":[4],"dtype":"U8","data_offsets":[0,4]}})"),
                "spaces and another order");
  expect_served(file_of("{" + metadata + "," + tensors + "}      "), "padding");
  for (size_t shift = 0; shift < 8; ++shift) {
    const auto image =
        testing::decode(file_of("{" + metadata + "," + tensors + "}" + std::string(shift, ' ')));
    ASSERT_TRUE(image.ok());
    const LoadedBlock block = Image::lend(*image, Source::kDisk);
    const auto& scalar = std::get<Tensor>(std::get<NState>(block.layers[0]).elements[1].v);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scalar.data.view.data()) % 4, 0u);
    EXPECT_EQ(scalar.data.view[3], std::byte{1});
  }
}

TEST(Hostile, NullStandInsMayBeAbsentAndMarkersWin) {
  const std::string one = R"("other":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  const auto image = testing::decode(file_of(header_of(
      one, std::string(kBase) + R"(,"layer_0_state_count":"1","layer_0_state_0_none":"1",)"
                                R"("layer_0_state_0_nested":"future")")));
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  const LoadedBlock block = Image::lend(*image, Source::kDisk);
  EXPECT_TRUE(std::holds_alternative<Null>(std::get<NState>(block.layers[0]).elements[0].v));
}

TEST(Hostile, AHundredMegabytesOfHeaderAreReadOrRefusedInOnePass) {
  // Just below the limit: two million metadata members, and one tensor name as long as the header.
  std::string members;
  while (members.size() < 40'000'000)
    members += ",\"k" + std::to_string(members.size()) + "\":\"\"";
  expect_served(file_of(with_metadata(std::string(kCount) + members)), "many members");
  const std::string name(60'000'000, 'n');
  expect_damaged(
      file_of("{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"),
      "long name");
}

TEST(Hostile, HeaderAndWholeFileAgree) {
  // What decode_header() refuses, decode_image() refuses.
  for (const std::string_view metadata : {"", R"(,"token_count":"x")", R"(,"kvkeep_a":"1")"}) {
    const Bytes file = file_of(with_metadata(std::string(kCount) + std::string(metadata)));
    const uint64_t prefix = *header_bytes(BytesView(file).first(8), file.size());
    const auto header = decode_header(BytesView(file).first(prefix), file.size());
    EXPECT_EQ(header.ok(), testing::decode(file).ok()) << metadata;
    EXPECT_FALSE(decode_header(BytesView(file).first(prefix - 1), file.size()).ok());
  }
}

}  // namespace
}  // namespace kvkeep
