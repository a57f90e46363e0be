#include "daemon/server/server_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "testing/temp_dir.h"

namespace kvkeep::daemon {
namespace {

using Words = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Variables variables(const Environment& values) {
  return [values](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

Result<ServerCommand> reading(Words arguments, const Environment& environment = {}) {
  arguments.insert(arguments.begin(), "llama-server");
  return read_server_command(arguments, variables(environment));
}

ServerCommand read(const Words& arguments, const Environment& environment = {}) {
  Result<ServerCommand> command = reading(arguments, environment);
  EXPECT_TRUE(command.ok()) << command.status().to_string();
  return command.ok() ? *std::move(command) : ServerCommand{};
}

TEST(ServerCommand, AProgramAloneHasTheServersDefaults) {
  const ServerCommand command = read({});
  EXPECT_THAT(command.arguments, ElementsAre("llama-server"));
  EXPECT_FALSE(command.host);
  EXPECT_FALSE(command.port);
  EXPECT_FALSE(command.slot_path);
  EXPECT_FALSE(command.threads_http);
  EXPECT_TRUE(command.cache_prompt);
  EXPECT_FALSE(command.context_shift);
  EXPECT_FALSE(command.slots_off);
  EXPECT_EQ(command.cache_reuse, 0u);
  EXPECT_TRUE(command.is_router);
  EXPECT_FALSE(command.has_tls);
  EXPECT_TRUE(command.state_fields.empty());
}

TEST(ServerCommand, ValuesAreReadFromFlags) {
  const ServerCommand command =
      read({"-m", "m.gguf", "--host", "0.0.0.0", "--port", "8081", "--slot-save-path", "/s",
            "--api-prefix", "/x", "--cache-reuse", "256", "--threads-http", "9"});
  EXPECT_EQ(command.host, "0.0.0.0");
  EXPECT_EQ(command.port, 8081);
  EXPECT_EQ(command.slot_path, "/s");
  EXPECT_EQ(command.api_prefix, "/x");
  EXPECT_EQ(command.cache_reuse, 256u);
  EXPECT_EQ(command.threads_http, 9u);
  EXPECT_FALSE(command.is_router);
}

TEST(ServerCommand, ValuesAreReadFromVariables) {
  const ServerCommand command = read({}, {{"LLAMA_ARG_HOST", "::1"},
                                          {"LLAMA_ARG_PORT", "8082"},
                                          {"LLAMA_ARG_API_PREFIX", "/y"},
                                          {"LLAMA_ARG_CACHE_REUSE", "64"},
                                          {"LLAMA_ARG_THREADS_HTTP", "7"},
                                          {"LLAMA_ARG_MODEL", "m.gguf"}});
  EXPECT_EQ(command.host, "::1");
  EXPECT_EQ(command.port, 8082);
  EXPECT_EQ(command.api_prefix, "/y");
  EXPECT_EQ(command.cache_reuse, 64u);
  EXPECT_EQ(command.threads_http, 7u);
  EXPECT_FALSE(command.is_router);
}

TEST(ServerCommand, AFlagWinsOverItsVariableAndTheLastOverTheOthers) {
  const ServerCommand command = read(
      {"--port", "1", "--port", "2", "--cache-prompt", "--rope-scale", "4"},
      {{"LLAMA_ARG_PORT", "3"}, {"LLAMA_ARG_CACHE_PROMPT", "off"}, {"LLAMA_ARG_ROPE_SCALE", "2"}});
  EXPECT_EQ(command.port, 2);
  EXPECT_TRUE(command.cache_prompt);
  EXPECT_THAT(command.state_fields, ElementsAre(Pair("rope-scale", "4")));
}

TEST(ServerCommand, UnderscoresAreDashesInLongFlags) {
  EXPECT_EQ(read({"--slot_save_path", "/a_b"}).slot_path, "/a_b");
  EXPECT_FALSE(read({"--no_cache_prompt"}).cache_prompt);
}

TEST(ServerCommand, TheHostMayBeAUnixSocket) {
  EXPECT_EQ(read({"--host", "/run/x.sock"}).host, "/run/x.sock");
  EXPECT_EQ(read({"--host", "unix:/x.sock"}).host, "unix:/x.sock");
}

TEST(ServerCommand, EverySwitchCanBeTurnedOnAndOff) {
  struct Case {
    const char *on, *off, *variable, *negated;
    bool (*value)(const ServerCommand&);
  };
  const Case kCases[] = {
      {"--cache-prompt", "--no-cache-prompt", "LLAMA_ARG_CACHE_PROMPT", "LLAMA_ARG_NO_CACHE_PROMPT",
       [](const ServerCommand& c) { return c.cache_prompt; }},
      {"--context-shift", "--no-context-shift", "LLAMA_ARG_CONTEXT_SHIFT",
       "LLAMA_ARG_NO_CONTEXT_SHIFT", [](const ServerCommand& c) { return c.context_shift; }},
      {"--slots", "--no-slots", "LLAMA_ARG_ENDPOINT_SLOTS", "LLAMA_ARG_NO_ENDPOINT_SLOTS",
       [](const ServerCommand& c) { return !c.slots_off; }},
  };
  for (const Case& c : kCases) {
    EXPECT_TRUE(c.value(read({c.off, c.on}))) << c.on;
    EXPECT_FALSE(c.value(read({c.on, c.off}))) << c.off;
    for (const char* yes : {"on", "enabled", "true", "1"}) {
      EXPECT_TRUE(c.value(read({}, {{c.variable, yes}}))) << c.variable << yes;
    }
    for (const char* no : {"off", "disabled", "false", "0"}) {
      EXPECT_FALSE(c.value(read({}, {{c.variable, no}}))) << c.variable << no;
    }
    EXPECT_FALSE(c.value(read({}, {{c.negated, "0"}, {c.variable, "on"}}))) << c.negated;
    EXPECT_TRUE(c.value(read({c.on}, {{c.negated, "1"}}))) << c.negated;
    EXPECT_EQ(reading({}, {{c.variable, "maybe"}}).status().code(), Code::kInvalidArgument);
  }
}

TEST(ServerCommand, AnythingThatNamesAModelMakesItNoRouter) {
  for (const Words& words : std::vector<Words>{{"-m", "x"},
                                               {"--model", "x"},
                                               {"-mu", "x"},
                                               {"--model-url", "x"},
                                               {"-dr", "x"},
                                               {"--docker-repo", "x"},
                                               {"-hf", "x"},
                                               {"-hfr", "x"},
                                               {"--hf-repo", "x"},
                                               {"--gpt-oss-20b-default"},
                                               {"--fim-qwen-7b-spec"},
                                               {"--fim-qwen-1.5b-default"},
                                               {"--embd-gemma-default"}}) {
    EXPECT_FALSE(read(words).is_router) << words[0];
  }
  for (const char* variable :
       {"LLAMA_ARG_MODEL", "LLAMA_ARG_MODEL_URL", "LLAMA_ARG_DOCKER_REPO", "LLAMA_ARG_HF_REPO"}) {
    EXPECT_FALSE(read({}, {{variable, "x"}}).is_router) << variable;
  }
  for (const Words& words : std::vector<Words>{
           {"-m", ""}, {"--models-dir", "d"}, {"-md", "draft"}, {"--spec-default"}}) {
    EXPECT_TRUE(read(words).is_router) << words[0];
  }
}

TEST(ServerCommand, ThereIsTlsWithKeyAndCertificate) {
  EXPECT_FALSE(read({"--ssl-key-file", "k"}).has_tls);
  EXPECT_FALSE(read({"--ssl-cert-file", "c"}).has_tls);
  EXPECT_TRUE(read({"--ssl-key-file", "k", "--ssl-cert-file", "c"}).has_tls);
  EXPECT_TRUE(read({"--ssl-key-file", "k"}, {{"LLAMA_ARG_SSL_CERT_FILE", "c"}}).has_tls);
}

TEST(ServerCommand, KeysOfFlagsVariablesAndFilesAllCount) {
  const testing::TempDir dir;
  const std::string file = (dir.path() / "keys").string();
  std::ofstream(file) << "# comment\nf1\n\nf2";
  EXPECT_THAT(read({"--api-key", "a,\"b,c\",", "--api-key", "d", "--api-key-file", file},
                   {{"LLAMA_API_KEY", "v"}})
                  .api_keys,
              ElementsAre("v", "a", "b,c", "d", "f1", "f2"));
  EXPECT_THAT(read({}, {{"LLAMA_ARG_API_KEY_FILE", file}}).api_keys, ElementsAre("f1", "f2"));
}

TEST(ServerCommand, AKeyFileThatCannotBeReadIsNamed) {
  const Status status = reading({"--api-key-file", "/nowhere/keys"}).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/keys"));
  const testing::TempDir dir;
  EXPECT_EQ(reading({"--api-key-file", dir.path().string()}).status().code(), Code::kUnavailable);
}

TEST(ServerCommand, WhatChangesTheStateIsKeptByOneName) {
  const struct {
    Words words;
    const char *name, *value;
  } kCases[] = {
      {{"--rope-scaling", "yarn"}, "rope-scaling", "yarn"},
      {{"--rope_scale", "2"}, "rope-scale", "2"},
      {{"--rope-freq-base", "1e6"}, "rope-freq-base", "1e6"},
      {{"--rope-freq-scale", "0.5"}, "rope-freq-scale", "0.5"},
      {{"--yarn-orig-ctx", "4096"}, "yarn-orig-ctx", "4096"},
      {{"--yarn-ext-factor", "1"}, "yarn-ext-factor", "1"},
      {{"--yarn-attn-factor", "1"}, "yarn-attn-factor", "1"},
      {{"--yarn-beta-slow", "1"}, "yarn-beta-slow", "1"},
      {{"--yarn-beta-fast", "32"}, "yarn-beta-fast", "32"},
      {{"-gan", "2"}, "grp-attn-n", "2"},
      {{"--grp-attn-w", "512"}, "grp-attn-w", "512"},
      {{"--swa-full"}, "swa-full", "true"},
      {{"--lora-init-without-apply"}, "lora-init-without-apply", "true"},
      {{"--override-kv", "a=int:1", "--override-kv", "b=int:2"}, "override-kv", "a=int:1,b=int:2"},
      {{"--control-vector", "v.gguf"}, "control-vector", "v.gguf"},
      {{"--control-vector-scaled", "v.gguf:0.5"}, "control-vector-scaled", "v.gguf:0.5"},
      {{"--control-vector-scaled", "v.gguf", "0.5"}, "control-vector-scaled", "v.gguf:0.5"},
      {{"--control-vector-layer-range", "3", "9"}, "control-vector-layer-range", "3,9"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(read(c.words).state_fields, ElementsAre(Pair(c.name, c.value)));
  }
}

TEST(ServerCommand, WhatChangesTheStateIsReadFromVariables) {
  for (const auto& [variable, name] :
       Environment{{"LLAMA_ARG_ROPE_SCALING_TYPE", "rope-scaling"},
                   {"LLAMA_ARG_ROPE_SCALE", "rope-scale"},
                   {"LLAMA_ARG_ROPE_FREQ_BASE", "rope-freq-base"},
                   {"LLAMA_ARG_ROPE_FREQ_SCALE", "rope-freq-scale"},
                   {"LLAMA_ARG_YARN_ORIG_CTX", "yarn-orig-ctx"},
                   {"LLAMA_ARG_YARN_EXT_FACTOR", "yarn-ext-factor"},
                   {"LLAMA_ARG_YARN_ATTN_FACTOR", "yarn-attn-factor"},
                   {"LLAMA_ARG_YARN_BETA_SLOW", "yarn-beta-slow"},
                   {"LLAMA_ARG_YARN_BETA_FAST", "yarn-beta-fast"},
                   {"LLAMA_ARG_GRP_ATTN_N", "grp-attn-n"},
                   {"LLAMA_ARG_GRP_ATTN_W", "grp-attn-w"}}) {
    EXPECT_THAT(read({}, {{variable, "7"}}).state_fields, ElementsAre(Pair(name, "7")));
  }
  const ServerCommand command =
      read({}, {{"LLAMA_ARG_SWA_FULL", "on"}, {"LLAMA_ATTN_ROT_DISABLE", "1"}});
  EXPECT_THAT(command.state_fields,
              ElementsAre(Pair("LLAMA_ATTN_ROT_DISABLE", "1"), Pair("swa-full", "true")));
  for (const char* off : {"off", "0", "nonsense"}) {
    EXPECT_TRUE(read({}, {{"LLAMA_ARG_SWA_FULL", off}, {"LLAMA_ATTN_ROT_DISABLE", off}})
                    .state_fields.empty());
  }
}

TEST(ServerCommand, AdaptersHaveTheirScale) {
  EXPECT_THAT(read({"--lora", "a.gguf,b.gguf", "--lora-scaled", "c.gguf:0.5"}).adapters,
              ElementsAre("a.gguf:1", "b.gguf:1", "c.gguf:0.5"));
  EXPECT_THAT(read({"--lora-scaled", "c.gguf", "0.5", "--port", "1"}).adapters,
              ElementsAre("c.gguf:0.5"));
}

TEST(ServerCommand, WhatTheServerWouldRefuseIsRefused) {
  const struct {
    Words words;
    const char* message;
  } kCases[] = {
      {{"--port"}, "--port: a value is missing"},
      {{"--control-vector-layer-range", "1"}, "a value is missing"},
      {{"--port", "x"}, "--port \"x\""},
      {{"--port", "65536"}, "from 0 to 65535"},
      {{"--port", "-1"}, "from 0 to 65535"},
      {{"--port", ""}, "--port"},
      {{"--cache-reuse", "1.5"}, "--cache-reuse \"1.5\""},
      {{"--port=8080"}, "\"--port 8080\""},
      {{"--slot_save_path=/x"}, "\"--slot_save_path /x\""},
  };
  for (const auto& c : kCases) {
    const Status status = reading(c.words).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << c.words[0];
    EXPECT_THAT(status.message(), HasSubstr(c.message));
  }
  EXPECT_THAT(reading({}, {{"LLAMA_ARG_PORT", "x"}}).status().message(),
              HasSubstr("LLAMA_ARG_PORT"));
  EXPECT_EQ(read_server_command({}, variables({})).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_server_command(Words{""}, variables({})).status().code(), Code::kInvalidArgument);
}

TEST(ServerCommand, NegativeNumbersAreTheServersDefaults) {
  const ServerCommand command = read({"--threads-http", "-1", "--cache-reuse", "-1"});
  EXPECT_FALSE(command.threads_http);
  EXPECT_EQ(command.cache_reuse, 0u);
}

TEST(ServerCommand, WhatNobodyKnowsIsLeftAlone) {
  const ServerCommand command =
      read({"--brand-new", "x", "-n", "-1", "--alias=a", "-", "--", "server.py"});
  EXPECT_EQ(command.arguments.size(), 9u);
}

TEST(ChildArguments, ReplaceWhereTheServerListensAndSaves) {
  const ServerCommand command =
      read({"-m", "m.gguf", "--host", "0.0.0.0", "-c", "4096", "--port", "8080",
            "--no-cache-prompt", "--slot_save_path", "/s", "--threads-http", "8"});
  EXPECT_THAT(child_arguments(command, 4711, "/tmp/slots/"),
              ElementsAre("llama-server", "-m", "m.gguf", "-c", "4096", "--no-cache-prompt",
                          "--threads-http", "8", "--host", "127.0.0.1", "--port", "4711",
                          "--slot-save-path", "/tmp/slots/"));
}

TEST(ChildArguments, GiveTheServerThreadsUnlessTheCommandDoes) {
  for (const Words& words : std::vector<Words>{{}, {"--threads-http", "-1"}}) {
    EXPECT_THAT(child_arguments(read(words), 1, "/s"),
                ElementsAre("llama-server", "--host", "127.0.0.1", "--port", "1",
                            "--slot-save-path", "/s", "--threads-http", "64"));
  }
  const ServerCommand command = read({}, {{"LLAMA_ARG_THREADS_HTTP", "5"}});
  EXPECT_THAT(child_arguments(command, 1, "/s"),
              ::testing::Not(::testing::Contains("--threads-http")));
}

TEST(ChildArguments, TheProgramIsNeverAnOption) {
  const Words words{"--port", "9", "-m", "x"};
  const auto command = read_server_command(words, variables({}));
  ASSERT_TRUE(command.ok());
  EXPECT_FALSE(command->port);
  EXPECT_EQ(child_arguments(*command, 1, "/s")[0], "--port");
}

TEST(ChildArguments, VariablesThatWouldContradictAreNamed) {
  EXPECT_THAT(variables_to_unset(), ::testing::IsSupersetOf({"LLAMA_ARG_HOST", "LLAMA_ARG_PORT"}));
}

}  // namespace
}  // namespace kvkeep::daemon
