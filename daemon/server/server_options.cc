#include "daemon/server/server_options.h"

#include <algorithm>

namespace kvkeep::daemon {
namespace {

constexpr ServerOption value(Setting setting, std::array<std::string_view, 3> names,
                             const char* variable = nullptr) {
  return {.setting = setting, .takes = Takes::kValue, .names = names, .variable = variable};
}

constexpr ServerOption state(std::string_view name, const char* variable = nullptr,
                             std::string_view short_name = {}) {
  return value(Setting::kState, {short_name, name}, variable);
}

constexpr ServerOption on_off(Setting setting, std::string_view name, std::string_view negation,
                              const char* variable, const char* negated_variable) {
  return {setting, Takes::kOnOff, {name}, negation, variable, negated_variable};
}

constexpr std::array kOptions{
    value(Setting::kHost, {"--host"}, "LLAMA_ARG_HOST"),
    value(Setting::kPort, {"--port"}, "LLAMA_ARG_PORT"),
    value(Setting::kSlotPath, {"--slot-save-path"}),
    value(Setting::kApiPrefix, {"--api-prefix"}, "LLAMA_ARG_API_PREFIX"),
    value(Setting::kApiKey, {"--api-key"}, "LLAMA_API_KEY"),
    value(Setting::kApiKeyFile, {"--api-key-file"}, "LLAMA_ARG_API_KEY_FILE"),
    value(Setting::kTlsKey, {"--ssl-key-file"}, "LLAMA_ARG_SSL_KEY_FILE"),
    value(Setting::kTlsCertificate, {"--ssl-cert-file"}, "LLAMA_ARG_SSL_CERT_FILE"),
    value(Setting::kModel, {"-m", "--model"}, "LLAMA_ARG_MODEL"),
    value(Setting::kModel, {"-mu", "--model-url"}, "LLAMA_ARG_MODEL_URL"),
    value(Setting::kModel, {"-dr", "--docker-repo"}, "LLAMA_ARG_DOCKER_REPO"),
    value(Setting::kModel, {"-hf", "-hfr", "--hf-repo"}, "LLAMA_ARG_HF_REPO"),
    on_off(Setting::kCachePrompt, "--cache-prompt", "--no-cache-prompt", "LLAMA_ARG_CACHE_PROMPT",
           "LLAMA_ARG_NO_CACHE_PROMPT"),
    value(Setting::kCacheReuse, {"--cache-reuse"}, "LLAMA_ARG_CACHE_REUSE"),
    on_off(Setting::kContextShift, "--context-shift", "--no-context-shift",
           "LLAMA_ARG_CONTEXT_SHIFT", "LLAMA_ARG_NO_CONTEXT_SHIFT"),
    on_off(Setting::kSlots, "--slots", "--no-slots", "LLAMA_ARG_ENDPOINT_SLOTS",
           "LLAMA_ARG_NO_ENDPOINT_SLOTS"),
    value(Setting::kThreadsHttp, {"--threads-http"}, "LLAMA_ARG_THREADS_HTTP"),
    state("--rope-scaling", "LLAMA_ARG_ROPE_SCALING_TYPE"),
    state("--rope-scale", "LLAMA_ARG_ROPE_SCALE"),
    state("--rope-freq-base", "LLAMA_ARG_ROPE_FREQ_BASE"),
    state("--rope-freq-scale", "LLAMA_ARG_ROPE_FREQ_SCALE"),
    state("--yarn-orig-ctx", "LLAMA_ARG_YARN_ORIG_CTX"),
    state("--yarn-ext-factor", "LLAMA_ARG_YARN_EXT_FACTOR"),
    state("--yarn-attn-factor", "LLAMA_ARG_YARN_ATTN_FACTOR"),
    state("--yarn-beta-slow", "LLAMA_ARG_YARN_BETA_SLOW"),
    state("--yarn-beta-fast", "LLAMA_ARG_YARN_BETA_FAST"),
    state("--grp-attn-n", "LLAMA_ARG_GRP_ATTN_N", "-gan"),
    state("--grp-attn-w", "LLAMA_ARG_GRP_ATTN_W", "-gaw"),
    value(Setting::kCacheForm, {"-ctk", "--cache-type-k"}, "LLAMA_ARG_CACHE_TYPE_K"),
    value(Setting::kCacheForm, {"-ctv", "--cache-type-v"}, "LLAMA_ARG_CACHE_TYPE_V"),
    value(Setting::kCacheForm, {"-fa", "--flash-attn"}, "LLAMA_ARG_FLASH_ATTN"),
    ServerOption{.setting = Setting::kState,
                 .takes = Takes::kNothing,
                 .names = {"--swa-full"},
                 .variable = "LLAMA_ARG_SWA_FULL"},
    ServerOption{.setting = Setting::kState,
                 .takes = Takes::kNothing,
                 .names = {"--lora-init-without-apply"}},
    ServerOption{.setting = Setting::kState,
                 .takes = Takes::kTwoValues,
                 .names = {"--control-vector-layer-range"}},
    value(Setting::kStateList, {"--override-kv"}),
    value(Setting::kStateList, {"--control-vector"}),
    value(Setting::kStateList, {"--control-vector-scaled"}),
    value(Setting::kAdapter, {"--lora"}),
    value(Setting::kScaledAdapter, {"--lora-scaled"}),
};

}  // namespace

std::span<const ServerOption> server_options() { return kOptions; }

const ServerOption* option_of(std::string_view word, bool* positive) {
  if (word.size() < 2 || word[0] != '-') return nullptr;
  const std::string flag = canonical_flag(word);
  for (const ServerOption& option : kOptions) {
    const bool negated = flag == option.negation;
    if (!negated && std::ranges::find(option.names, flag) == option.names.end()) continue;
    *positive = !negated;
    return &option;
  }
  return nullptr;
}

std::string canonical_flag(std::string_view word) {
  std::string flag(word);
  if (word.substr(0, 2) == "--") std::ranges::replace(flag, '_', '-');
  return flag;
}

bool is_model_preset(std::string_view word) {
  const std::string flag = canonical_flag(word);
  if (flag.rfind("--fim-qwen-", 0) == 0) return true;
  return flag.rfind("--", 0) == 0 && flag.ends_with("-default") && flag != "--spec-default";
}

std::string state_name(const ServerOption& option) {
  std::string_view longest;
  for (const std::string_view name : option.names) {
    if (!name.empty()) longest = name;
  }
  return std::string(longest.substr(2));
}

}  // namespace kvkeep::daemon
