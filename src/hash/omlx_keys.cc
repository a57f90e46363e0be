#include "hash/omlx_keys.h"

#include <array>
#include <charconv>

#include "base/bytes.h"
#include "hash/python_text.h"
#include "hash/sha256.h"

namespace kvkeep {
namespace {

constexpr std::string_view kModelField = "model";
constexpr std::string_view kRoot = "omlx-root";

// Feeds a digest what Python prints for a tuple.
class TupleText {
 public:
  explicit TupleText(Sha256& sha) : sha_(sha) { text_.reserve(kPiece); }

  void add(std::string_view item) {
    text_ += items_++ == 0 ? "(" : ", ";
    text_ += item;
    if (text_.size() + kItem > kPiece) feed();
  }
  void end() {
    text_ += items_ == 0 ? "()" : items_ == 1 ? ",)" : ")";
    feed();
  }

 private:
  // Few calls of the digest, and room for most items without a growing text.
  static constexpr size_t kPiece = 4096, kItem = 64;

  void feed() {
    sha_.add(as_byte_span(text_));
    text_.clear();
  }

  Sha256& sha_;
  std::string text_;
  size_t items_ = 0;
};

void add_tokens(Sha256& sha, std::span<const uint32_t> tokens) {
  TupleText tuple(sha);
  std::array<char, 10> digits;
  for (const uint32_t token : tokens) {
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), token).ptr;
    tuple.add({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  tuple.end();
}

Status add_extras(Sha256& sha, std::span<const Extra> extras) {
  TupleText tuple(sha);
  for (const Extra& extra : extras) {
    KVKEEP_TRY_ASSIGN(const std::string text, python_text(extra));
    tuple.add(text);
  }
  tuple.end();
  return {};
}

}  // namespace

Result<std::string> omlx_model(const Namespace& fields) {
  std::string model;
  for (const auto& [name, value] : fields) {
    if (name != kModelField) {
      return Status(Code::kInvalidArgument,
                    "namespace field " + name +
                        ": keys by omlx-1 know the model only; what else tells blocks apart goes "
                        "into extras");
    }
    model = value;
  }
  return model;
}

Result<BlockHash> omlx_key(std::string_view model, const std::optional<BlockHash>& parent,
                           std::span<const uint32_t> tokens, std::span<const Extra> extras) {
  Sha256 sha;
  sha.start();
  sha.add(as_byte_span(model));
  sha.add(parent ? parent->bytes() : as_byte_span(kRoot));
  add_tokens(sha, tokens);
  if (!extras.empty()) KVKEEP_TRY(add_extras(sha, extras));
  return sha.finish_key();
}

}  // namespace kvkeep
