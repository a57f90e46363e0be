#include "disk/nonce.h"

#include <cstdint>
#include <cstdio>
#include <random>

namespace kvkeep {

std::string random_nonce() {
  std::random_device device;
  const uint64_t bits = static_cast<uint64_t>(device()) << 32 | device();
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  return text;
}

}  // namespace kvkeep
