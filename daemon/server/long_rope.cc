#include "daemon/server/long_rope.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

namespace kvkeep::daemon {
namespace {

constexpr std::string_view kTensor = "rope_factors_long.weight";
constexpr size_t kSearched = 64 << 20;
constexpr size_t kPiece = 1 << 20;

bool names_tensor(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string window;  // The end of the piece before, and a piece.
  for (size_t done = 0; file && done < kSearched; done += kPiece) {
    window.erase(0, window.size() - std::min(window.size(), kTensor.size() - 1));
    const size_t kept = window.size();
    window.resize(kept + kPiece);
    file.read(window.data() + kept, kPiece);
    window.resize(kept + static_cast<size_t>(file.gcount()));
    if (window.find(kTensor) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

bool has_long_rope(const std::vector<std::filesystem::path>& parts) {
  return std::any_of(parts.begin(), parts.end(), names_tensor);
}

}  // namespace kvkeep::daemon
